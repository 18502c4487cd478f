"""Figures exist, hold what they should, and say their conditions."""

import struct
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import EXAMPLES, Command
from sojourn.figure import COLOURS, LINES
from sojourn.settings import apply, with_samples


def size_of(png: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    raw = png.read_bytes()
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", raw[16:24])
    return width, height


def texts(figure: Any) -> str:
    """All words of a figure."""
    import matplotlib.text

    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def test_figure_of_a_run(small: Path, tmp_path: Path) -> None:
    """Four panels with units, the conditions above, the rest below."""
    result = sj.simulate(with_samples(sj.load(small)))
    figure = sj.draw(result, tmp_path / "run.png")
    assert size_of(tmp_path / "run.png")[0] >= 1000
    assert (tmp_path / "run.png").stat().st_size > 30_000
    words = texts(figure)
    for word in ("small", "5mbit", "10ms", "codel", "limit 100kB", "seed 1", "measured after 1s"):
        assert word in words
    assert f"sojourn {sj.__version__}" in words
    assert [ax.get_ylabel() for ax in figure.axes] == ["kB", "ms", "Mbit/s", "packets"]
    assert figure.axes[-1].get_xlabel() == "time, s"
    assert figure.axes[0].get_title(loc="left") == "queue"


def test_chosen_windows_are_drawn(small: Path) -> None:
    """Those asked for and no others; a call has none."""
    result = sj.simulate(with_samples(sj.load(small)))
    figure = sj.draw(result, flows=["bulk.1"])
    assert [line.get_label() for line in figure.axes[3].lines] == ["bulk.1"]
    with pytest.raises(sj.InputError, match='no flow "call" over TCP'):
        sj.draw(result, flows=["call"])


def test_many_flows_become_a_band(small: Path) -> None:
    """And the figure says so."""
    tree = apply(with_samples(sj.load(small)), [f"bulk.count={LINES + 1}"])
    figure = sj.draw(sj.simulate(tree))
    words = texts(figure)
    assert f"of {LINES + 1} flows" in words
    assert f"first 4 of {LINES + 2} TCP flows" in words
    labels = [line.get_label() for line in figure.axes[2].lines]
    assert "short" in labels
    assert "bulk.0" not in labels


def test_figure_without_tcp_has_three_panels(small: Path) -> None:
    """No empty axes."""
    tree = with_samples(sj.load(small))
    figure = sj.draw(sj.simulate({**tree, "flows": tree["flows"][2:]}))
    assert len(figure.axes) == 3


def test_figure_needs_series(small: Path) -> None:
    """And says how to get them."""
    with pytest.raises(sj.InputError, match="needs a sample"):
        sj.draw(sj.simulate(small))


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_same_run_gives_the_same_file(ending: str, small: Path, tmp_path: Path) -> None:
    """Byte for byte, so that figures can be checked in."""
    result = sj.simulate(with_samples(sj.load(small)))
    for name in ("one", "two"):
        sj.draw(result, tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_names_are_drawn_as_they_are(small: Path, tmp_path: Path) -> None:
    """Dollars are no formulas, and letters that a font lacks are no warning."""
    tree = {**with_samples(sj.load(small)), "name": r"$\frac 网络 $x" + "a" * 200}
    figure = sj.draw(sj.simulate(tree), tmp_path / "x.png")
    assert r"$\frac" in texts(figure)


def test_figure_of_a_comparison(tmp_path: Path) -> None:
    """A panel over time, one per group, one for the link; every discipline in each."""
    tree = apply(with_samples(sj.load(EXAMPLES / "home-uplink.toml")), ["duration=15s"])
    names = ["droptail", "red", "codel", "fq_codel"]
    runs = sj.compare(tree, names)
    figure = sj.draw_comparison(runs, "bottleneck", tmp_path / "cmp.png")
    assert (tmp_path / "cmp.png").stat().st_size > 50_000
    assert len(figure.axes) == 5
    words = texts(figure)
    for word in (*names, "10mbit", "20ms", "buffer 300kB", "seed 1", "only the discipline differs"):
        assert word in words
    waiting = figure.axes[0].lines
    assert [line.get_label() for line in waiting] == names
    assert [line.get_color() for line in waiting] == list(COLOURS[:4])


def test_comparison_over_seeds_and_without_series(small: Path) -> None:
    """Without series there is no panel over time; with seeds the whisker is named."""
    runs = sj.compare(small, ["red", "codel"], seeds=2)
    figure = sj.draw_comparison(runs, "up")
    assert len(figure.axes) == 4
    assert "whisker 95 %" in texts(figure)
    assert "2 seeds from 1" in texts(figure)


def test_flows_that_never_start_are_no_trouble(small: Path, sojourn: Command) -> None:
    """Nothing sent, nothing completed: tables and figures say so."""
    never = ["--set", "bulk.source.start=1h", "--set", "short.source.start=1h"]
    never += ["--set", "call.source.start=1h", "--set", "sample=10ms"]
    for command in (["run", small], ["compare", small, "--qdisc", "red,codel"]):
        plot = small.with_name("x.png")
        code, out, err = sojourn(*command, *never, "--plot", plot)
        assert (code, err) == (0, "")
        assert " - " in out
        assert plot.exists()
    runs = sj.compare(apply(sj.load(small), never[1::2]), ["red"])
    assert "no packets" in texts(sj.draw_comparison(runs, "up"))
