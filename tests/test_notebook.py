"""Displays in notebooks: tables, sparklines, figures, progress bars; singular and plural."""

import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from conftest import EXAMPLES, SMALL, Command
from sojourn._util import progress
from sojourn._util.units import counted
from sojourn.display.sparkline import HEIGHT, POINTS, sparkline
from sojourn.display.summary import ROWS
from sojourn.scenario.draft import Draft

HOSTILE = '<script>alert("x")</script> & [bold]'


class Page(HTMLParser):
    """Tags of a page, balanced or not, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Keep a tag; <br> has no end."""
        self.tags[tag] += 1
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Hold it to the last one that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.words.append(data)


def page(shown: Any) -> Page:
    """Parse a notebook display, and check what holds for all of them."""
    text = shown._repr_html_()
    parsed = Page(text)
    assert not parsed.open
    assert not parsed.tags["script"]
    # Nothing but the colours of the notebook: no page is dark on dark.
    assert not re.search(r"(?<![-\w])(color|background):(?!inherit|transparent)", text)
    return parsed


def scenario(**changes: Any) -> sj.Scenario:
    """Return a scenario of two groups of flows over one link."""
    keys: dict[str, Any] = {
        "duration": "3s",
        "warmup": "1s",
        "links": {"up": sj.Link(rate="5mbit", qdisc=sj.CoDel(limit="100kB"))},
        "flows": [
            sj.Flow(name="bulk", count=2, path=["up"], rtt="30ms"),
            sj.Flow(name="call", path=["up"], source=sj.Cbr()),
        ],
    }
    return sj.Scenario(**(keys | changes))


def test_a_scenario_shows_links_and_flows() -> None:
    """With Rust's defaults; an invalid one shows the error."""
    shown = page(scenario())
    for word in ("up", "5mbit, 0s, codel (limit 100kB)", "bulk (2)", "cubic", "UDP", "30ms"):
        assert word in shown.words
    assert shown.tags["table"] == 2
    changes = [sj.Change(at="2s", leave=["call"])]
    assert "1 change during the run" in page(scenario(changes=changes)).words
    bad = "".join(page(scenario(duration="3")).words)
    assert 'not valid: duration: "3" has no unit' in bad
    assert scenario().links["up"]._repr_html_() is None  # type: ignore[union-attr]


def test_a_result_shows_the_tables_of_run() -> None:
    """The same cells as on the terminal."""
    result = sj.simulate(scenario())
    shown = page(result)
    assert {"link", "utilisation", "up", "flows", "bulk (2)", "call"} <= set(shown.words)
    assert shown.tags["table"] == 2
    draft = Draft.read(EXAMPLES / "home-uplink.toml")
    with pytest.warns(sj.ScenarioWarning):
        warned = sj.simulate(draft.set(["duration=11s", "bottleneck.qdisc=prio"]))
    assert "warning: links.bottleneck.qdisc: prio" in "".join(page(warned).words)


def test_a_comparison_shows_its_table() -> None:
    """Headings, cells, and the meaning of the stars; the best is bold."""
    runs = sj.compare(scenario(), ["droptail", sj.CoDel(target="1ms")], seeds=4)
    shown = page(runs)
    assert {"droptail", "codel(target=1ms)", "queueing delay, 99 %, ms", "call"} <= set(shown.words)
    assert shown.tags["b"] > 1
    assert "seed by seed" in "".join(shown.words)
    one = page(sj.compare(scenario(), ["droptail", "codel"]))
    assert "one seed cannot rank" in "".join(one.words)


def test_all_text_is_escaped_and_long_tables_are_cut() -> None:
    """Names may contain anything; 100 links do not fill a notebook."""
    hostile = scenario(name=HOSTILE)
    labels = {HOSTILE: "droptail", "b<i>": "codel"}
    for shown in (hostile, sj.simulate(hostile), sj.compare(hostile, labels)):
        assert HOSTILE in "".join(page(shown).words)
    links = {f"l{n}": sj.Link(rate="1mbit") for n in range(ROWS + 3)}
    flows = [sj.Flow(name="f", path=["l0"])]
    parsed = page(sj.simulate(scenario(links=links, flows=flows)))
    assert "and 3 more" in parsed.words
    assert parsed.tags["tr"] == 2 + ROWS + 1 + 1


def test_one_is_singular(small: Path, tmp_path: Path, sojourn: Command) -> None:
    """In Python's output, and in tables and messages."""
    assert [counted(n, "link") for n in (0, 1, 2)] == ["0 links", "1 link", "2 links"]
    assert counted(2, "query", "queries") == "2 queries"
    one = scenario(flows=[sj.Flow(name="f", path=["up"], source=sj.Transfers(number=1))])
    result = sj.simulate(one)
    assert repr(result) == "Result(scenario: 1 link, 1 flow, 3s, seed 1)"
    assert repr(result.completions).endswith("; 1 row)")
    assert repr(sj.simulate(small)) == "Result(small: 1 link, 4 flows, 3s, seed 1)"
    small.write_text(SMALL.replace("count = 2", "count = 1"))
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('scenario = "small.toml"\n[axes]\n"up.qdisc" = ["red"]\n')
    assert "1 of 1 run made" in sojourn("sweep", sweep, "--out", tmp_path / "out")[1]
    arrivals = tmp_path / "in.csv"
    arrivals.write_text("i,t_us,flow,size_B\n0,0,0,1500\n")
    replay = ["replay", arrivals, "--qdisc", "codel", "--rate", "1mbit"]
    assert "1 packet: 1 sent" in sojourn(*replay, "--out", tmp_path / "out.csv")[1]
    empty = tmp_path / "empty.csv"
    empty.write_text("dropped\n")
    err = sojourn(*replay, "--follow", empty, "--out", tmp_path / "x.csv")[2]
    assert "0 rows for 1 arrival\n" in err


