"""Texts of figures neither overlap nor are cut: over many sizes, with real simulations."""

import itertools
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.scenario.draft import Draft
from sojourn.sweeps.conditions import conditions

DISCIPLINES = (
    "droptail", "codel", "fq_codel", "red", "pie", "pi2", "blue", "cobalt", "sfb", "choke",
    "fq_pie", "drr",
)  # fmt: skip

GROUPS: tuple[dict[str, Any], ...] = (
    {"name": "bulk", "count": 2},
    {"name": "call", "source": {"name": "cbr", "rate": "64kbit", "packet": "200B"}},
    {
        "name": "short-web-transfers-to-the-content-delivery-network",
        "source": {"name": "transfers", "size": "20kB", "gap": "100ms"},
    },
    {"name": "downloads-of-operating-system-updates", "count": 7},
    {
        "name": "calls_in_the_other_direction_through_a_long_name",
        "count": 2,
        "source": {"name": "cbr", "rate": "64kbit", "packet": "200B"},
    },
    {"name": "f"},
)
"""Six groups of flows, with short and long names."""


def case(groups: int, *, two_way: bool) -> Draft:
    """Return a short scenario with `groups` groups; every second one in the reverse direction."""
    link = {"rate": "2mbit", "delay": "10ms", "qdisc": {"name": "codel", "limit": "50kB"}}
    down = "downstream-of-the-cable-modem"
    links = {"up": link} | ({down: link | {"rate": "20mbit"}} if two_way else {})
    flows = []
    for n, group in enumerate(GROUPS[:groups]):
        there, back = ("up", down) if n % 2 == 0 or not two_way else (down, "up")
        flows.append({"path": [there], "rtt": "30ms", **group})
        if two_way and group.get("source", {}).get("name") != "cbr":
            flows[-1]["return_path"] = [back]
    tree = {
        "name": "a-scenario-with-a-name-of-some-length",
        "duration": "3s",
        "warmup": "1s",
        "links": links,
        "flows": flows,
    }
    return Draft(tree).with_sample()


def boxes(figure: Any) -> list[tuple[str, Any]]:
    """Return the drawn texts of a figure and their positions in pixels."""
    from matplotlib.axis import Tick
    from matplotlib.text import Text

    figure.draw_without_rendering()
    of_ticks = {text for tick in figure.findobj(Tick) for text in (tick.label1, tick.label2)}
    texts = [text for text in figure.findobj(Text) if text not in of_ticks]
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        room = 1e-9 * (high - low)
        # Labels beyond the limits exist, but are not drawn.
        for tick in axis.get_major_ticks():
            texts += [tick.label1] if low - room <= tick.get_loc() <= high + room else []
    shown = [text for text in texts if text.get_text().strip() and text.get_visible()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


def check(figure: Any) -> None:
    """Check that no texts overlap and that all are within the figure."""
    whole = figure.bbox
    texts = boxes(figure)
    assert len(texts) > 10
    for text, place in texts:
        inside = whole.x0 - 1 <= place.x0 and place.x1 <= whole.x1 + 1
        inside &= whole.y0 - 1 <= place.y0 and place.y1 <= whole.y1 + 1
        assert inside, f"{text!r} is cut"
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        # Two pixels of a hundred to the inch: boxes have the room of letters that are not there.
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 2 or along <= 2, f"{one!r} overlaps {other!r}"


@pytest.mark.parametrize("two_way", [False, True], ids=["one way", "two ways"])
@pytest.mark.parametrize("groups", range(1, 7))
def test_figure_of_a_run_overlaps_nowhere(groups: int, two_way: bool) -> None:
    """One to six groups, with windows of chosen flows too."""
    result = sj.simulate(case(groups, two_way=two_way))
    check(sj.draw(result))
    check(sj.draw(result, flows=["bulk"], title="one " * 40, size="7x9in"))
    check(sj.draw(result, title="", size="3.5x10in"))


@pytest.mark.filterwarnings("ignore:seed. .* identical results:sojourn.ScenarioWarning")
@pytest.mark.parametrize("two_way", [False, True], ids=["one way", "two ways"])
@pytest.mark.parametrize(
    ("groups", "disciplines", "seeds"),
    [(1, 1, 1), (1, 12, 10), (2, 2, 2), (3, 4, 10), (4, 7, 1), (5, 12, 1), (6, 1, 2), (6, 4, 10),
     (6, 12, 2)],
)  # fmt: skip
def test_figure_of_a_comparison_overlaps_nowhere(
    groups: int, disciplines: int, seeds: int, two_way: bool
) -> None:
    """One to twelve disciplines, one to six groups, one to ten seeds."""
    tree = case(groups, two_way=two_way)
    runs = sj.compare(tree, DISCIPLINES[:disciplines], link="up", seeds=seeds)
    check(sj.draw_comparison(runs, link="up"))
    if groups <= 3 and disciplines <= 4:
        check(sj.draw_comparison(runs, link="up", title="", size="3.5x14in"))


@pytest.mark.parametrize("kind", ["line", "heat", "ecdf", "box"])
def test_figures_of_a_sweep_overlap_nowhere(kind: str, tmp_path: Path) -> None:
    """Twelve lines, boxes or rows; a long column; a narrow figure."""
    names = list(DISCIPLINES)
    axes = {"discipline": {"set": "up.qdisc", "values": names}, "bulk.count": [1, 2, 3]}
    sj.sweep(case(3, two_way=False), axes, seeds=2, out=tmp_path)
    rows = sj.results(tmp_path)
    y = "short-web-transfers-to-the-content-delivery-network.fct_mean"
    where: dict[str, Any] = {"by": "discipline"}
    if kind in ("line", "heat"):
        where["x"] = "bulk.count"
    else:
        rows = rows.filter(rows["bulk.count"] == 2)
    check(sj.plot(rows, y=y, kind=kind, **where))  # type: ignore[arg-type]


def test_caption_names_only_drawn_items(tmp_path: Path) -> None:
    """Neither unrelated links, nor a discipline that is one of several."""
    axes = {"discipline": {"set": "up.qdisc", "values": ["codel", "red"]}, "bulk.count": [1, 2]}
    sj.sweep(case(2, two_way=True), axes, out=tmp_path)
    rows, about = sj.results(tmp_path), conditions(tmp_path)
    both = sj.plot(rows, y="sojourn_p99", x="bulk.count", by="discipline", about=about)
    assert " ".join(both.get_suptitle().split()) == (
        "a-scenario-with-a-name-of-some-length queueing delay, ms, 99th percentile "
        "up: 2mbit, 10ms, buffer 50kB; varied: discipline, bulk.count"
    )
    one = rows.filter(rows["discipline"] == "red")
    figure = sj.plot(one, y="call.delay_p99", x="bulk.count", about=about)
    above = " ".join(figure.get_suptitle().split())
    assert "discipline red" in above
    assert above.endswith("varied: bulk.count")
    assert "up:" not in above, "the call goes down"
    assert "1 seed, 2 runs" in figure.get_supxlabel()
