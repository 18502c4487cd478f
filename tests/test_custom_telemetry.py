"""Controls in Python that read telemetry, are paced, and see every delivery.

HPCC and Swift in Python, plain and compiled, send the same packets as the built-in ones.
"""

import copy
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from examples.my_hpcc import Hpcc
from examples.my_swift import Swift
from sojourn import _sojourn
from sojourn.scenario.draft import parse
from test_custom_control import raw, with_tcp, without_gauges

TIMERS = {"rto_min": "2ms", "tick": "10us"}

PATH = {"line_rate": "10gbit", "base_rtt": "20us", "rate_ai": "4mbit"}

TAIL = {"rate": "10gbit", "delay": "1us", "qdisc": "droptail(limit=4MB)"}


def bulk(limit: str, ports: int, count: int = 3) -> dict[str, Any]:
    """Return flows that share links; with a small buffer they lose packets and time out."""
    names = [f"l{i}" for i in range(ports)]
    links = {name: {**TAIL, "qdisc": f"droptail(limit={limit})"} for name in names}
    flow = {"name": "f", "count": count, "path": names, "rtt": "20us"}
    source = {"name": "bulk", "start": "uniform(0s, 100us)"}
    keys = {"duration": "6ms", "warmup": "1ms", "sample": "500us", "packet_log": True}
    return {**keys, "links": links, "flows": [{**flow, "source": source}]}


def transfers(spread: str) -> dict[str, Any]:
    """Return short transfers over a leaf-spine, on paths that switches choose."""
    wires = [*((f"h{i}", f"l{i // 2}") for i in range(4))]
    wires += [(leaf, spine) for leaf in ("l0", "l1") for spine in ("s0", "s1")]
    links = {f"{a}-{b}": TAIL for wire in wires for a, b in (wire, wire[::-1])}
    source = {"name": "poisson", "interval": "60us", "size": "exponential(50kB)"}
    hosts = {"sender": ["h0", "h1"], "receiver": ["h2", "h3"], "spread": spread}
    flow = {"name": "f", "count": 2, **hosts, "source": source}
    keys = {"duration": "6ms", "sample": "500us", "packet_log": True}
    return {**keys, "links": links, "flows": [flow]}


CASES = {
    "one link": bulk("4MB", 1),
    "three links": bulk("4MB", 3, count=5),
    "losses": bulk("10p", 2, count=16),
    "ecmp": transfers("connection"),
    "flowlets": transfers("flowlet(gap=10us)"),
}

HPCC = ({"name": "hpcc", "min_rate": "100mbit", **PATH, **TIMERS}, Hpcc(**PATH, **TIMERS))
STAGES = (
    {"name": "hpcc", "min_rate": "100mbit", "max_stage": 5, "eta": 0.9, **PATH, **TIMERS},
    Hpcc(max_stage=5, eta=0.9, **PATH, **TIMERS),
)
SWIFT = ({"name": "swift", "target": "30us", **TIMERS}, Swift(target="30us", **TIMERS))

PAIRS = {"hpcc": HPCC, "hpcc with stages": STAGES, "swift": SWIFT}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pair", PAIRS)
def test_python_gives_the_bytes_of_rust(pair: str, name: str) -> None:
    """Every packet, statistic and series is the same; native code has the same state, too."""
    rust, python = PAIRS[pair]
    expected = without_gauges(raw(with_tcp(CASES[name], rust)))
    plain = raw(with_tcp(CASES[name], python))
    assert without_gauges(plain) == expected
    assert raw(with_tcp(CASES[name], python.replace(compiled=True))) == plain
    lost = sum(flow["retransmitted_packets"] for flow in expected[0]["flows"])
    assert (lost > 0) == (name == "losses")


def test_windows_below_one_packet() -> None:
    """60 flows on a path of 17 packets: a packet of each is sent less than once per round trip."""
    case = {**bulk("4MB", 1, count=60), "duration": "4ms"}
    rust, python = SWIFT
    plain = raw(with_tcp(case, python))
    assert without_gauges(plain) == without_gauges(raw(with_tcp(case, rust)))
    assert raw(with_tcp(case, python.replace(compiled=True))) == plain
    result = sj.simulate(with_tcp(case, python))
    assert 0.05 < result.frame("group_series")["gauge_fcwnd"][-1] < 0.9
    assert result.links["l0"].utilisation > 0.95


