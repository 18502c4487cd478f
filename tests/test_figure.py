"""Figures: their panels, labels, and the stated conditions."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from conftest import EXAMPLES, Command
from sojourn.metrics.labels import label
from sojourn.plotting.run import COLOURS, LINES
from sojourn.scenario.draft import Draft


def size_of(png: Path) -> tuple[int, int]:
    """Return width and height of a PNG, from its header."""
    raw = png.read_bytes()
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", raw[16:24])
    return width, height


def texts(figure: Any) -> str:
    """Return all words of a figure."""
    import matplotlib.text

    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def test_figure_of_a_run(small: Path, tmp_path: Path) -> None:
    """Five panels with quantities and units, the conditions as the title, notes below."""
    result = sj.simulate(Draft.read(small).with_sample())
    figure = sj.draw(result, tmp_path / "run.png")
    assert size_of(tmp_path / "run.png")[0] >= 1000
    assert (tmp_path / "run.png").stat().st_size > 30_000
    words = texts(figure)
    for word in ("small", "5mbit", "10ms", "codel", "limit 100kB", "seed 1", "measured after 1s"):
        assert word in words
    assert f"sojourn {sj.__version__}" in words
    assert [" ".join(ax.get_ylabel().split()) for ax in figure.axes] == [
        "queue length, kB",
        "queueing delay, ms",
        "throughput, Mbit/s",
        "payload delivered, MB",
        "congestion window, packets",
    ]
    assert figure.axes[-1].get_xlabel() == "time, s"
    assert figure.axes[0].get_title(loc="left") == "queue"


def test_chosen_windows_are_drawn(small: Path) -> None:
    """Only the requested windows are drawn; a call has none."""
    result = sj.simulate(Draft.read(small).with_sample())
    figure = sj.draw(result, flows=["bulk.1"])
    assert [line.get_label() for line in figure.axes[4].lines] == ["bulk.1"]
    with pytest.raises(sj.InputError, match='no TCP flow or group "call"'):
        sj.draw(result, flows=["call"])


def test_many_flows_are_drawn_by_group(small: Path) -> None:
    """The figure says so; also if the scenario has no series of single flows."""
    draft = Draft.read(small).with_sample().set([f"bulk.count={LINES + 1}"])
    figure = sj.draw(sj.simulate(draft))
    words = texts(figure)
    assert "throughput of each group" in words
    assert f"first 4 of {LINES + 2} TCP flows" in words
    labels = [line.get_label() for line in figure.axes[2].lines]
    assert labels == [f"bulk ({LINES + 1})", "short", "call"]
    figure = sj.draw(sj.simulate(Draft.read(small).with_keys(sample_flows=False).with_sample()))
    assert [line.get_label() for line in figure.axes[2].lines] == ["bulk (2)", "short", "call"]


def test_figure_without_tcp_has_no_windows(small: Path) -> None:
    """No empty axes."""
    draft = Draft.read(small).with_sample()
    figure = sj.draw(sj.simulate(draft.with_keys(flows=draft.tree["flows"][2:])))
    assert len(figure.axes) == 4


def test_throughput_is_measured_on_the_link(small: Path) -> None:
    """In-order delivery comes in bursts above the rate; transmission does not."""
    draft = Draft.read(small).set(["up.qdisc=droptail", "up.qdisc.limit=60kB"])
    result = sj.simulate(draft.with_sample())
    figure = sj.draw(result)
    bursts = max(f.series.delivered_bytes.max() for f in result.flows.values()) * 8 / 0.003
    assert bursts > 3 * 5e6
    throughput, delivered = figure.axes[2], figure.axes[3]
    # A sample may hold a packet more than its share.
    most = 5 + 1500 * 8 / 0.015 / 1e6
    assert max(np.max(line.get_ydata()) for line in throughput.lines) <= most
    assert throughput.get_ylim()[1] < 1.2 * most
    for line, flow in zip(delivered.lines, result.flows.values(), strict=True):
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(
            flow.series.delivered_bytes.sum() / 1e6
        )


def test_look_of_a_figure_is_chosen(small: Path, sojourn: Command) -> None:
    """Title, labels, size and style; bad ones are refused before the run."""
    result = sj.simulate(Draft.read(small).with_sample())
    figure = sj.draw(result, title="Uplink", xlabel="time (s)", size="20x25cm", style="ggplot")
    assert figure.get_suptitle() == "Uplink"
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert list(figure.get_size_inches()) == pytest.approx([20 / 2.54, 25 / 2.54])
    assert figure.axes[0].get_facecolor() != (1, 1, 1, 1)
    assert sj.draw(result, title="").get_suptitle() == ""
    sheet = small.with_name("own.mplstyle")
    sheet.write_text("axes.facecolor: ff0000\n")
    runs = sj.compare(small, ["red", "codel"])
    drawn = sj.draw_comparison(runs, link="up", title="Two", size=(7, 8), style=sheet)
    assert drawn.axes[0].get_facecolor() == (1, 0, 0, 1)
    assert list(drawn.get_size_inches()) == [7, 8]
    plot = small.with_name("x.png")
    for option, value, message in (
        ("--size", "3", "--size: "),
        ("--size", "3x900in", "out of range, allowed: 1 to 100"),
        ("--style", "ggplo", 'did you mean "ggplot"?'),
        ("--style", str(small), "--style: "),
    ):
        code, _, err = sojourn("run", small, "--plot", plot, option, value)
        assert code == 2
        assert message in err
        assert not plot.exists()
    code, _, err = sojourn("run", small, "--plot", plot, "--size", "1x1in")
    assert (code, "too small for what the figure shows" in err) == (2, True)
    code, _, err = sojourn("compare", small, "--qdisc", "red", "--title", "x")
    assert (code, "--title: there is no figure" in err) == (2, True)


def test_fonts_are_embedded(small: Path, tmp_path: Path) -> None:
    """A PDF holds TrueType fonts, no Type 3; an SVG needs no font."""
    result = sj.simulate(Draft.read(small).with_sample())
    sj.draw(result, tmp_path / "x.pdf")
    raw = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in raw
    assert b"/Type3" not in raw
    sj.draw(result, tmp_path / "x.svg")
    assert "<text" not in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("column", "text", "scale"),
    [
        ("sojourn_p99_s", "queueing delay, ms, 99th percentile", 1e3),
        ("up.sojourn_mean_s", "up: queueing delay, ms, mean", 1e3),
        ("short.fct_mean_s", "short: completion time, ms, mean", 1e3),
        ("utilisation", "utilisation, %", 100),
        ("loss_rate", "loss rate, %", 100),
        ("goodput_bps", "goodput, Mbit/s", 1e-6),
        ("queue_mean_bytes", "queue length, kB, mean", 1e-3),
        ("dropped_packets", "packets dropped", 1),
        ("jain_index", "Jain's fairness index", 1),
        ("afct_s", "afct, ms", 1e3),
        ("bulk.count", "bulk.count", 1),
    ],
)
def test_labels_are_words_with_units(column: str, text: str, scale: float) -> None:
    """For columns of results and metrics; an axis keeps the name given by the user."""
    axis = label(column)
    assert axis.text == text
    assert axis.scale == pytest.approx(scale)


def test_figure_needs_series(small: Path) -> None:
    """The message says how to record them."""
    with pytest.raises(sj.InputError, match="needs `sample`"):
        sj.draw(sj.simulate(small))


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_same_run_gives_the_same_file(ending: str, small: Path, tmp_path: Path) -> None:
    """Byte for byte, so that figures can be under version control."""
    result = sj.simulate(Draft.read(small).with_sample())
    for name in ("one", "two"):
        sj.draw(result, tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_names_are_drawn_literally(small: Path, tmp_path: Path) -> None:
    """Dollars are no formulas, and missing glyphs give no warning."""
    draft = Draft.read(small).with_keys(name=r"$\frac 网络 $x" + "a" * 200).with_sample()
    figure = sj.draw(sj.simulate(draft), tmp_path / "x.png")
    assert r"$\frac" in texts(figure)


def test_figure_of_a_comparison(tmp_path: Path) -> None:
    """A panel over time, one per group, one for the link; every discipline in each."""
    draft = Draft.read(EXAMPLES / "home-uplink.toml").with_keys(duration="15s").with_sample()
    names = ["droptail", "red", "codel", "fq_codel"]
    runs = sj.compare(draft, names)
    figure = sj.draw_comparison(runs, tmp_path / "cmp.png")
    assert (tmp_path / "cmp.png").stat().st_size > 50_000
    with pytest.raises(sj.InputError, match='link: unknown link "cmp"'):
        sj.draw_comparison(runs, link="cmp")
    with pytest.raises(sj.InputError, match=r"cmp: .*\.png"):
        sj.draw_comparison(runs, "cmp")
    assert len(figure.axes) == 5
    words = texts(figure)
    for word in (*names, "10mbit", "20ms", "buffer 300kB", "seed 1", "only the discipline differs"):
        assert word in words
    waiting = figure.axes[0].lines
    assert [line.get_label() for line in waiting] == names
    assert [line.get_color() for line in waiting] == list(COLOURS[:4])


def test_comparison_over_seeds_and_without_series(small: Path) -> None:
    """Without series no panel over time; with seeds the whiskers are explained."""
    runs = sj.compare(small, ["red", "codel"], seeds=2)
    figure = sj.draw_comparison(runs, link="up")
    assert len(figure.axes) == 4
    assert "95 % interval" in " ".join(texts(figure).split())
    assert "2 seeds from 1" in texts(figure)


def test_flows_that_never_start(small: Path, sojourn: Command) -> None:
    """Tables and figures work with nothing sent and nothing completed."""
    never = ["--set", "bulk.source.start=1h", "--set", "short.source.start=1h"]
    never += ["--set", "call.source.start=1h", "--set", "sample=10ms"]
    for command in (["run", small], ["compare", small, "--qdisc", "red,codel"]):
        plot = small.with_name("x.png")
        code, out, err = sojourn(*command, *never, "--plot", plot)
        assert (code, err) == (0, "")
        assert " - " in out
        assert plot.exists()
    runs = sj.compare(Draft.read(small).set(never[1::2]), ["red"])
    assert "nothing to measure" in texts(sj.draw_comparison(runs, link="up"))


def test_figure_of_a_run_has_every_kind_of_traffic() -> None:
    """Groups alike are one line: of rrul the uploads, downloads and pings each way."""
    runs = Draft.read("rrul").tree | {"duration": "8s", "warmup": "2s"}
    result = sj.simulate(runs)
    figure = sj.draw(result)
    kinds = ("upload (4", "probe-up (3", "download (4", "probe-down (3")
    names = [f"{kind} groups)" for kind in kinds]
    assert [line.get_label() for line in figure.axes[2].lines] == names
    figure = sj.draw(result, flows=["upload-EF", "download-EF"])
    for line, kind in zip(figure.axes[3].lines, kinds, strict=True):
        total = sum(
            flow.series.delivered_bytes.sum()
            for flow in result.flows.values()
            if flow.group.startswith(kind.partition(" ")[0])
        )
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(total / 1e6)
    assert [line.get_label() for line in figure.axes[4].lines] == ["upload-EF", "download-EF"]
