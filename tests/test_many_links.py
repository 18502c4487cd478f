"""Scenarios with many links: reports, figures, comparisons and explanations stay short."""

from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn.metrics.overview import compared_links
from sojourn.plotting.run import draw
from sojourn.scenario.draft import Draft, canonical
from sojourn.scenario.save import to_toml


def many(**changes: Any) -> dict[str, Any]:
    """Return 40 links, of which l35 has the longest queue, and 33 groups of flows."""
    links = {
        f"l{n}": {"rate": "10mbit" if n == 35 else "20mbit", "qdisc": "droptail"} for n in range(40)
    }
    flows: list[dict[str, Any]] = [
        {"name": f"f{n}", "path": [f"l{n}"], "source": f"cbr(rate={n + 1}00kbit)"}
        for n in range(32)
    ]
    flows.append({"name": "bulk", "path": ["l35"], "rtt": "10ms"})
    return {"duration": "1s", "links": links, "flows": flows, **changes}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the scenario to a file."""
    path = tmp_path / "many.toml"
    path.write_text(to_toml(many()))
    return path


def test_a_run_prints_the_longest_queues_and_the_highest_goodput(
    file: Path, sojourn: Command
) -> None:
    """Further rows are counted, and so are links alike."""
    code, out, _ = sojourn("run", file)
    assert code == 0
    lines = out.splitlines()
    assert lines[4].split()[0] == "l35"
    assert [line for line in lines if line.startswith("and ")] == ["and 10 more", "and 3 more"]
    assert "39 links like l0: 20mbit, 0s, droptail (limit 1000p)" in lines
    assert "l35: 10mbit, 0s, droptail (limit 1000p)" in lines
    names = [line.split()[0] for line in lines if " cbr " in line or " bulk " in line]
    assert names[:3] == ["bulk", "f31", "f30"]
    assert len(names) == 30


def test_a_figure_draws_the_longest_queues() -> None:
    """Eight links with a legend, and the conditions of links alike on one line."""
    figure: Any = draw(sj.simulate(many(sample="10ms")))
    queue = figure.axes[0]
    assert "8 of 40 links, those with the longest queues" in queue.get_title(loc="left")
    assert queue.get_legend_handles_labels()[1][0] == "l35"
    assert "39 links like l0: 20mbit" in figure.get_suptitle()


def test_links_are_chosen_by_a_pattern(file: Path, sojourn: Command) -> None:
    """In both languages; the comparison shows the links with the longest queues."""
    code, out, _ = sojourn("compare", file, "--qdisc", "droptail,codel", "--link", "l*")
    assert code == 0
    assert "only the disciplines of l0 and 39 more differ" in out
    assert "\nl35\n" in out
    runs = sj.compare(many(), "droptail,codel", link="l1*", also=["l35", "l2*"])
    qdiscs = {
        name: link["qdisc"]["name"] for name, link in runs["codel"][0].scenario["links"].items()
    }
    assert [name for name, qdisc in qdiscs.items() if qdisc == "codel"] == [
        name for name in qdiscs if name[:2] in {"l1", "l2"} or name == "l35"
    ]
    assert compared_links(runs, runs.link)[0] == "l35"
    code, out, _ = sojourn("run", file, "--qdisc", "codel", "--link", "l3*")
    assert "10 links like l3: 20mbit, 0s, codel (limit 1000p)" in out
    code, _, err = sojourn("compare", file, "--qdisc", "droptail,codel", "--link", "q*")
    assert code == 2
    assert '--link: no link matches "q*"; a link is called l0' in err


def test_an_explanation_counts_what_repeats(sojourn: Command, tmp_path: Path) -> None:
    """Ten findings of a rule, then their number; the verdict names ten standing queues."""
    flows = [{"name": f"b{n}", "path": [f"l{n}"], "rtt": "10ms"} for n in range(40)]
    path = tmp_path / "full.toml"
    path.write_text(to_toml(many(flows=flows, duration="2s")))
    code, out, _ = sojourn("explain", path)
    assert code == 0
    assert out.count("was a bottleneck") == 10
    assert "bottleneck: 30 more (--json has all)" in out
    assert "and 30 more" in out.splitlines()[1] + out.splitlines()[2] + out.splitlines()[3]


def test_a_key_with_a_pattern_changes_every_link_that_matches(file: Path, sojourn: Command) -> None:
    """In `--set` and in axes of sweeps; a link without a discipline has the default one."""
    changes = {"l3*.qdisc": "codel", "links.l2*.qdisc.limit": "50p", "f*.class": 3}
    links = {**many()["links"], "l2": {"rate": "20mbit"}}
    case = Draft.read(many(links=links)).set([f"{key}={value}" for key, value in changes.items()])
    tree = canonical(case)
    assert {n for n, link in tree["links"].items() if link["qdisc"]["name"] == "codel"} == {
        "l3",
        *(f"l3{n}" for n in range(10)),
    }
    assert {n for n, link in tree["links"].items() if link["qdisc"]["limit"] == "50p"} == {
        "l2",
        *(f"l2{n}" for n in range(10)),
    }
    assert {flow["name"] for flow in tree["flows"] if flow["class"] == 3} == {
        f"f{n}" for n in range(32)
    }
    rows = sj.sweep(
        many(), {"links.l*.qdisc": ["droptail(limit=5p)", "droptail(limit=50p)"]}, link="l35"
    )
    lossy, lossless = rows["loss_rate"].to_list()
    assert lossy > lossless
    for setting, message in {
        "x*.qdisc=codel": 'no link or flow matches "x*"',
        "links.f*.qdisc=codel": 'no link matches "f*"',
        "flows.l*.class=1": 'no flow matches "l*"',
        "l1*.rate=5": "links.l1.rate",
    }.items():
        code, _, err = sojourn("run", file, "--set", setting)
        assert code == 2
        assert message in err
