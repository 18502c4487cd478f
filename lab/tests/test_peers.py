"""Comparison with csg-htsim and ns-3: the same work, outputs of the programs, the page."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.scenario.draft import canonical
from sojourn_lab.speed.peers import page, programs, work
from sojourn_lab.speed.peers.programs import MissingError, Run


def numbers(flows: str) -> list[list[int]]:
    """Return the lines of a list of flows."""
    return [[int(word) for word in line.split()] for line in flows.splitlines()]


@pytest.mark.parametrize("acks", ["direct", "links"])
def test_each_host_of_a_permutation_sends_and_receives_once(acks: str) -> None:
    """The list has the hosts of the scenario; acks as delay have no links."""
    one = work.permutation(ms=1, acks=acks)
    lines = numbers(one.flows)
    flows = canonical(one.scenario)["flows"]
    assert [f"h{a}-h{b}" for a, b, *_ in lines] == [flow["name"] for flow in flows]
    assert {a for a, *_ in lines} == {b for _, b, *_ in lines} == set(range(128))
    assert all(line[4:] == [0, 0] for line in lines)
    assert all(bool(flow["return_path"]) == (acks == "links") for flow in flows)


def test_transfers_of_the_list_are_those_of_the_scenario() -> None:
    """Times and sizes agree; a size is a number of packets in the list."""
    one = work.web_search(transfers=50, acks="links")
    in_list = Counter(
        (f"h{a}-h{b}", start, packets) for a, b, _, _, start, packets in numbers(one.flows)
    )
    in_scenario = Counter(
        (flow["name"], round(time * 1e9), -(-size // work.PAYLOAD))
        for flow in canonical(one.scenario)["flows"]
        for time, size in zip(flow["source"]["time_s"], flow["source"]["size_bytes"], strict=True)
    )
    assert in_list == in_scenario
    assert in_list.total() == 50
    assert max(start for _, start, _ in in_list) // 1000 + 5000 == one.us


def test_paths_have_the_number_of_their_switch() -> None:
    """Core switches have global numbers, aggregation switches those in their pod."""
    case = sj.fat_tree(8, pairs=[(0, 1), (0, 5), (0, 127), (17, 127)])
    for flow in work.typed_flows(case):
        a, b, forward, back = work.ends(flow)
        assert flow.name == f"h{a}-h{b}"
        for index, links in ((forward, flow.path), (back, flow.return_path)):
            switches = [link.split("-")[1] for link in links or ()]
            if len(switches) == 6:
                assert switches[2] == f"c{index}"
            elif len(switches) == 4:
                assert switches[1] == f"a{index}"
            else:
                assert index == 0


@pytest.mark.parametrize(
    ("probability", "size"), [(0, 1), (0.15, 10_000), (0.175, 15_000), (1, 30_000_000)]
)
def test_sizes_follow_the_table(probability: float, size: int) -> None:
    """Sizes are linear between the points of the table."""
    assert work.size_at(probability, work.WEB_SEARCH) == size


def test_outputs_are_read() -> None:
    """The last line counts; sojourn calls its set-up reading."""
    assert programs.parse('pathcount 16\n{"hops": 5, "setup_s": 0.5, "run_s": 2}\n') == Run(
        5, 0.5, 2
    )
    printed = '{"hops": 7, "read_kb": 1, "read_s": 0.1, "run_kb": 2, "run_s": 1.5}'
    assert programs.parse(printed) == Run(7, 0.1, 1.5)


def test_the_fastest_of_alternating_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands take turns."""
    times = iter([3, 9, 2, 8, 4, 7])
    called = []

    def call(name: str) -> subprocess.CompletedProcess[str]:
        called.append(name)
        line = f'{{"hops": 10, "setup_s": 0, "run_s": {next(times)}}}'
        return subprocess.CompletedProcess([name], 0, stdout=line)

    monkeypatch.setattr(programs, "call", call)
    best = programs.measure_in_turns({"sojourn": ["a"], "csg-htsim": ["b"]}, 3)
    assert called == ["a", "b"] * 3
    assert [run.run_s for run in best.values()] == [2, 7]


def test_htsim_is_copied_or_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout is copied. Without one and without network a sentence says what to do."""
    (tmp_path / "checkout" / "sim").mkdir(parents=True)
    (tmp_path / "checkout" / "sim" / "Makefile").write_text("all:\n")
    programs.copy_htsim(tmp_path / "checkout", tmp_path / "copy")
    assert (tmp_path / "copy" / "Makefile").exists()

    def refuse(*command: object) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(programs, "call", refuse)
    monkeypatch.setattr(programs, "FOLDER", tmp_path)
    with pytest.raises(MissingError, match="HTSIM=/path"):
        programs.copy_htsim(None, tmp_path / "clone")
    with pytest.raises(MissingError, match="apt-get install libns3-dev"):
        programs.build_ns3(None)


def test_libraries_of_a_build_of_ns3(tmp_path: Path) -> None:
    """Names have a version and a profile; other modules have longer names."""
    (tmp_path / "lib").mkdir()
    for name in [*programs.NS3_LIBRARIES, "internet-apps"]:
        (tmp_path / "lib" / f"libns3.37-{name}-release.so").touch()
    names = [file.name for file in programs.ns3_libraries(tmp_path)]
    assert names[1] == "libns3.37-internet-release.so"
    (tmp_path / "lib" / names[1]).unlink()
    with pytest.raises(MissingError, match="libns3-internet"):
        programs.ns3_libraries(tmp_path)


def test_the_page_compares_speeds() -> None:
    """A simulator that does not do the work has no number."""
    results = {
        "permutation": {"sojourn": Run(8_000_000, 0.1, 1), "csg-htsim": Run(6_000_000, 0.1, 3)},
        "short": {"sojourn": Run(1_000_000, 0.1, 0.1), "ns-3": Run(1_000_000, 0.2, 2)},
    }
    text = page.page(results, 3, "a machine", "a version")
    assert "| permutation | 8.00 | 2.00 | - | 4.0 | - |" in text
    assert "| short | 10.00 | - | 0.50 | - | 20.0 |" in text
    assert "| short | ns-3 | 1.00 M | 0.20 | 2.00 | 2000 |" in text
