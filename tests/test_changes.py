"""Varying paths, from Python and from files: traces, losses, changes, classes."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from conftest import EXAMPLES
from sojourn import _sojourn, metrics
from sojourn.scenario import describe, link_trace
from sojourn.scenario.draft import Draft, parse

LINK = {"rate": "8mbit", "delay": "5ms", "qdisc": {"name": "droptail", "limit": "30p"}}


def case(**more: Any) -> dict[str, Any]:
    """Return a scenario with a bulk flow and a call over one link."""
    flows = [
        {"name": "ftp", "count": 2, "path": ["up"], "rtt": "40ms"},
        {"name": "call", "path": ["up"], "source": {"name": "cbr", "rate": "400kbit"}},
    ]
    return {"duration": "10s", "sample": "100ms", "links": {"up": LINK}, "flows": flows} | more


def test_classes_equal_tables() -> None:
    """Changes, loss, trace and class are the same as Structs and as a tree."""
    tree = case(changes=[{"at": "5s", "leave": ["ftp"], "links": {"up": {"rate": "4mbit"}}}])
    tree["links"] = {"up": {**LINK, "loss": 0.01}}
    tree["flows"][1]["class"] = 46
    red = sj.DropTail(limit="30p")
    structs = sj.Scenario(
        duration="10s",
        sample="100ms",
        links={"up": sj.Link(rate="8mbit", delay="5ms", qdisc=red, loss=0.01)},
        flows=[
            sj.Flow(name="ftp", count=2, path=["up"], rtt="40ms"),
            sj.Flow(name="call", path=["up"], source=sj.Cbr(rate="400kbit"), class_=46),
        ],
        changes=[sj.Change(at="5s", leave=["ftp"], links={"up": {"rate": "4mbit"}})],
    )
    one, other = sj.simulate(tree), sj.simulate(structs)
    assert one.summary == other.summary
    assert one.scenario["changes"][0]["links"] == {"up": {"rate": "4mbit"}}
    assert [flow["class"] for flow in one.scenario["flows"]] == [0, 46]
    assert one.links["up"].lost_on_wire_packets > 0


def test_groups_have_series() -> None:
    """A group's series is the sum of its flows'; with sample_flows false only groups have one."""
    result = sj.simulate(case())
    each = sum(result.flows[f"ftp.{i}"].series["delivered_bytes"] for i in (0, 1))
    assert np.array_equal(result.groups["ftp"].series["delivered_bytes"], each)
    assert result.groups["ftp"]["flows"] == ["ftp.0", "ftp.1"]
    frame = result.frame("group_series")
    assert frame["name"].unique().sort().to_list() == ["call", "ftp"]
    assert metrics.flows_in_timeout(result).max() <= 2
    alone = sj.simulate(case(sample_flows=False))
    assert not alone.flows["ftp.0"].series
    assert np.array_equal(alone.groups["ftp"].series["delivered_bytes"], each)


def test_metrics_of_a_run_agree_with_its_summary() -> None:
    """Drops so far end at the drops in all; what is used over time is what is used."""
    result = sj.simulate(case(changes=[{"at": "4s", "links": {"up": {"rate": "2mbit"}}}]))
    up = result.links["up"]
    drops = metrics.drops_over_time(result, "up")
    assert drops["overflow"][-1] == up.dropped_full_packets > 0
    assert drops["aqm"][-1] == 0
    used = metrics.utilisation_over_time(result, "up")
    assert used[-30:].mean() == pytest.approx(1, abs=0.02)
    assert used[20:39].mean() == pytest.approx(1, abs=0.02)


def test_the_example_of_a_load_step() -> None:
    """More flows, then half the rate: the queue settles, and the link stays utilised."""
    result = sj.simulate(EXAMPLES / "load-step.toml")
    more = result.groups["more"].series["delivered_bytes"]
    time = result.time_s
    assert (
        more[(time <= 60) | (time > 110)].sum() == 0 < more[(time > 62) & (time <= 110)].min() + 1
    )
    assert more.sum() > 1e6
    for at, until in ((60.0, 110.0), (110.0, 160.0)):
        took, settled = metrics.response_time_s(
            result, "bottleneck", at, until_s=until, before_s=40.0
        )
        assert settled
        assert took < 20, f"{took} s after {at} s"
    used = metrics.utilisation_over_time(result, "bottleneck")
    assert np.nanmean(used[time > 10]) > 0.9


def test_a_trace_of_rates_next_to_the_scenario(tmp_path: Path) -> None:
    """The file's name is relative to the scenario; times and rates are exact."""
    (tmp_path / "lte.csv").write_text("t_s,rate_bps,delay_s\n0,4e6,0.0125\n2.5,1000000,0.02\n")
    text = """duration = "5s"
    sample = "500ms"
    links.air = { rate = "8mbit", trace = "lte.csv" }
    flows = [{ name = "c", path = ["air"], source = { name = "cbr", rate = "8mbit" } }]
    """
    file = tmp_path / "case.toml"
    file.write_text(text)
    result = sj.simulate(file)
    trace = result.scenario["links"]["air"]["trace"]
    assert trace == {"t_ns": [0, 2_500_000_000], "rate_bps": [4_000_000, 1_000_000],
                    "delay_ns": [12_500_000, 20_000_000]}  # fmt: skip
    sent = result.links["air"].series["departed_bytes"] * 8 / 0.5
    assert np.allclose(sent[1:5], 4e6, rtol=0.01)
    assert np.allclose(sent[6:], 1e6, rtol=0.01)
    again = sj.simulate({**result.scenario})
    assert again.summary == result.summary, "the canonical form has the columns"
    repeated = Draft.read(file).set(["air.trace={file = 'lte.csv', repeat = '3s'}"]).tree
    repeated["links"]["air"]["trace"]["file"] = str(tmp_path / "lte.csv")
    assert sj.simulate(repeated).scenario["links"]["air"]["trace"]["repeat"] == "3s"