class Reads(sj.CongestionControl):
    """Keeps the telemetry of the last ack, with a window of 20 packets."""

    def start(self) -> None:
        self.seen: tuple[Any, ...] = ()
        self.acks = 0
        self.longest = 0

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd = 20 * tcp.mss

    def on_loss(self, tcp: Any) -> None:
        tcp.ssthresh = 20 * tcp.mss

    def on_telemetry(self, tcp: Any, links: tuple[sj.LinkTelemetry, ...]) -> None:
        assert isinstance(links, tuple)
        nic, port = links
        assert (nic.rate, port.rate) == (100_000_000, 10_000_000)
        assert nic.packet_bytes == port.packet_bytes == tcp.packet == 1500
        assert nic.at < port.at < tcp.now
        assert 0 <= nic.sent_bytes - port.sent_bytes <= 20 * 1500
        assert (tcp.snd_una - 1) % tcp.mss == 0
        assert tcp.snd_una <= tcp.snd_nxt <= tcp.snd_una + 20 * tcp.mss
        assert self.seen == () or self.seen[1].at < port.at
        assert tcp.random() < 1
        self.seen, self.acks = links, self.acks + 1
        self.longest = max(self.longest, port.queue_bytes)


TWO_LINKS: dict[str, Any] = {
    "duration": "200ms",
    "sample": "100ms",
    "links": {"nic": {"rate": "100mbit"}, "port": {"rate": "10mbit", "delay": "1ms"}},
    "flows": [{"name": "f", "path": ["nic", "port"], "rtt": "2ms"}],
}


def test_telemetry_has_the_state_of_each_link(tmp_path: Path) -> None:
    """Also after it was kept in a fork and in a snapshot."""
    case = with_tcp(TWO_LINKS, Reads())
    whole = sj.simulate(case)
    series = whole.frame("group_series")
    # 20 packets: one is in transmission, others in the queue, less those acknowledged in pairs.
    assert series["gauge_longest"][-1] == 24_000
    assert series["gauge_acks"][-1] > 70
    simulation = sj.Simulation(case)
    simulation.run_until("51ms")
    simulation.save(tmp_path / "state")
    for one in (simulation.fork(), sj.Simulation.load(tmp_path / "state", trust=True)):
        assert one.run().summary == whole.summary


def test_a_link_is_a_named_tuple() -> None:
    """It can be copied and compared, and its repr names the values."""
    link = sj.LinkTelemetry(at=5, sent_bytes=0, queue_bytes=1500, packet_bytes=40, rate=8)
    assert copy.deepcopy(link) == link
    assert repr(link).startswith("LinkTelemetry(at=5, sent_bytes=0, queue_bytes=1500")


def test_flows_on_other_links_do_not_notice() -> None:
    """Only links of a control with `on_telemetry` record it."""
    links = dict.fromkeys(("a", "b"), TAIL)
    flows = [{"name": name, "path": [name], "rtt": "1ms"} for name in links]
    case = {"duration": "20ms", "links": links, "flows": flows}
    with_it, without = (raw(with_tcp(case, tcp)) for tcp in (Hpcc(), Swift()))
    assert with_it[0]["links"]["b"] == without[0]["links"]["b"]
    assert with_it[0]["links"]["a"] != without[0]["links"]["a"]


def refusal(path: list[str], tcp: Any, **more: Any) -> str:
    """Return the message with which a scenario is refused."""
    links = {f"l{i}": TAIL for i in range(9)}
    flow = {"name": "f", "path": path, "tcp": tcp, **more}
    with pytest.raises(sj.InputError) as caught:
        parse({"duration": "1ms", "links": links, "flows": [flow]})
    return str(caught.value)


def test_what_telemetry_cannot_do_is_refused() -> None:
    """As for the built-in hpcc, with the name of the class."""
    long = [f"l{i}" for i in range(9)]
    text = refusal(long, Hpcc())
    assert text.startswith("flows.f.path: has 9 links, and packets of ")
    assert text.endswith("my_hpcc:Hpcc have room for the telemetry of 8")
    parse({"duration": "1ms", "links": dict.fromkeys(long, TAIL),
           "flows": [{"name": "f", "path": long, "tcp": Swift()}]})  # fmt: skip
    for spread in ("packet", "round-robin"):
        case = with_tcp(transfers(spread), Hpcc())
        with pytest.raises(sj.InputError, match=r"flows.f.spread: does not go with .*Hpcc, which"):
            parse(case)
    for options, error in (
        ({"timestamps": True}, "is available in profile rfc without timestamps"),
        ({"profile": "linux"}, "is available in profile rfc without timestamps"),
        ({"pacing": False}, "pacing: .*Hpcc requires pacing"),
        ({"prr": True}, "prr: not supported by"),
    ):
        with pytest.raises(sj.InputError, match=error):
            Hpcc(**options)


def test_threads_give_the_same_result() -> None:
    """Such a scenario runs on one thread, as with the built-in hpcc."""
    case = with_tcp(CASES["ecmp"], Hpcc(**PATH, **TIMERS))
    one, three = (sj.simulate(case, threads=threads).summary for threads in (1, 3))
    assert one == three


