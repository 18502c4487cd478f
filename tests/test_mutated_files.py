"""Mutated data files: replays, packet traces and link traces are refused in a line, or usable."""

import json
from pathlib import Path

import pytest

import sojourn as sj
from mutation import LONG, edited
from sojourn._util import csv_table
from sojourn.engines import replay
from sojourn.scenario import link_trace, packet_trace

ARRIVALS = "i,t_us,flow,size_B,ecn\n" + "".join(
    f"{i},{i * 250},{i % 3},{500 + i},{i % 4}\n" for i in range(40)
)
DECISIONS = "dropped,marked\n" + "".join(f"{i % 2},0\n" for i in range(40))
PACKETS = "time_s,size_bytes,flow\n" + "".join(f"0.{i:02},{100 + i},{i % 2}\n" for i in range(40))
RATES = "t_s,rate_bps,delay_s\n" + "".join(f"{i},{i}000000,0.0{i % 10}\n" for i in range(40))
MOMENTS = "".join(f"{i * i}\n" for i in range(1, 40))


def one_line(path: Path, use: object) -> bool:
    """Use a file; return True if it was refused in one line that names it."""
    assert callable(use)
    try:
        use(path)
    except sj.InputError as error:
        message = str(error)
        assert "\n" not in message
        assert len(message) < 1200, message
        return True
    return False


def replayed(path: Path) -> None:
    """Replay the arrivals, and write the result."""
    decisions = replay.replay(path, {"name": "red", "limit": "20p"}, "1mbit")
    json.dumps(decisions.summary(), allow_nan=False)
    replay.write(decisions, path.with_name("out.csv"))


def followed(path: Path) -> None:
    """Replay with recorded decisions."""
    path.with_name("arrivals.csv").write_text(ARRIVALS)
    replay.replay(path.with_name("arrivals.csv"), {"name": "red"}, "1mbit", follow=path)


def sent(path: Path) -> None:
    """Send the packets of a trace."""
    flow = {"name": "f", "count": 2, "path": ["up"], "source": {"name": "trace", "path": str(path)}}
    sj.simulate({"duration": "1s", "links": {"up": {"rate": "1mbit"}}, "flows": [flow]})


def linked(path: Path) -> None:
    """Run over a link trace."""
    link = {"rate": "1mbit", "trace": str(path)}
    flows = [{"name": "f", "path": ["up"]}]
    sj.simulate({"duration": "100ms", "links": {"up": link}, "flows": flows})


def binned(path: Path) -> None:
    """Count the opportunities of a trace in bins."""
    link = {"rate": "1mbit", "trace": {"file": str(path), "bin_ms": 7}}
    flows = [{"name": "f", "path": ["up"]}]
    sj.simulate({"duration": "100ms", "links": {"up": link}, "flows": flows})


@pytest.mark.parametrize(
    ("text", "use"),
    [
        (ARRIVALS, replayed),
        (DECISIONS, followed),
        (PACKETS, sent),
        (RATES, linked),
        (MOMENTS, linked),
        (MOMENTS, binned),
    ],
    ids=["arrivals", "decisions", "packets", "rates", "opportunities", "bins"],
)
def test_mutated_files_are_refused_in_one_line_or_used(
    text: str, use: object, tmp_path: Path
) -> None:
    """400 versions of each, with changed bytes, words, cells and lines."""
    path = tmp_path / "file.csv"
    refused, total = 0, 0
    assert not (path.write_text(text) and one_line(path, use))
    for name, raw in edited(text, 400):
        path.write_bytes(raw)
        total += 1
        try:
            refused += one_line(path, use)
        except BaseException as error:
            kind = type(error).__name__
            pytest.fail(f"{name}: {kind}: {str(error)[:300]}\n{raw[:600]!r}")
    assert 100 < refused < total


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_s,rate_bps\n0,1e999999999\n", '"1e999999999" is not a number'),
        ("t_s,rate_bps\n0,1e300\n", '"1e300" is too large'),
        ("t_s,rate_bps\n0,1_000\n", '"1_000" is not a number'),
        ("t_s,rate_bps,t_s\n0,5,1\n", "column t_s is given twice"),
        (f't_s,rate_bps\n0,"{LONG * 2}"\n', "line 2: field larger than field limit"),
        (f"t_s,rate_bps\n0,{LONG}\n", f'"{"x" * 60}..." (100000 characters) is not a number'),
        ("5\n²\n", 'line 2: "²": a trace of Mahimahi has one whole number'),
    ],
)
def test_numbers_of_recorded_links_are_bounded(text: str, message: str, tmp_path: Path) -> None:
    """An exponent must not become an integer of a billion digits."""
    (tmp_path / "trace").write_text(text)
    with pytest.raises(sj.InputError) as refused:
        link_trace.read(tmp_path / "trace")
    assert message in str(refused.value)


def test_bins_are_bounded(tmp_path: Path) -> None:
    """By Rust's limit, before memory is allocated."""
    (tmp_path / "trace").write_text("1\n9999999999\n")
    with pytest.raises(sj.InputError, match=r"bin_ms: 1 makes 9999999999 bins, allowed: up to"):
        link_trace.read(tmp_path / "trace", 1)


@pytest.mark.parametrize("header", [f'"{LONG * 2}",t_us', "i,i ,t_us,flow,size_B", "i\x00,t_us"])
def test_odd_headers_of_tables(header: str, tmp_path: Path) -> None:
    """A huge name, names that differ by a blank, a zero byte: refused in a line, or read."""
    path = tmp_path / "table.csv"
    path.write_text(f"{header}\n" + ",".join(["0"] * len(header.split(","))) + "\n")
    one_line(path, lambda path: csv_table.read_table(path, ("t_us",)))
    one_line(path, packet_trace.columns)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\tb\nc", LONG])
def test_names_from_a_scenario_are_printed_on_one_line(name: str) -> None:
    """Of files that are not there, and of the links and flows that name them."""
    trace = {"links": {name: {"rate": "5mbit", "trace": name}}}
    source = {"flows": [{"name": name, "source": {"name": "trace", "path": name}}]}
    for tree in (trace, source):
        with pytest.raises(sj.InputError) as refused:
            sj.simulate(tree)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 1000