def test_a_trace_of_opportunities(tmp_path: Path) -> None:
    """Packets leave at exactly the times of the file, repeatedly, several at a time."""
    file = tmp_path / "cell.up"
    file.write_text("0\n10\n20\n30\n99\n250\n300\n")
    moments = [0, 10, 20, 30, 99, 250, 300]
    assert link_trace.resolve(str(file)) == {"opportunities_ms": moments}
    link = sj.Link(rate="1mbit", trace=str(file))

    def sent(packet: str) -> sj.Result:
        source = sj.Cbr(rate="1mbit", packet=packet)
        flow = sj.Flow(name="c", path=["air"], source=source)
        return sj.simulate(sj.Scenario(duration="30s", links={"air": link}, flows=[flow],
                                       packet_log=True, sample="100ms"))  # fmt: skip

    # With 4 bytes of framing, as mm-link has it, 1500 bytes are exactly one opportunity.
    result = sent("1500B")
    rows = result.frame("packet_log")
    left_ms = np.round(rows.filter(rows["fate"] == "sent")["left_s"].to_numpy() * 1e3, 6)
    laps = np.concatenate([np.array(moments) + 300 * k for k in range(101)])
    laps = laps[laps <= 30_000]
    used = laps[laps > rows["arrived_s"].to_numpy().min() * 1e3]
    assert left_ms.tolist() == used.tolist(), "all of them, from the first packet on"
    assert result.links["air"].utilisation == pytest.approx(len(used) / (len(laps) - 1)), "after 0"
    over_time = metrics.utilisation_over_time(result, "air")
    assert over_time[1:4].tolist() == pytest.approx([np.nan, 1.0, 1.0], nan_ok=True)
    halves = sent("748B").links["air"]
    assert halves.departed_packets == pytest.approx(1400, abs=6), "two share each"
    # 14 packets of 100 bytes and a part of the 15th: 1504 / 104 packets, not 1504 / 100.
    short = sent("100B").links["air"]
    assert short.departed_packets == pytest.approx(700 * 1504 / 104, rel=0.01)


def test_a_trace_of_opportunities_in_bins(tmp_path: Path) -> None:
    """Five in the first 100 ms, none in the second, two in the third: 600, 0, 240 kbit/s."""
    file = tmp_path / "cell.up"
    file.write_text("0\n10\n20\n30\n99\n200\n300\n")
    trace = {"file": str(file), "bin_ms": 100}
    columns = link_trace.resolve(trace)
    assert columns == {"t_ns": [0, 100_000_000, 200_000_000], "rate_bps": [600_000, 0, 240_000],
                       "repeat": "300ms"}  # fmt: skip
    assert link_trace.resolve({"file": file, "bin_ms": 300})["rate_bps"] == [280_000]
    own = {"t_ns": [0], "rate_bps": [5]}
    assert link_trace.resolve(own) is own
    link = sj.Link(rate="1mbit", trace=trace)
    flow = sj.Flow(name="c", path=["air"], source=sj.Cbr(rate="1mbit"))
    result = sj.simulate(sj.Scenario(duration="30s", links={"air": link}, flows=[flow]))
    assert result.links["air"].departed_bytes * 8 / 30 == pytest.approx(280_746, rel=0.02)