def test_a_paced_control_has_the_settings_of_data_centres() -> None:
    """Pacing is on, and acks are not delayed unless that is set."""
    for tcp, paced, delayed in (
        (Hpcc(), True, False),
        (Hpcc(delayed_ack=True), True, True),
        (Reads(), False, True),
    ):
        table = parse(with_tcp(TWO_LINKS, tcp)).canonical()
        assert f'"pacing":{str(paced).lower()}' in table
        assert f'"delayed_ack":{str(delayed).lower()}' in table


def test_the_initial_window_and_the_first_segments() -> None:
    """`on_established` sets the window; a paced control has no unpaced burst at the start."""

    class Starts(Reads):
        packets: int = 2

        def on_established(self, tcp: Any) -> None:
            tcp.cwnd = self.packets * tcp.mss
            if self.paced:
                tcp.pacing_rate = 1e6

    class Paced(Starts):
        paced = True

    def sent(tcp: Any) -> int:
        short = {**TWO_LINKS, "duration": "5ms", "sample": "5ms"}
        return int(sj.simulate(with_tcp(short, tcp)).flows["f"].sent_packets)

    # The handshake takes 2 ms, and no ack of data arrives within 5 ms: 1 SYN.
    assert [sent(Starts(packets=n)) for n in (2, 7, 15)] == [3, 8, 16]
    assert sent(Paced(packets=15)) == 2  # a segment of 1460 bytes takes 12 ms


WRONG: list[tuple[Any, str]] = [
    (lambda tcp, links: setattr(tcp, "cwnd", 5), "cwnd is 5, allowed: 1460"),
    (lambda tcp, links: links[2], "tuple index out of range"),
    (lambda tcp, links: links[0].queue, "no attribute 'queue'"),
    (lambda tcp, links: 7 if tcp.now else None, "returned 7, must return None"),
]


@pytest.mark.parametrize(("action", "text"), WRONG)
def test_misuse_ends_the_run(action: Any, text: str) -> None:
    """With the method and the simulated time."""

    class Misuse(Reads):
        def on_telemetry(self, tcp: Any, links: Any) -> Any:
            return action(tcp, links) if isinstance(action(tcp, links), int) else None

    with pytest.raises(Exception, match=text) as caught:
        sj.simulate(with_tcp(TWO_LINKS, Misuse()))
    assert "in on_telemetry of " in caught.value.__notes__[0]


class Index(sj.CongestionControl):
    """Reads a third link, in code that Numba compiles."""

    delivered: bool = False

    def start(self) -> None:
        self.longest = 0

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += tcp.acked

    def on_established(self, tcp: Any) -> None:
        if self.delivered:
            tcp.ssthresh = 20 * tcp.mss

    def on_telemetry(self, tcp: Any, links: Any) -> None:
        self.longest = max(links[2].queue_bytes, links[1].queue_bytes)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("delivered", "text", "method"),
    [
        (False, "tuple index out of range", "on_telemetry"),
        (True, "ssthresh can be set in on_ack", "on_established"),
    ],
)
def test_misuse_raises_the_same_exception_if_compiled(
    delivered: bool, text: str, method: str, compiled: bool
) -> None:
    """The plain method is called with the same connection and links, and raises."""
    with pytest.raises(Exception, match=text) as caught:
        sj.simulate(with_tcp(TWO_LINKS, Index(delivered=delivered, compiled=compiled)))
    assert f"in {method} of " in caught.value.__notes__[0]


class Unknown(Index):
    """Reads what a link does not have."""

    def on_telemetry(self, tcp: Any, links: Any) -> None:
        self.longest = links[0].queue


def test_classes_that_cannot_run_are_refused() -> None:
    """A field that no link has if compiled, a name near a method, and a value of `paced`."""
    Unknown()
    with pytest.raises(sj.InputError, match='a link has no queue, did you mean "queue_bytes"'):
        Unknown(compiled=True)
    with pytest.raises(TypeError, match='no hook "on_telemetri", did you mean "on_telemetry"'):
        type("Near", (Index,), {"on_telemetri": lambda self, tcp, links: None})
    with pytest.raises(sj.InputError, match='paced: is "yes", allowed: True, False'):
        type("Odd", (Reads,), {"paced": "yes", "__module__": __name__})()
    with pytest.raises(TypeError, match="paced: the name is in use"):
        type("Typed", (Reads,), {"paced": True, "__annotations__": {"paced": bool}})


def test_property_tests_of_data_centre_controls() -> None:
    """`sj.check` calls the new methods as well, and compares native code with plain Python."""
    for tcp in (Hpcc(line_rate="10mbit", base_rtt="40ms", compiled=True), Swift(target="60ms")):
        checks = sj.check(tcp, packets=400)
        assert checks, str(checks)


def test_the_border_has_the_links_of_the_simulator() -> None:
    """The view of a connection has the documented attributes."""
    names = {name for name in dir(_sojourn.Connection) if name[0] != "_"}
    assert {"packet", "path", "snd_una", "snd_nxt"} < names
