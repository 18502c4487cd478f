"""Scenarios on real packets: TCP and UDP of the kernel over emulated links.

Bounds are physical: what rates, delays and buffers make impossible. How close it comes to a
simulation is measured by `make kernel-tcp`.
"""

import inspect
import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn import _sojourn, metrics
from sojourn.live.kernel_config import available

pytestmark = pytest.mark.live(tun=True)

RATE_BPS = 10e6


def case(*flows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a scenario: 10 Mbit/s, 5 ms and CoDel one way, 100 Mbit/s for the way back."""
    qdisc = {"name": "codel", "limit": "100p"}
    tree = {
        "name": "real",
        "duration": "2s",
        "warmup": "500ms",
        "sample": "100ms",
        "links": {
            "up": {"rate": "10mbit", "delay": "5ms", "qdisc": qdisc},
            "down": {"rate": "100mbit", "delay": "5ms"},
        },
        "flows": [{"path": ["up"], "rtt": "30ms"} | flow for flow in flows],
    }
    return tree | changes


def test_long_flows_share_a_link_and_have_the_columns_of_a_simulation() -> None:
    """Goodput, queueing delays and losses stay within the limits of the link."""
    cubic = {"name": "a", "count": 2, "tcp": "cubic"}
    tree = case(cubic, {"name": "b", "tcp": "reno", "rtt": "50ms"}, packet_log=True, duration="4s")
    live, simulated = sj.emulate(tree), sj.simulate(tree)
    up = live.links["up"]
    assert 0.5 < up.utilisation <= 1
    goodput = sum(flow.goodput_bps for flow in live.flows.values())
    assert goodput > 0.4 * RATE_BPS
    assert all(flow.goodput_bps > 0 for flow in live.flows.values())
    assert up.goodput_bps == goodput
    lost = sum(flow.retransmitted_packets for flow in live.flows.values())
    assert 0 < lost < sum(flow.sent_packets for flow in live.flows.values()) / 4
    assert up.sojourn_max_s <= 100 * 1500 * 8 / RATE_BPS
    assert sorted(live.summary["flows"][0]) == sorted(simulated.summary["flows"][0])
    assert sorted(up) == sorted(simulated.links["up"])
    for table in ("series", "group_series", "fct", "links"):
        ours, theirs = live.frame(table), simulated.frame(table)
        assert ours.schema == theirs.schema, table
        assert table == "fct" or ours.height == theirs.height
    # What reaches the receivers is what the link sent, but for what is on its wire at the end.
    received = np.sum([group.series.received_bytes for group in live.groups.values()], axis=0)
    assert np.all(received <= RATE_BPS / 8 * 0.1 + 1500)
    sent = up.series.departed_bytes.sum()
    assert sent - RATE_BPS / 8 * 0.01 - 3000 <= received.sum() <= sent
    # Applications may get after the warm-up what arrived before it: behind a hole, or read late.
    assert goodput * (4 - 0.5) / 8 <= received.sum()
    for name in ("a", "b"):
        of_flows = [f.series.received_bytes for f in live.flows.values() if f.group == name]
        assert np.array_equal(live.groups[name].series.received_bytes, sum(of_flows))
    # The same names are the same flows, and the packet log tells whose each packet was.
    log = live.frame("packet_log").filter(link="up")
    assert set(log["flow"]) == {"a.0", "a.1", "b"}
    assert (log["left_s"] <= 4).all()
    assert (log["left_s"] >= log["arrived_s"]).all()


def test_what_applications_do_is_what_they_do_in_a_simulation() -> None:
    """Transfers have the random start times and sizes of the simulation, and physical durations."""
    poisson = {"name": "poisson", "interval": "exponential(50ms)", "size": "uniform(2kB, 9kB)"}
    tree = case({"name": "short", "count": 3, "source": poisson, "tcp": "cubic"}, warmup="0s")
    live, simulated = sj.emulate(tree), sj.simulate(tree)
    ours, theirs = (run.frame("fct").sort("start_s") for run in (live, simulated))
    common = ours.join(theirs, on=["flow", "start_s", "bytes"])
    assert common.height >= 0.8 * theirs.height > 10
    # A round trip for the SYN, then half of one (the link's 5 ms of the 30) and the bytes.
    least_s = 0.030 + 0.005 + ours["bytes"] * 8 / RATE_BPS
    assert (ours["duration_s"] > least_s).all()
    assert (ours["startup_s"] >= 0.030).all()
    assert live.flows["short.0"].started == simulated.flows["short.0"].started


SOURCES = {
    "transfers": {"name": "transfers", "size": "20kB", "gap": "10ms"},
    "sessions": {"name": "sessions", "interval": "exponential(100ms)", "size": "5kB"},
    "incast": {"name": "incast", "size": "8kB"},
    "kept": {"name": "incast", "size": "8kB", "persistent": True},
    "web": {"name": "web", "sessions": 20, "launch": "uniform(0s, 500ms)", "page_gap": "50ms"},
    "request": {"name": "web", "sessions": 20, "page_gap": "50ms", "request": True},
    "trace": {"name": "trace", "time_s": [0.1, 0.3, 0.6], "size_bytes": [3000, 20, 90_000]},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_of_transfers_completes_some(source: dict[str, Any]) -> None:
    """Each traffic source runs over the kernel's sockets, within the limits of the link."""
    flow = {"name": "x", "count": 4, "source": source, "tcp": "cubic", "return_path": ["down"]}
    if source["name"] == "trace":
        flow["count"] = 1
    live = sj.emulate(case(flow, warmup="0s"))
    done = live.frame("fct")
    assert done.height >= 3
    # A round trip to open, where that is not done before; the link's delay, and the bytes.
    opens_s = 0 if "persistent" in source else 0.030
    assert (done["duration_s"] > opens_s + 0.005 + done["bytes"] * 8 / RATE_BPS).all()
    assert live.links["down"].departed_packets > 0
    if source["name"] == "incast":
        answered = live.frame("queries")
        assert answered.height >= 2
        assert done.height >= 4 * answered.height
    assert live.summary["live"]["malformed_packets"] == 0
    assert not [w for w in live.summary["live"]["warnings"] if "broke" in w]


def test_paced_sources_over_tcp_and_udp() -> None:
    """Packets leave on time, and take at least the delay of the link."""
    cbr = {"name": "cbr", "rate": "400kbit", "packet": "500B"}
    bursts = {"name": "onoff", "rate": "400kbit", "packet": "500B", "on": "50ms", "off": "50ms"}
    packets = {"name": "trace", "time_s": [0.6, 0.7, 0.8], "size_bytes": [100, 700, 1500]}
    live = sj.emulate(
        case(
            {"name": "udp", "source": cbr},
            {"name": "tcp", "source": cbr, "tcp": "cubic"},
            {"name": "bursts", "source": bursts},
            {"name": "packets", "source": packets},
        )
    )
    udp = live.flows["udp"]
    assert udp.kind == "udp"
    assert udp.sent_packets == pytest.approx(150, abs=2), "1.5 s of one each 10 ms"
    assert udp.goodput_bps == pytest.approx(400e3 * 472 / 500, rel=0.03)
    assert udp.delay_p50_s >= 0.005 + 500 * 8 / RATE_BPS
    assert udp.lost_packets == 0
    assert live.flows["tcp"].goodput_bps == pytest.approx(400e3, rel=0.05)
    assert live.flows["bursts"].received_packets > 20
    assert live.flows["packets"].received_packets == 3


def test_a_flood_of_datagrams_loses_what_does_not_fit() -> None:
    """At twice the rate of the link, half of the packets are dropped."""
    flood = {"name": "udp", "source": {"name": "cbr", "rate": "20mbit", "packet": "1000B"}}
    live = sj.emulate(case(flood))
    udp = live.flows["udp"]
    assert udp.loss_rate == pytest.approx(0.5, abs=0.03)
    assert udp.lost_packets <= live.links["up"].dropped_packets
    assert live.links["up"].utilisation > 0.97


def test_datagrams_have_the_ecn_field_of_their_flow() -> None:
    """ECT(1) joins the queue L of DualPI2, and is marked in place of dropped; Not-ECT does not."""
    source = {"name": "cbr", "rate": "5200kbit", "packet": "1000B"}
    plain = {"name": "plain", "source": source}
    capable = {"name": "capable", "source": source, "ecn": "ect1"}
    tree = case(plain, capable, packet_log=True)
    tree["links"]["up"]["qdisc"] = "dualpi2"
    log = sj.emulate(tree).links["up"].packet_log
    marked, dropped = (
        [float(values[log["flow"] == flow].mean()) for flow in (0, 1)]
        for values in (log["marked"], log["fate"] != 0)
    )
    assert marked[0] == 0
    assert marked[1] > 0.05
    assert dropped[0] > dropped[1]


def test_marks_are_taken_in_place_of_losses() -> None:
    """Flows with ECN retransmit nothing if the AQM marks."""
    qdisc = {"name": "codel", "ecn": True, "limit": "1000p"}
    ecn = {"name": "a", "count": 3, "tcp": {"name": "cubic", "ecn": True}}
    tree = case(ecn, {"name": "b", "tcp": "cubic"}, duration="3s")
    tree["links"]["up"]["qdisc"] = qdisc
    live = sj.emulate(tree)
    up = live.links["up"]
    assert up.marked_packets > 0
    assert sum(live.flows[f"a.{i}"].retransmitted_packets for i in range(3)) == 0
    assert up.dropped_packets > 0, "the one without ECN"


def test_parameters_of_a_tcp_reach_the_kernel() -> None:
    """An initial window of two packets needs more round trips than one of ten."""
    first = {"name": "cubic", "initial_window": "2p"}
    once = {"name": "transfers", "size": "14600B", "number": 1}
    live = sj.emulate(
        case(
            {"name": "two", "tcp": first, "rtt": "100ms", "source": once},
            {"name": "ten", "tcp": "cubic", "rtt": "100ms", "source": once},
            duration="3s",
            warmup="0s",
        )
    )
    took = {name: live.flows[name].fct_mean_s for name in ("two", "ten")}
    assert 0.1 < took["ten"] < 0.3, "one round trip to open, one to send ten packets"
    assert took["two"] > 0.3, "2, 4 and the rest: two round trips more"


def test_links_change_and_flows_come_and_go() -> None:
    """A new rate applies from its time on; a flow that leaves sends nothing more."""
    tree = case({"name": "a", "tcp": "cubic"}, {"name": "b", "tcp": "cubic"}, duration="3s")
    tree["changes"] = [
        {"at": "1s", "links": {"up": {"rate": "2mbit"}}},
        {"at": "2s", "join": ["b"], "leave": ["a"]},
    ]
    live = sj.emulate(tree)
    rates = np.array(live.links["up"].series.departed_bytes) * 80
    assert rates[10:].max() <= 2e6 + 12_000 * 10
    assert rates[5:10].mean() > 4e6
    a, b = (np.array(live.flows[name].series.delivered_bytes) for name in "ab")
    assert a[:20].sum() > 0
    assert a[21:].sum() == 0
    assert b[:20].sum() == 0
    assert b[20:].sum() > 0


def test_many_links_on_a_path_and_a_queue_on_the_way_back() -> None:
    """Packets cross all links of the path, ACKs all links of the return path."""
    links = {name: {"rate": rate, "delay": "4ms"} for name, rate in
             (("one", "20mbit"), ("two", "5mbit"), ("back", "1mbit"))}  # fmt: skip
    flow = {"name": "x", "tcp": "cubic", "path": ["one", "two"], "return_path": ["back"]}
    live = sj.emulate(case(flow, links=links, packet_log=True))
    one, two, back = (live.links[name] for name in links)
    assert two.utilisation > 0.5
    assert back.departed_packets > 0
    assert live.flows["x"].goodput_bps == two.goodput_bps == one.goodput_bps > 0
    # Of the whole run, since data that arrived during the warm-up may be read after it.
    assert one.goodput_bps * (2 - 0.5) / 8 <= two.series.departed_bytes.sum()
    # The second link gets what the first one sends, after its transmission and its delay. Packets
    # cross in order and in virtual time, so this is exact, at the end of the warm-up as well: there
    # counts of the two links differ by the packets on the wire between them.
    log = live.frame("packet_log").sort("arrived_s")
    sent = log.filter((pl.col("link") == "one") & (pl.col("fate") == "sent"))
    crossed = sent["left_s"] + sent["size_bytes"] * 8 / 20e6 + 0.004
    arrived = log.filter(pl.col("link") == "two")["arrived_s"]
    assert 100 < len(arrived) <= len(crossed)
    assert arrived.to_numpy() == pytest.approx(crossed[: len(arrived)].to_numpy(), abs=2e-9)


def test_an_emulated_link_decides_as_a_simulated_one() -> None:
    """The arrivals of its packet log, replayed in virtual time, give the same decisions."""
    live = sj.emulate(case({"name": "a", "count": 3, "tcp": "cubic"}, packet_log=True, warmup="0s"))
    log = live.frame("packet_log").filter(link="up").sort("arrived_s")
    # Packets that are queued at the end of the run are not in the log. A decision about a packet
    # depends on arrivals until it leaves, at most 0.12 s later: compared are those before 1.6 s.
    log = log.filter(pl.col("arrived_s") < 1.8)
    compared = (log["arrived_s"] < 1.6).to_numpy()
    qdisc = json.dumps(live.scenario["links"]["up"]["qdisc"])
    t_ns = (log["arrived_s"] * 1e9).round().cast(pl.Int64).to_numpy()
    zeros = np.zeros(log.height)
    again = _sojourn.replay(
        t_ns,
        zeros.astype(np.uint32),
        log["size_bytes"].to_numpy(),
        zeros.astype(np.uint8),
        qdisc,
        "10mbit",
        None,
        None,
        None,
    )
    dropped = (log["fate"] != "sent").to_numpy()
    assert dropped.sum() > 0
    assert (again["dropped"] == dropped)[compared].all()
    left_ns = (log["left_s"] * 1e9).round().cast(pl.Int64).to_numpy()
    sent = compared & ~dropped
    assert (again["t_deq_ns"][sent] == left_ns[sent]).all()


def test_metrics_are_those_of_any_result() -> None:
    """Every metric of a simulation is available for real packets."""
    poisson = {"name": "poisson", "interval": "exponential(50ms)", "size": "5kB"}
    control = "bbr" if "bbr" in available() else "cubic"
    flows = (
        {"name": "a", "count": 2, "tcp": control},
        {"name": "short", "source": poisson, "tcp": "cubic"},
        {"name": "call", "source": {"name": "cbr", "rate": "100kbit", "packet": "200B"}},
    )
    tree = case(*flows, packet_log=True)
    names_by_engine: list[set[str]] = []
    for result in (sj.emulate(tree), sj.simulate(tree)):
        answered = set()
        for name, metric in metrics.METRICS.items():
            parameters = inspect.signature(metric.function).parameters
            values = {"link": "up", "group": "short"}
            arguments = {key: value for key, value in values.items() if key in parameters}
            with suppress(KeyError, TypeError, ValueError, sj.InputError):
                metric.function(result, **arguments)
                answered.add(name)
        names_by_engine.append(answered)
    assert names_by_engine[0] == names_by_engine[1]
    assert len(names_by_engine[0]) > 20


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        ({"tcp": "tahoe"}, "flows.x.tcp: this kernel has no tahoe"),
        ({"tcp": {"name": "reno", "profile": "ns2"}}, 'flows.x.tcp.profile: "ns2" is not'),
        ({"tcp": {"name": "cubic", "beta": 0.5}}, "flows.x.tcp.beta: cannot be set"),
        ({"tcp": {"name": "sack", "rwnd": "20p"}}, "flows.x.tcp.receive_window: cannot be"),
        ({"tcp": {"name": "cubic", "packet": "9000B"}}, "flows.x.tcp.packet: 9000B is above"),
        ({"tcp": {"name": "cubic", "header": "44B"}}, "flows.x.tcp.header: 44B is not"),
        ({"source": {"name": "cbr", "packet": "30B"}}, "flows.x.source: a packet of 30B"),
        ({"path": ["upp"]}, "flows.x.path.0: unknown link"),
    ],
)
def test_unsupported_flows_are_refused_with_their_path(flow: dict[str, Any], error: str) -> None:
    """The message names the flow and the key."""
    with pytest.raises(sj.InputError, match=error.replace(".", r"\.")):
        sj.emulate(case({"name": "x"} | flow))


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_run_that_is_stopped_leaves_nothing_behind() -> None:
    """The numbers of descriptors and threads are as before."""
    before = descriptors(), threading.active_count()
    shares: list[float] = []

    def stop(share: float) -> bool:
        shares.append(share)
        return share < 0.1

    with pytest.raises(KeyboardInterrupt):
        sj.emulate(
            case({"name": "x", "tcp": "cubic"}, duration="1000s"), progress=lambda s: stop(10 * s)
        )
    assert shares[-1] < 2
    assert (descriptors(), threading.active_count()) == before


def test_the_command_runs_a_file_on_real_packets(sojourn: Command, tmp_path: Path) -> None:
    """`run --engine live` prints and saves the same as `run`."""
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case({"name": "x", "tcp": "cubic"})), encoding="utf-8")
    code, out, _ = sojourn("run", file, "--engine", "live", "--json", "--out", tmp_path / "out")
    summary = json.loads(out)
    assert code == 0
    assert summary["live"]["delivered_packets"] > 100
    assert sj.load_result(tmp_path / "out").flows["x"].goodput_bps > 0
    code, _, error = sojourn("run", file, "--engine", "live", "--set", "x.tcp=vegas")
    assert code == 2
    assert f"{file}: flows.x.tcp: this kernel has no vegas, only" in error
