"""The figure and the table of a comparison show the same numbers for the same flows."""

import copy
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import EXAMPLES
from sojourn.metrics.overview import Reading, Row, rows
from sojourn.plotting.comparison import TOO_FEW
from sojourn.scenario.draft import Draft

DRAWN = {
    "one-way delay": "one-way delay, 99 %",
    "completion time": "completion time, 99 %",
    "queueing delay": "queueing delay, 99 %",
    "goodput": "goodput",
    "total goodput": "goodput, total",
    "rate of the calls": "rate",
    "video rate": "video rate",
}
"""Row of the table that belongs to the beginning of the label of an axis."""

NOTED = {
    "loss": "loss",
    "loss of all": "loss",
    "frames lost": "lost frames",
    "completed": "completed transfers",
    "used": "utilisation",
    "stalled": "stalled",
}
"""Row of the table that belongs to the words of a note."""


def line(rate: str) -> dict[str, Any]:
    """Return a link of the office."""
    return {"rate": rate, "delay": "10ms", "qdisc": {"name": "droptail", "limit": "100kB"}}


CUBIC = {"name": "cubic", "hystart": True}
UP: dict[str, Any] = {"path": ["up"], "return_path": ["down"]}
DOWN: dict[str, Any] = {"path": ["down"], "return_path": ["up"]}
OFFICE = {
    "name": "office",
    "duration": "8s",
    "warmup": "2s",
    "sample": "50ms",
    "links": {"down": line("20mbit"), "up": line("6mbit")},
    "flows": [
        {"name": "call-up", "count": 3, "source": "call", "rtt": "uniform(25ms, 60ms)", **UP},
        {"name": "voice", "count": 4, "source": {"name": "cbr", "rate": "1mbit"}, **UP},
        {"name": "film", "source": {"name": "video", "segment": "1s"}, "rtt": "40ms", **DOWN},
        {"name": "web", "source": {"name": "transfers", "size": "20kB", "gap": "50ms"}, **DOWN},
        {"name": "sync", "count": 2, "tcp": CUBIC, "rtt": "20ms", **UP},
        {"name": "backup", "tcp": CUBIC, "rtt": "30ms", **UP},
    ],
}  # fmt: skip
"""Every kind of group: calls, several UDP flows, video, transfers, several and single TCP flows."""


def scenario(name: str) -> dict[str, Any]:
    """Return a scenario of the tests."""
    if name == "office":
        return copy.deepcopy(OFFICE)
    if name == "home-uplink":
        return Draft.read(EXAMPLES / "home-uplink.toml").set(["duration=15s"]).tree
    return Draft.read(name).set(["duration=8s", "warmup=2s"]).tree


def drawn_numbers(figure: Any) -> dict[tuple[str, str, str], float]:
    """Return the numbers of the panels by owner, quantity and discipline."""
    numbers: dict[tuple[str, str, str], float] = {}
    for ax in figure.axes:
        label = " ".join(ax.get_xlabel().split())
        if label == "time, s":
            continue
        start = label.partition(",")[0]
        worst = start.endswith(" of the worst flow")
        what = DRAWN[start.removesuffix(" of the worst flow")] + " of the worst" * worst
        of = " ".join(ax.get_title(loc="left").split()).removeprefix("link ")
        names = [
            text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in ax.get_yticklabels()
        ]
        for row, text in enumerate(names):
            name, _, note = text.partition("\n")
            words = [word for word in note.split() if word not in ("%", "s")]
            values = [word for word in words if word.replace(".", "").isdigit()]
            if values:
                kind = NOTED[" ".join(word for word in words if word not in values)]
                numbers[of, kind, name] = float(values[0])
            here = [t for t in ax.texts if t.xy[1] == row]
            assert len(here) == 1, (of, what, name)
            if here[0].get_text() == TOO_FEW:
                continue
            numbers[of, what, name] = float(here[0].get_text())
    return numbers


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("name", ["home-uplink", "rrul", "office", "tcp_nup", "voip"])
def test_equal_names_have_equal_numbers(name: str, seeds: int) -> None:
    """Every number of the figure is in the table, for the same group of flows."""
    link = "bottleneck" if name == "home-uplink" else "up"
    runs = sj.compare(scenario(name), ["droptail", "fq_codel"], link=link, seeds=seeds)
    drawn = drawn_numbers(sj.draw_comparison(runs))
    assert len(drawn) >= 8
    for row in rows(runs, runs.link):
        for label, estimate in zip(runs, row.estimates, strict=True):
            value = drawn.pop((row.like.of, row.like.what, label), None)
            if value is None:
                continue
            # A cell is rounded to the digits that its interval leaves.
            assert estimate.value is not None
            assert value == float(row.like.text(estimate.value)), row.like
    assert not drawn


