"""Axes of sweeps: quantities in the order of their values, names as given, titles that hold."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Text

import sojourn as sj
from conftest import Command
from sojourn._sojourn import ParsedScenario
from sojourn._util.order import in_order, quantity

RATES = ["5mbit", "10mbit", "20mbit", "100mbit"]
QDISCS = ["pie", "droptail", "codel"]

SWEEP = """\
scenario = "small.toml"

[axes]
qdisc = { set = "up.qdisc", values = ["pie", "droptail", "codel"] }
rate = { set = "up.rate", values = ["100mbit", "5mbit", "20mbit", "10mbit"] }
"""


@pytest.fixture
def store(small: Path, tmp_path: Path, sojourn: Command) -> Path:
    """Return the folder of a sweep over rates and disciplines."""
    (tmp_path / "sweep.toml").write_text(SWEEP)
    small.write_text(small.read_text().replace('"3s"', '"1500ms"'))
    code, _, err = sojourn("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "store")
    assert code == 0, err
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("kind", "key", "texts"),
    [
        ("delay", "delay", ["900ns", "1us", "2µs", "1ms", "0.5s", "1min", "0.02h"]),
        ("rate", "rate", ["900bit", "1kbit/s", "1KiB/s", "1mbit", "0.5MB/s", "1Gbit", "1tbit"]),
        ("burst", "burst", ["900B", "1kB", "1KiB", "0.5MB", "1MiB", "0.9GB"]),
        ("loss", "loss", ["0.1%", "0.5%", "2%", "10%"]),
    ],
)
def test_every_unit_of_a_scenario_is_ordered(kind: str, key: str, texts: list[str]) -> None:
    """Texts are ordered by their values, and the simulator accepts each."""
    for text in texts:
        link: dict[str, Any] = {"rate": "10mbit", key: text}
        tree = {
            "duration": "1s",
            "links": {"up": link},
            "flows": [{"name": "bulk", "path": ["up"], "rtt": "600s"}],
        }
        ParsedScenario(json.dumps(tree))
    assert in_order(texts[::-1]) == texts
    assert len({parsed[0] for text in texts if (parsed := quantity(text))}) == 1, kind


def test_names_keep_their_order_and_numbers_have_values() -> None:
    """Names, and quantities of different kinds, are as given; missing labels are last."""
    assert in_order(["a", "c", "b"]) == ["a", "c", "b"]
    assert in_order(["a", "c", "b"], ["b", "a"]) == ["b", "a", "c"]
    assert in_order([10, 9.5, 100, 10]) == [9.5, 10, 100]
    assert in_order(["10", "9", "1e3"]) == ["9", "10", "1e3"]
    assert in_order(["100p", "20 packets", "5p"]) == ["5p", "20 packets", "100p"]
    assert in_order(["300kB", "5p", "100p"], ["100p", "300kB"]) == ["100p", "300kB", "5p"]
    assert in_order(["-", "10ms", None, "2ms"]) == ["2ms", "10ms", "-", None]
    assert in_order(["5ms", "5mbit", "1gbit"]) == ["5ms", "5mbit", "1gbit"]
    assert quantity("codel") is None
    assert quantity("10 parsec") is None


def test_rows_and_tables_are_in_order(store: Path, sojourn: Command) -> None:
    """Rows of `results`, means, pivots, and the values that a message lists."""
    rows = sj.results(store)
    assert rows["rate"].to_list() == RATES * 3
    assert rows["qdisc"].unique(maintain_order=True).to_list() == QDISCS
    _, out, _ = sojourn("results", store, "--pivot", "rate", "--metric", "utilisation", "--json")
    table = json.loads(out)["table"]
    assert [row["qdisc"] for row in table] == QDISCS
    assert list(table[0]) == ["qdisc", *RATES]
    _, out, _ = sojourn("results", store, "--pivot", "qdisc", "--metric", "utilisation", "--json")
    table = json.loads(out)["table"]
    assert [row["rate"] for row in table] == RATES
    assert list(table[0]) == ["rate", *QDISCS]
    code, _, err = sojourn("results", store, "--where", "rate=1gbit")
    assert code == 2
    assert ", ".join(RATES) in err.replace('"', "")


def test_pivot_with_gaps_is_in_order(store: Path) -> None:
    """A first row without some columns does not change their order."""
    from sojourn.sweeps.query import means, pivoted

    rows = sj.results(store).filter((pl.col("qdisc") != "pie") | (pl.col("rate") == "20mbit"))
    table = pivoted(means(rows, ["qdisc", "rate"], ["utilisation"]), "rate", "utilisation")
    assert table.columns == ["qdisc", *RATES]
    assert table["qdisc"].to_list() == QDISCS
    table = pivoted(means(rows, ["qdisc", "rate"], ["utilisation"]), "qdisc", "utilisation")
    assert table.columns == ["rate", *QDISCS]
    assert table["rate"].to_list() == RATES


def ticks(ax: Any, which: str) -> list[str]:
    """Return the labels of the ticks of an axis."""
    ax.figure.canvas.draw()
    return [label.get_text() for label in getattr(ax, f"get_{which}ticklabels")()]


def means_of(rows: pl.DataFrame, qdisc: str) -> list[float]:
    """Return the utilisation of a discipline in per cent, by increasing rate."""
    return [
        100 * row["utilisation"]
        for rate in RATES
        for row in rows.iter_rows(named=True)
        if (row["qdisc"], row["rate"]) == (qdisc, rate)
    ]


@pytest.mark.parametrize("log", [False, True])
def test_lines_run_from_small_to_large(store: Path, log: bool) -> None:
    """Also on a logarithmic axis, and where the first line lacks the smallest value."""
    rows = sj.results(store)
    rows = rows.filter((pl.col("qdisc") != "pie") | (pl.col("rate") != "5mbit"))
    figure = sj.plot(rows, y="utilisation", x="rate", by="qdisc", log=log)
    ax = figure.axes[0]
    assert ticks(ax, "x") == RATES
    places = list(ax.get_xticks())
    assert places == sorted(places)
    lines = {str(line.get_label()): line for line in ax.lines}
    assert list(lines) == QDISCS
    assert np.asarray(lines["codel"].get_xdata()).tolist() == places
    assert np.asarray(lines["codel"].get_ydata()) == pytest.approx(means_of(rows, "codel"))
    assert np.asarray(lines["pie"].get_xdata()).tolist() == places[1:]


def test_names_have_no_logarithm(store: Path, sojourn: Command) -> None:
    """Refused in one line, not drawn with places that mean nothing."""
    rows = sj.results(store)
    with pytest.raises(sj.InputError, match='--log: the values of "qdisc" are names'):
        sj.plot(rows, y="utilisation", x="qdisc", by="rate", log=True)


def test_heat_maps_and_boxes_are_in_order(store: Path) -> None:
    """Cells have their value as text, and belong to the labels of their row and column."""
    rows = sj.results(store)
    ax = sj.plot(rows, y="utilisation", x="rate", by="qdisc", kind="heat").axes[0]
    assert ticks(ax, "x") == RATES
    assert ticks(ax, "y") == QDISCS
    cells = {tuple(map(round, text.get_position())): text.get_text() for text in ax.texts}
    assert len(cells) == 12
    for down, qdisc in enumerate(QDISCS):
        for across, value in enumerate(means_of(rows, qdisc)):
            assert float(cells[across, down]) == pytest.approx(value, abs=0.051)
    ax = sj.plot(
        rows.filter(pl.col("qdisc") == "pie"), y="utilisation", by="rate", kind="box"
    ).axes[0]
    assert ticks(ax, "x") == RATES


TITLES = [
    ({}, {"by": "qdisc"}, "up: 10ms, buffer 100kB; varied: qdisc, rate", ("5mbit", "codel (")),
    ({"qdisc": "pie"}, {}, "utilisation, %; qdisc pie\nup: 10ms, buffer 100kB", ("5mbit",)),
    ({"rate": "100mbit"}, {"x": "qdisc"}, "utilisation, %; rate 100mbit\nup: 10ms", ("5mbit",)),
]


@pytest.mark.parametrize(("chosen", "axes", "words", "absent"), TITLES)
def test_titles_state_what_holds(
    store: Path, chosen: dict[str, str], axes: dict[str, str], words: str, absent: tuple[str, ...]
) -> None:
    """A rate that varies, or that was selected otherwise, is not stated."""
    from sojourn.sweeps.conditions import conditions

    rows = sj.results(store).filter(**chosen)
    x, by = axes.get("x", "rate"), axes.get("by")
    figure = sj.plot(rows, y="utilisation", about=conditions(store), x=x, by=by)
    title = figure.get_suptitle().replace("\N{NO-BREAK SPACE}", " ")
    assert words in title
    for word in absent:
        assert word not in title


def test_titles_of_buffers_warmups_and_several_links(tmp_path: Path, small: Path) -> None:
    """A discipline with a buffer of its own, a varied duration, a parameter, losses."""
    from sojourn.sweeps.conditions import conditions

    def title(axes: dict[str, Any], **look: Any) -> str:
        where = tmp_path / f"store-{len(list(tmp_path.iterdir()))}"
        rows = sj.sweep(small, axes, out=where)
        figure = sj.plot(rows, y="utilisation", about=conditions(where), **look)
        return "\n".join(t.get_text() for t in figure.findobj(Text))

    own = {"own": {"name": "red", "limit": "50kB"}, "deep": "droptail"}
    text = title({"kind": {"set": "up.qdisc", "values": own}}, x="kind")
    assert "up: 5mbit, 10ms; varied: kind" in text
    text = title({"up.qdisc.target": ["5ms", "20ms", "10ms"]}, x="up.qdisc.target")
    assert "up: 5mbit, 10ms, codel (limit 100kB); varied: up.qdisc.target" in text
    text = title({"duration": ["3s", "2s"]}, x="duration")
    assert "3s, measured" not in text
    assert "measured after 1s" in text
    text = title({"links.up.loss": [0.01, 0.02]}, x="links.up.loss")
    assert "up: 5mbit, 10ms, codel (limit 100kB)" in text
    assert "loss 0" not in text


def test_a_second_call_with_more_seeds_keeps_the_title(store: Path, sojourn: Command) -> None:
    """The store then has two notes about the same scenario and axes."""
    from sojourn.sweeps.conditions import conditions

    file = store.parent / "sweep.toml"
    file.write_text("seeds = 2\n" + file.read_text())
    assert sojourn("sweep", file, "--out", store)[0] == 0
    assert len(list(store.glob("_sweep-*.json"))) == 2
    about = conditions(store)
    assert about is not None
    assert about["scenario"]["name"] == "small"


def test_figure_of_a_comparison_of_several_links(tmp_path: Path, sojourn: Command) -> None:
    """`plot FOLDER --y` of a named scenario names no discipline that differs."""
    out = tmp_path / "cmp"
    short = ("--set", "duration=3s", "--set", "warmup=1s")
    assert sojourn("compare", "tcp_nup", "--qdisc", "pie,codel", "--out", out, *short)[0] == 0
    assert sj.results(out)["qdisc"].to_list() == ["pie", "codel"]
    code, _, err = sojourn(
        "plot", out, "--y", "utilisation", "--x", "qdisc", "--out", tmp_path / "x.svg"
    )
    assert (code, err) == (0, "")