def test_a_comparison_of_buffers_says_so(small: Path, sojourn: Command) -> None:
    """The caption does not show the first buffer for all."""
    out = sojourn("compare", small, "--qdisc", "droptail,codel(limit=50kB)")[1]
    assert "only the discipline of up differs: 5mbit, buffers 100kB (droptail), 50kB (codel" in out


def test_series_are_shown_as_sparklines() -> None:
    """Only with `sample`: the delay of links, the goodput of groups, a line per discipline."""
    sampled = scenario(sample="50ms")
    shown = page(sj.simulate(sampled))
    assert shown.tags["svg"] == shown.tags["polyline"] == 3
    assert {"queueing delay over time", "goodput over time"} <= set(shown.words)
    assert any(re.fullmatch(r"queueing delay of up, 0 to [\d.]+ ms", one) for one in shown.words)
    assert not page(sj.simulate(scenario())).tags["svg"]
    runs = page(sj.compare(sampled, ["droptail", sj.CoDel(target="1ms"), "pie"]))
    assert runs.tags["svg"] == 3
    assert any(one.startswith("queueing delay over time, 0 to ") for one in runs.words)


def test_a_sparkline_has_the_heights_of_its_values() -> None:
    """The upper edge is the largest value or `most`; values that are not finite count as 0."""

    def heights(text: str) -> list[float]:
        points = re.findall(r"[\d.]+,([\d.]+)", text)
        return [(HEIGHT - 1 - float(y)) / (HEIGHT - 2) for y in points]

    assert heights(sparkline(np.array([0.0, 1.0, 2.0]), "x")) == [0.0, 0.5, 1.0]
    assert heights(sparkline(np.array([0.0, 1.0, np.nan]), "x", 4.0)) == [0.0, 0.25, 0.0]
    assert heights(sparkline(np.zeros(3), "x")) == [0.0, 0.0, 0.0]
    assert len(heights(sparkline(np.ones(1000), "x"))) == POINTS
    assert 'aria-label="&lt;b&gt;"' in sparkline(np.ones(2), "<b>")
    assert sparkline(np.full(3, np.nan), "x") == sparkline(np.ones(1), "x") == ""


class Shown(sj.Aqm):
    """Drop <everything>."""

    target: sj.Duration = "50ms"


def test_disciplines_tcps_and_sources_show_their_parameters() -> None:
    """Value, default and description with range; values that were given are bold."""
    parsed = page(sj.CoDel(target="7ms"))
    for word in ("codel", "target", "7ms", "5ms", "interval", "100ms", "source: RFC 8289"):
        assert any(word in text for text in parsed.words), word
    assert "Target queueing delay: acceptable minimum over an interval. (duration, 1us to 10s)" in (
        parsed.words
    )
    assert parsed.tags["b"] == 2, "the name and the target"
    assert page(sj.CoDel(target="5ms")).tags["b"] == 1
    mine = page(Shown(target="20ms", ecn=True))
    assert {"Shown", "target", "20ms", "50ms", "duration", "limit", "1000p"} <= set(mine.words)
    assert ": Drop <everything>." in mine.words
    assert mine.tags["b"] == 3
    for kind, number in ((sj.qdisc, 45), (sj.tcp, 12), (sj.source, 8)):
        models = [one for one in vars(kind).values() if getattr(one, "_checked_as", None)]
        leaves = [one for one in models if one.__module__ == kind.__name__]
        shown = [page(one()) for one in leaves if not one.__subclasses__()]
        assert len(shown) >= number
        assert all(one.tags["tr"] > 1 or not one.tags["table"] for one in shown)


def test_an_evaluation_shows_its_scorecard() -> None:
    """Counts, and the table of the terminal."""
    evaluation = sj.evaluate("codel", "1mbit", quick=True, only=["A1"])
    assert repr(evaluation) == "Evaluation(codel at 1mbit: 3 lines, 8 runs)"
    shown = page(evaluation)
    assert {"discipline", "codel", "A1 One TCP flow (5.1.1)", "droptail"} <= set(shown.words)
    assert "RFC 7928, shortened, at 1mbit, 4 seeds" in shown.words


def test_figures_show_themselves() -> None:
    """As PNG, without pyplot."""
    result = sj.simulate(scenario(sample="50ms"))
    for figure in (sj.draw(result), sj.draw_comparison({"a": [result]}, link="up")):
        assert figure._repr_png_()[:4] == b"\x89PNG"  # type: ignore[attr-defined]


class Display:
    """Stand-in for IPython.display that keeps what is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.HTML = str

    def display(self, text: str, *, display_id: bool) -> "Display":
        """Show an output that can be changed."""
        assert display_id
        self.shown.append(text)
        return self

    def update(self, text: str) -> None:
        """Change the output."""
        self.shown.append(text)


def test_a_progress_bar_is_an_output_of_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel only; it is empty before and after."""
    display = Display()
    shell = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert not progress.visible(), "a terminal of IPython"
    shell.kernel = object()
    assert progress.visible()
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "NOTEBOOK_S", 0.0)
    sj.compare(scenario(), ["droptail", "codel"], progress=True)
    first, *bars, last = display.shown
    assert (first, last) == ("", "")
    assert any("2 of 2 runs" in one for one in bars)
    assert all(re.search(r'<progress value="[01]\.\d+" max="1"', one) for one in bars)
