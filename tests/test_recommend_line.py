"""The line of `recommend`: rates, times, durations, and the flows of each kind of traffic."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.recommendation import line
from sojourn.recommendation.line import Line, Trace


def line_of(traffic: str = "home", down: str = "20mbit", up: str = "5mbit", **keys: Any) -> Line:
    """Return a line with a round-trip time of 20 ms."""
    return line.make(down, up, keys.pop("rtt", "20ms"), traffic, **keys)


def flows(access: Line, load: float, **keys: Any) -> dict[str, Mapping[str, Any]]:
    """Return the flows of a run by name."""
    tree = line.scenario(access, {"name": "codel"}, load=load, seed=7, shaped=True, **keys)
    return {flow["name"]: flow for flow in tree["flows"]}


def counts(access: Line, load: float) -> dict[str, int]:
    """Return the number of flows of each group."""
    return {name: flow.get("count", 1) for name, flow in flows(access, load).items()}


@pytest.mark.parametrize("text", ["64kbit", "1000gbit"])
def test_rates_end_at_64_kbit_and_a_terabit(text: str) -> None:
    """Both ends are allowed."""
    assert line.rate_of("--up", text)[1] is None
    for outside in ("63kbit", "1001gbit"):
        with pytest.raises(sj.InputError, match=r"--up: .* is out of range, allowed: 64kbit to"):
            line.rate_of("--up", outside)


def test_a_word_that_looks_like_a_file_is_named_as_one() -> None:
    """With a slash or a suffix."""
    for text in ("lte.trace", "a/b"):
        with pytest.raises(sj.InputError, match=r"; or the file of a trace$"):
            line.rate_of("--up", text)
    with pytest.raises(sj.InputError) as error:
        line.rate_of("--up", "fast")
    assert "file of a trace" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "ends"),
    [("20ms", (0.02, 0.02)), ("20ms..120ms", (0.02, 0.12)), ("20ms .. 20ms", (0.02, 0.02)),
     ("1us..5s", (1e-6, 5.0))],
)  # fmt: skip
def test_round_trip_times_are_ranges(text: str, ends: tuple[float, float]) -> None:
    """From 1 us to 5 s, both allowed; equal ends are one time."""
    assert line.rtt_of(text) == pytest.approx(ends)
    for outside in ("999ns", "5001ms", "20ms..10ms", "1ms..6s"):
        with pytest.raises(sj.InputError, match=r"--rtt: .* is out of range"):
            line.rtt_of(outside)
    with pytest.raises(sj.InputError, match="is not a time or a range like"):
        line.rtt_of("1ms..2ms..3ms")


@pytest.mark.parametrize(
    ("down", "up", "rtt", "lasts_s"),
    [
        ("20mbit", "5mbit", "20ms", 30.0),  # 60,000 packets take 36 s: at most 30
        ("36mbit", "5mbit", "20ms", 20.0),
        ("5mbit", "36mbit", "20ms", 20.0),
        ("100mbit", "5mbit", "20ms", 17.2),  # 12 s are measured
        ("36mbit", "5mbit", "10ms..200ms", 40.0),  # 200 round-trip times
        ("100gbit", "1gbit", "500us", 1.0),  # 2000 of them, where they are less than 17.2 s
        ("100gbit", "1gbit", "1us", 0.02),  # at least 20 ms
    ],
)
def test_a_run_lasts_for_its_packets_and_round_trips(
    down: str, up: str, rtt: str, lasts_s: float
) -> None:
    """60,000 packets of 1500 bytes at the faster rate."""
    assert line_of(down=down, up=up, rtt=rtt).duration_s == pytest.approx(lasts_s)


@pytest.mark.parametrize(("period_s", "lasts_s"), [(10.0, 30.0), (45.0, 45.0), (90.0, 60.0)])
def test_a_run_lasts_for_a_period_of_a_trace(period_s: float, lasts_s: float) -> None:
    """At most 60 s of it."""
    traces = {"down": Trace("x", {}, 20e6, period_s), "up": Trace("y", {}, 5e6, 1.0)}
    access = Line(20e6, 5e6, (0.02, 0.02), "home", False, "1000p", (), traces)
    assert access.duration_s == lasts_s


def test_only_home_and_office_are_shaped() -> None:
    """Unless asked otherwise."""
    assert [line_of(name).shaped for name in line.TRAFFICS] == [True, True, False, False]
    assert [line_of(name, shaper=True).shaped for name in line.TRAFFICS] == [True] * 4
    assert not line_of(shaper=False).shaped
    assert line_of("datacenter").traffic == line_of("Datacentre").traffic == "datacentre"


def test_a_run_has_both_links_and_the_times_of_the_line() -> None:
    """A shaper has 95 % of each rate; 30 % of the run are warm-up."""
    access = line_of(rtt="20ms..60ms")
    tree = line.scenario(access, {"name": "codel"}, load=1.0, seed=7, shaped=True)
    assert {way: link["rate"] for way, link in tree["links"].items()} == {
        "down": "19000000bit", "up": "4750000bit"
    }  # fmt: skip
    assert (tree["duration"], tree["warmup"], tree["seed"]) == ("30000000000ns", "9000000000ns", 7)
    assert (tree["sample"], tree["sample_flows"]) == ("1500000000ns", False)
    assert {flow["rtt"] for flow in tree["flows"]} == {"uniform(20000000ns, 60000000ns)"}
    slow = line.scenario(line_of(rtt="1s..2s"), {"name": "pie"}, load=1.0, seed=7, shaped=True)
    assert slow["flows"][0]["rtt"] == "uniform(1000000000ns, 2000000000ns)"
    assert slow["duration"] == "400000000000ns"
    one = line.scenario(line_of(rtt="2s"), {"name": "pie"}, load=1.0, seed=7, shaped=True)
    assert one["flows"][0]["rtt"] == "2000000000ns"
    bare = line.scenario(access, {"name": "codel"}, load=1.0, seed=7, shaped=False)
    assert bare["links"]["down"]["rate"] == "20000000bit"


def test_a_run_at_another_round_trip_time_is_long_enough() -> None:
    """200 of 400 ms; for a shorter one the run is not shortened."""
    access = line_of()
    make = {"load": 1.0, "seed": 1, "shaped": True}
    far = line.scenario(access, {"name": "codel"}, rtt_s=(0.4, 0.4), **make)  # type: ignore[arg-type]
    assert (far["duration"], far["flows"][0]["rtt"]) == ("80000000000ns", "400000000ns")
    near = line.scenario(access, {"name": "codel"}, rtt_s=(0.01, 0.01), **make)  # type: ignore[arg-type]
    assert near["duration"] == "30000000000ns"


def test_a_time_as_a_limit_is_bytes_at_the_rate() -> None:
    """At least a packet; other limits stay."""
    assert line._sized({"name": "x", "limit": "100ms"}, 20e6, "up") == {
        "name": "x",
        "limit": "250000B",
    }
    assert line._sized({"limit": "100us"}, 20e6, "up") == {"limit": "1514B"}
    assert line._sized({"limit": "10p"}, 20e6, "up") == {"limit": "10p"}
    assert line._sized({"name": "x"}, 20e6, "up") == {"name": "x"}


def test_home_and_office_have_transfers_pages_and_a_call() -> None:
    """Numbers follow the load, but for the call; at least one flow of each."""
    assert counts(line_of(), 1.0) == {
        "download": 2, "download_one": 1, "upload": 1, "upload_one": 1, "web": 6, "request": 8,
        "hear": 1, "speak": 1,
    }  # fmt: skip
    assert counts(line_of(), 2.0) == {
        "download": 5, "download_one": 1, "upload": 3, "upload_one": 1, "web": 12, "request": 8,
        "hear": 1, "speak": 1,
    }  # fmt: skip
    assert counts(line_of(), 0.1)["upload"] == 1
    assert counts(line_of("office"), 1.0) == {
        "download": 9, "download_one": 1, "upload": 5, "upload_one": 1, "web": 48, "request": 8,
        "hear": 1, "speak": 1,
    }  # fmt: skip
    assert counts(line_of("office"), 2.0)["web"] == 96
    by_name = flows(line_of("office"), 0.5)
    assert (by_name["download"]["count"], by_name["upload"]["count"]) == (4, 2)
    hosts = [(by_name[name].get("receiver"), by_name[name].get("sender"))
             for name in ("download", "download_one", "upload", "upload_one", "web")]  # fmt: skip
    assert hosts == [("busy", None), ("quiet", None), (None, "busy"), (None, "quiet"), (None, None)]
    assert (by_name["download"]["path"], by_name["download"]["return_path"]) == (["down"], ["up"])
    assert (by_name["upload"]["path"], by_name["upload"]["return_path"]) == (["up"], ["down"])
    assert by_name["web"]["path"] == by_name["hear"]["path"] == ["down"]
    assert by_name["speak"]["path"] == ["up"]
    assert by_name["speak"]["source"] == {
        "name": "cbr", "rate": "80000bit", "packet": "200B", "jitter": 0.1
    }  # fmt: skip
    assert by_name["hear"]["source"] == by_name["speak"]["source"]
    assert by_name["upload"]["source"] == {"name": "bulk", "start": "uniform(0s, 3000000000ns)"}
    assert by_name["upload"]["tcp"] == {"name": "cubic", "profile": "rfc", "ecn": False}


def test_servers_have_bulk_and_short_transfers() -> None:
    """Short ones with 40 % of the rate, at most 80 %; DCTCP with ECN in a data centre."""
    access = line_of("server", up="1gbit")
    by_name = flows(access, 1.0)
    assert counts(access, 1.0) == {"bulk": 4, "short": 8, "request": 8, "probe": 1}
    assert by_name["short"]["source"]["load"] == "400000000bit"
    assert counts(access, 2.0)["bulk"] == 8
    assert by_name["probe"]["source"]["packet"] == "200B"
    assert flows(access, 1.5)["short"]["source"]["load"] == "600000000bit"
    assert flows(access, 5.0)["short"]["source"]["load"] == "800000000bit"
    assert {flow["path"][0] for flow in by_name.values()} == {"up"}
    assert by_name["bulk"]["tcp"] == {"name": "cubic", "profile": "rfc", "ecn": False}
    there = flows(line_of("datacentre", up="1gbit"), 1.0)
    assert (
        there["bulk"]["tcp"]
        == there["short"]["tcp"]
        == {"name": "dctcp", "profile": "rfc", "ecn": True}
    )


def test_a_probe_sends_at_least_100_packets() -> None:
    """100 packets of 200 bytes in 20 ms are 8 Mbit/s; in long runs it is a call's rate."""
    short = line_of("server", down="100gbit", up="100gbit", rtt="1us")
    assert flows(short, 1.0)["probe"]["source"]["rate"] == "8000000bit"
    assert flows(line_of("server"), 1.0)["probe"]["source"]["rate"] == "80000bit"