def test_every_kind_of_traffic_and_each_link_has_a_panel() -> None:
    """Of rrul: uploads, downloads, pings both ways, both queues; in the table as well."""
    runs = sj.compare(scenario("rrul"), ["droptail", "fq_codel"], link="up", also=["down"])
    titles = [ax.get_title(loc="left") for ax in sj.draw_comparison(runs).axes]
    assert titles == [
        "link up",
        "link down",
        "probe-up (3 groups)",
        "probe-down (3 groups)",
        "upload (4 groups)",
        "download (4 groups)",
        "link up",
        "link down",
    ]
    table = {(row.like.of, row.like.what): row for row in rows(runs, runs.link)}
    assert ("down", "queueing delay, 99 %") in table
    total = table["upload (4 groups)", "goodput, total"].values[0][1]
    parts = [table[f"upload-{k}", "goodput"].values[0][1] for k in ("EF", "CS5", "BE", "BK")]
    assert total == pytest.approx(sum(parts))
    worst = table["probe-up (3 groups)", "one-way delay, 99 % of the worst"].values[1][1]
    each = [table[f"probe-up-{k}", "one-way delay, 99 %"].values[1][1] for k in ("EF", "BE", "BK")]
    assert worst == max(each)


def test_more_groups_than_panels_leave_none_of_a_source_out() -> None:
    """Twenty groups of calls do not hide the one upload, and the figure counts what is left out."""
    tree = scenario("office")
    call = tree["flows"][0]
    others = [{**call, "name": f"call-{n}", "count": 1} for n in range(20)]
    tree = {**tree, "duration": "3s", "flows": others + tree["flows"][1:]}
    figure = sj.draw_comparison(sj.compare(tree, ["pie"], link="up"))
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    for group in ("voice (4)", "film", "web", "sync"):
        assert any(title.startswith(group) for title in titles), group
    words = "\n".join(t.get_text() for t in figure.findobj() if hasattr(t, "get_text"))
    assert "not drawn: " in words


def test_recorded_rates_are_not_stated_as_fixed(tmp_path: Path) -> None:
    """With a trace the heading of figure and table says so."""
    (tmp_path / "lte.trace").write_text("".join(f"{n}\n" for n in range(1, 2000)))
    tree = {
        "duration": "3s",
        "sample": "50ms",
        "links": {"radio": {"rate": "15mbit", "trace": str(tmp_path / "lte.trace")}},
        "flows": [{"name": "bulk", "path": ["radio"], "rtt": "40ms"}],
    }
    runs = sj.compare(tree, ["droptail", "codel"])
    title = sj.draw_comparison(runs, link="radio").get_suptitle()
    assert "radio: recorded rate, 0s, buffer" in title
    assert "15mbit" not in title
    from sojourn.display.summary import compared

    assert "15mbit" not in compared(runs, "radio")


def test_buffers_that_differ_are_all_stated() -> None:
    """And the heading names every link whose discipline differs."""
    tree = scenario("office")
    runs = sj.compare(tree, ["pie", "droptail(limit=50kB)"], link="up", also=["down"])
    title = sj.draw_comparison(runs, link="up").get_suptitle()
    assert "up: 6mbit, 10ms, buffers 100kB (pie), 50kB (droptail" in " ".join(title.split())
    assert "only the disciplines of up and down differ" in " ".join(title.split())


def test_delays_far_apart_have_a_logarithmic_axis() -> None:
    """An AQM does not lie on the axis below drop-tail; delays of one size stay linear."""
    tree = Draft.read(EXAMPLES / "home-uplink.toml").set(["duration=15s", "sample=50ms"]).tree
    far = sj.draw_comparison(sj.compare(tree, ["droptail", "fq_codel"]), link="bottleneck").axes[0]
    assert far.get_yscale() == "symlog"
    assert "logarithmic" in far.get_ylabel()
    near = sj.draw_comparison(sj.compare(tree, ["codel", "pie"]), link="bottleneck").axes[0]
    assert near.get_yscale() == "linear"


def test_a_link_without_a_queue_has_no_panel() -> None:
    """An access link of 1 Gbit/s in front of the bottleneck, unless it is the compared one."""
    tree = {
        "duration": "2s",
        "links": {"access": {"rate": "1gbit"}, "core": {"rate": "5mbit"}},
        "flows": [{"name": "bulk", "path": ["access", "core"], "rtt": "20ms"}],
    }
    runs = sj.compare(tree, ["droptail", "codel"], link="core")
    panels = [[ax.get_title(loc="left") for ax in sj.draw_comparison(runs, link=link).axes]
              for link in ("core", "access")]  # fmt: skip
    assert panels == [["bulk", "link core"], ["bulk", "link access", "link core"]]


def test_the_utilisation_of_an_idle_link_has_no_best() -> None:
    """It is decided by the load, not by the discipline."""

    def best(percent: float) -> list[bool]:
        like = Reading("up", "utilisation", "%", None, "more")
        values = [{seed: Reading("up", "utilisation", "%", percent + 9 * k + seed / 9, "more")
                   for seed in range(4)} for k in range(2)]  # fmt: skip
        return Row(like, tuple(values)).best

    assert best(60.0) == [False, True]
    assert best(30.0) == [False, False]
