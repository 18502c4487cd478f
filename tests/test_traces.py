"""Traces: files are read by Python, columns are checked by Rust."""

import gzip
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import SMALL, Command

ROWS = "time_s,size_bytes,flow\n0.5,100,0\n1,200,1\n1.25,1500,0\n"


def scenario(source: sj.source.Trace, **more: Any) -> sj.Scenario:
    """Return a link of 10 Mbit/s with the trace over it."""
    flow = sj.Flow(name="t", count=2, path=["up"], source=source, **more)
    return sj.Scenario(
        duration="3s", packet_log=True, links={"up": sj.Link(rate="10mbit")}, flows=[flow]
    )


def test_packets_leave_as_recorded(tmp_path: Path) -> None:
    """Times and sizes on the link equal the file's, gzipped or plain."""
    plain, zipped = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(ROWS)
    zipped.write_bytes(gzip.compress(ROWS.encode()))
    for path in (plain, zipped):
        log = sj.simulate(scenario(sj.load_trace(path, start="100ms"))).links["up"].packet_log
        assert log.arrived_s.tolist() == [0.6, 1.1, 1.35]
        assert log.size_bytes.tolist() == [100, 200, 1500]
        assert log.flow.tolist() == [0, 1, 0]


def test_flows_start_as_recorded(tmp_path: Path) -> None:
    """With a TCP, rows are flows."""
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    result = sj.simulate(scenario(sj.load_trace(path), tcp="newreno", rtt="10ms"))
    assert sorted(result.completions["start_s"]) == [0.5, 1.0, 1.25]
    assert sorted(result.completions["bytes"]) == [100, 200, 1500]
    assert result.flows["t.1"]["started"] == 1


def test_a_scenario_file_names_a_file_next_to_it(tmp_path: Path, sojourn: Command) -> None:
    """The path is relative to the scenario; a bad one is refused with its key."""
    (tmp_path / "t.csv").write_text(ROWS)
    text = SMALL.replace(
        '{ name = "cbr", rate = "64kbit", packet = "200B" }', '{ name = "trace", path = "t.csv" }'
    ).replace('name = "call"', 'name = "call"\ncount = 2')
    path = tmp_path / "s.toml"
    path.write_text(text)
    assert sojourn("run", path)[0] == 0
    path.write_text(text.replace("t.csv", "no.csv"))
    code, _, err = sojourn("run", path)
    assert code == 2
    assert f"{path}: flows.call.source.path: " in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("time_s,size\n1,2\n", "column size_bytes is missing"),
        ("time_s,size_bytes\n-1,2\n", "row 1, column time_s"),
        ("time_s,size_bytes\n1,2.5\n", "row 1, column size_bytes"),
        (
            "time_s,size_bytes\n2,1\n1,1\n",
            "Trace.time_s.1: 1 is earlier than the previous row",
        ),
        ("time_s,size_bytes\n", "Flow.source.time_s: is missing or empty"),
        (
            "time_s,size_bytes,flow\n1,1,2\n",
            "Flow.source.flow.0: 2 must be below the count of the group, 2",
        ),
    ],
)
def test_bad_traces_are_refused(rows: str, message: str, tmp_path: Path) -> None:
    """The message names the row."""
    path = tmp_path / "t.csv"
    path.write_text(rows)
    with pytest.raises(sj.InputError) as error:
        sj.simulate(scenario(sj.load_trace(path)))
    assert message in str(error.value)


def test_path_and_columns_contradict_each_other() -> None:
    """Giving both is refused."""
    source = {"name": "trace", "path": "t.csv", "time_s": [1]}
    flows = [{"name": "t", "path": ["up"], "source": source}]
    with pytest.raises(sj.InputError, match=r"source\.path: cannot be combined with time_s"):
        sj.simulate({"duration": "1s", "links": {"up": {"rate": "1mbit"}}, "flows": flows})


def test_queries_are_columns_of_a_result() -> None:
    """A row per query; other sources have none, and the message says so."""
    incast = sj.source.Incast(size="10kB", number=5, gap="1ms")
    flow = sj.Flow(name="s", count=8, path=["up"], rtt="1ms", source=incast)
    case = sj.Scenario(duration="5s", links={"up": sj.Link(rate="1gbit")}, flows=[flow])
    queries = sj.simulate(case).queries
    assert len(queries["duration_s"]) == 5
    assert (queries["duration_s"] >= 8 * 10_000 * 8 / 1e9).all()
    bulk = sj.Flow(name="b", path=["up"])
    none = sj.simulate(
        sj.Scenario(duration="1s", links={"up": sj.Link(rate="1mbit")}, flows=[bulk])
    )
    with pytest.raises(AttributeError, match="no source of queries"):
        _ = none.queries.duration_s