OWN = """\
duration = "10s"
[links.up]
rate = "1mbit"
[links.down]
rate = "2mbit"
[[flows]]
name = "a"
count = 4
path = ["up"]
return_path = ["down"]
[[flows]]
name = "b"
count = 4
path = ["down"]
source = "cbr"
"""


def test_flows_of_a_scenario_follow_the_load(tmp_path: Path) -> None:
    """Endless ones only; they use links called up and down."""
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    access = line_of(str(file))
    assert access.shaped
    assert counts(access, 0.5) == {"a": 2, "b": 4}
    assert counts(access, 0.1) == {"a": 1, "b": 4}
    assert flows(access, 1.0)["a"]["rtt"] == "20000000ns"
    file.write_text(OWN.replace("down", "side"))
    with pytest.raises(sj.InputError, match="its links must be called up and down, not side, up"):
        line_of(str(file))
    with pytest.raises(sj.InputError, match=r"unknown traffic .hom., did you mean"):
        line_of("hom")


def test_a_trace_of_a_link_names_its_file() -> None:
    """With the period, if it repeats."""
    assert Trace("f", {"repeat": "2s", "t_ns": [0]}, 1e6, 2.0).table() == {
        "file": "f", "repeat": "2s"
    }  # fmt: skip
    assert Trace("f", {"t_ns": [0]}, 1e6, 2.0).table() == {"file": "f"}


def test_a_wrong_buffer_names_the_option() -> None:
    """Not the key of a scenario."""
    with pytest.raises(sj.InputError) as error:
        line_of(buffer="abc")
    text = '--buffer: "abc" does not start with a plain number; or a time like 100ms'
    assert str(error.value) == text


def test_a_line_has_flows_of_a_file_only(tmp_path: Path) -> None:
    """A file whose flows name a class in Python must be trusted."""
    assert line_of().flows == ()
    file = tmp_path / "own.toml"
    flow = '[[flows]]\nname = "a"\npath = ["up"]\nsource = "s.py:Mine"\n'
    file.write_text(f'duration = "1s"\n[links.up]\nrate = "1mbit"\n{flow}')
    with pytest.raises(sj.InputError, match="trust"):
        line_of(str(file))