BAD: dict[str, tuple[Any, str]] = {
    "a trace that is not there": ("none.csv", r"links\.up\.trace: .*none\.csv: no such file"),
    "a trace without columns": (b"a,b\n1,2\n", r"columns t_s, and rate_bps, delay_s or both"),
    "a trace with a word": (b"t_s,rate_bps\n0,fast\n", r'line 2: rate_bps: "fast" is not a num'),
    "a trace with a short row": (b"t_s,rate_bps\n0\n", r"line 2: rate_bps: null is not a number"),
    "a trace with nan": (b"t_s,rate_bps\n0,nan\n", r'line 2: rate_bps: "nan" is not a number'),
    "a trace that goes back": (b"t_s,rate_bps\n1,5\n0,5\n", r"links\.up\.trace\.t_ns\.1: 0 does"),
    "a negative rate": (b"t_s,rate_bps\n0,-5\n", r"links\.up\.trace\.rate_bps\.0: -5 is not a"),
    "opportunities out of order": (b"5\n3\n", r"the times are not in order"),
    "opportunities with a word": (b"5\nsoon\n", r'line 2: "soon": a trace of Mahimahi has'),
    "opportunities at 0 alone": (b"0\n0\n", r"the last opportunity is at 0"),
    "bins of rates": (b"t_s,rate_bps\n0,5\n", r"bin_ms: .* has rates, not opportunities"),
    "opportunities and a rate": (
        {"opportunities_ms": [5], "rate_bps": [1]},
        r"links\.up\.trace\.rate_bps: cannot be combined with opportunities_ms",
    ),
    "an empty trace": (b"", r"the file is empty"),
    "a bin of nothing": ({"bin_ms": 0}, r"bin_ms: 0 is not a whole number"),
    "an unknown key": ({"lap": "1s"}, r"links\.up\.trace\.lap: unknown key \"lap\""),
    "neither a file nor a table": (7, r"links\.up\.trace: 7 is not a table"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_traces(name: str, tmp_path: Path) -> None:
    """One line names the path, or the file and line, of the fault."""
    content, message = BAD[name]
    file = tmp_path / "trace"
    match content:
        case bytes():
            file.write_bytes(content)
            content = {"file": str(file), "bin_ms": 9} if "bins" in name else str(file)
        case dict():
            file.write_text("5\n9\n")
            content = {"file": str(file), **content}
    tree = case()
    tree["links"] = {"up": {**LINK, "trace": content}}
    with pytest.raises(sj.InputError, match=message) as refused:
        sj.simulate(tree)
    assert "\n" not in str(refused.value)


def test_a_link_with_burst_losses() -> None:
    """Names are netem's; the canonical form has the defaults; errors name the path."""

    def lossy(loss: Any) -> sj.Result:
        link = sj.Link(rate="10mbit", delay="5ms", loss=loss)
        flow = sj.Flow(name="f", path=["up"], rtt="20ms")
        return sj.simulate(sj.Scenario(duration="20s", links={"up": link}, flows=[flow]))

    result = lossy({"p": 0.004, "r": 0.5})
    parameters = result.scenario["links"]["up"]["loss"]
    assert parameters == {"p": 0.004, "r": 0.5, "1-h": 1.0, "1-k": 0.0}
    assert describe.link(result.scenario, "up").endswith(
        "loss in bursts (p 0.004, r 0.5, 1-h 1, 1-k 0)"
    )
    air = result.links["up"]
    assert air.lost_on_wire_packets / air.departed_packets == pytest.approx(0.004 / 0.504, rel=0.3)
    for bad, message in [({"p": 2}, r"Link\.loss\.p: 2 is out of range"),
                         ({"q": 0.1}, r"Link\.loss\.q: unknown key .*, p, r, 1-h, 1-k"),
                         ({"r": 0.1}, r"Link\.loss\.p: is missing"),
                         ("often", r"Link\.loss: \"often\" is not")]:  # fmt: skip
        with pytest.raises(sj.InputError, match=message):
            lossy(bad)


def test_bad_changes_and_classes() -> None:
    """Rust refuses each with its path."""
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"changes": [{"at": "1s", "leave": ["fpt"]}]},
            r'changes\.0\.leave\.0: unknown flow "fpt"',
        ),
        (
            {"changes": [{"at": "1s", "links": {"up": {"qdisc": "red"}}}]},
            r"changes\.0\.links\.up\.q",
        ),
        ({"changes": {"at": "1s"}}, r"changes: .* is not a list"),
        ({"sample_flows": "often"}, r"sample_flows: "),
    ]
    for more, message in cases:
        with pytest.raises(sj.InputError, match=message):
            sj.simulate(case(**more))
    tree = case()
    tree["flows"][0]["class"] = -1
    with pytest.raises(sj.InputError, match=r"flows\.ftp\.class: "):
        sj.simulate(tree)
    assert '"class"' in Draft.read(tree).to_json()


def test_pages_list_the_disciplines_that_can_change() -> None:
    """Each parameter of each discipline is set to its default while it runs."""
    flow = {"name": "f", "path": ["up"], "rtt": "20ms"}

    def can_change(name: str, row: dict[str, Any]) -> bool:
        value = row["value"] == "true" if row["kind"] == "flag" else row["value"]
        change = {"at": "500ms", "links": {"up": {"qdisc": {row["name"]: value}}}}
        link = {"rate": "5mbit", "qdisc": {"name": name}}
        try:
            parse({"duration": "1s", "links": {"up": link}, "flows": [flow], "changes": [change]})
        except sj.InputError:
            return False
        return True

    specs = json.loads(_sojourn.specs())["disciplines"]
    names = {s["name"] for s in specs if any(can_change(s["name"], row) for row in s["params"])}
    page = (EXAMPLES.parent / "docs/how-to/simulation.md").read_text()
    listed = page.partition("or an average. ")[2].partition(" can change")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == names
    row = (EXAMPLES.parent / "docs/reference/missing.md").read_text().partition("parameters of any")
    listed = row[2].partition("parameters of ")[2].partition(" can change")[0]
    assert set(re.split(r", | and ", listed)) == names
