"""Constants, disciplines, dumbbell and testbed of the paper on HRED."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._util.units import bytes_of, seconds
from sojourn_lab.reproduction.constants import Constants

Table = dict[str, Any]

NAMES = {
    "red": "RED",
    "blue": "Blue",
    "pi": "PIC",
    "rem": "REM",
    "avq": "AVQ",
    "hred": "HRED",
    "droptail": "tail drop",
}
"""Disciplines, in the order of the paper's table 1; each has one colour in all figures."""

FIXED = 45
"""Seed of the base round-trip times, which all runs share."""


@dataclass(frozen=True)
class SetUp(Constants):
    """Constants of the dumbbell, the testbed and the disciplines (table 1)."""

    rate: str = "45mbit"
    """Rate of the bottleneck."""
    buffer: str = "300kB"
    """Buffer where the paper names none."""
    rtt_min: str = "40ms"
    """Smallest base round-trip time of the FTPs."""
    rtt_max: str = "200ms"
    """Largest base round-trip time of the FTPs."""
    tcp: str = "newreno"
    """TCP of all flows, as ns-2's agent."""
    packet: str = "500B"
    """Size of full packets on the wire."""
    window: str = "10000p"
    """Receiver's window."""
    warmup: str = "150s"
    """Time that is not counted (quick mode: an eighth)."""
    measured: str = "50s"
    """Measured time (quick mode: a quarter)."""
    step_up: str = "100s"
    """Time of the first change of the load; the second is half as much later (quick mode: 40 %)."""
    ftps: int = 300
    """FTPs where the paper names no traffic T."""
    web_rate: int = 25
    """Web sessions per second with these FTPs."""
    transfers: int = 10
    """Transfers of a web session."""
    transfer: str = "4600B"
    """Mean length of a transfer: ten packets of data."""
    shape: float = 1.2
    """Shape of the Pareto length of a transfer."""
    gap: str = "1s"
    """Mean pause between the transfers of a session."""
    hosts: int = 50
    """Hosts of the web sessions."""
    short_rtt: str = "20ms"
    """Base round-trip time of one half of the flows of table 2."""
    long_rtt: str = "200ms"
    """Base round-trip time of the other half."""
    access: str = "100mbit"
    """Rate of the access links of table 2."""
    min_th: float = 0.25
    """min_th of RED and HRED, as a share of the buffer."""
    max_th: float = 0.5
    """max_th of RED and HRED, as a share of the buffer."""
    target: float = 0.375
    """Reference queue of PIC and REM, as a share of the buffer."""
    w_q: float = 0.002
    """Weight of RED's average."""
    max_p: float = 0.1
    """max_p of RED."""
    gentle: str = "two_max_th"
    """Form of RED's gentle mode."""
    wait: str = "yes"
    """Spacing of RED's drops."""
    blue_d1: float = 0.0002
    """Increase of Blue's drop probability."""
    blue_d2: float = 0.00002
    """Decrease of Blue's drop probability."""
    freeze: str = "10ms"
    """Shortest time between two changes of Blue's drop probability."""
    pic_flows: int = 100
    """N- of PIC."""
    pic_rtt: str = "200ms"
    """R+ of PIC."""
    pic_hz: int = 160
    """Samples per second of PIC."""
    p_init: float = 0.0
    """Initial drop probability of PIC."""
    rem_period: str = "1ms"
    """Time between two changes of REM's price."""
    rem_gamma: float = 0.001
    """gamma of REM."""
    rem_alpha: float = 0.1
    """alpha of REM."""
    phi: float = 1.001
    """phi of REM."""
    avq_alpha: float = 0.15
    """alpha of AVQ."""
    avq_gamma: float = 1.0
    """gamma of AVQ: the utilisation that it aims at."""
    kappa: float = 2.0
    """kappa of HRED."""
    t_alpha: str = "400ms"
    """T_alpha of HRED."""
    t_beta: str = "200ms"
    """T_beta of HRED."""
    bed_rate: str = "10mbit"
    """Rate of the testbed."""
    bed_rtt: str = "100ms"
    """Base round-trip time of the testbed."""
    bed_buffer: str = "50kB"
    """Buffer of the testbed."""

    @property
    def newreno(self) -> Table:
        """TCP of all flows."""
        return {
            "name": self.tcp,
            "profile": "ns2",
            "packet": self.packet,
            "receive_window": self.window,
        }

    @property
    def kb(self) -> int:
        """Buffer where the paper names none, in kB."""
        return bytes_of(self.buffer) // 1000

    @property
    def bed_kb(self) -> int:
        """Buffer of the testbed, in kB."""
        return bytes_of(self.bed_buffer) // 1000

    def rtts(self, flows: int) -> list[str]:
        """Return the base round-trip times of the first FTPs."""
        few, many = (1000 * seconds(one) for one in (self.rtt_min, self.rtt_max))
        drawn = random.Random(FIXED)
        return [f"{drawn.uniform(few, many):.6f}ms" for _ in range(flows)]


PAPER = SetUp()
NEWRENO = PAPER.newreno

TESTBED: Table = {
    "pi": {"flows": 30, "rtt": "100ms", "w": 100},
    "rem": {"period": "10ms"},
    "avq": {"gamma": 0.975},
    "hred": {"t_alpha": "200ms", "t_beta": "100ms"},
}
"""Parameters that differ on the testbed."""


def scheme(name: str, kb: int, set_up: SetUp = PAPER, **other: Any) -> Table:
    """Return a discipline with the parameters of the paper's table 1, for a buffer of `kb` kB."""
    b, packet = kb * 1000, set_up.packet
    thresholds = {
        "min_th": f"{round(set_up.min_th * b)}B",
        "max_th": f"{round(set_up.max_th * b)}B",
    }
    reference = f"{round(set_up.target * b)}B"
    of: dict[str, Table] = {
        "red": {
            **thresholds,
            "w_q": set_up.w_q,
            "max_p": set_up.max_p,
            "gentle": set_up.gentle,
            "wait": set_up.wait,
            "byte_mode": "mean",
            "packet": packet,
        },
        "blue": {"d1": set_up.blue_d1, "d2": set_up.blue_d2, "freeze": set_up.freeze},
        "pi": {
            "q_ref": reference,
            "flows": set_up.pic_flows,
            "rtt": set_up.pic_rtt,
            "w": set_up.pic_hz,
            "packet": packet,
            "byte_mode": True,
            "p_init": set_up.p_init,
        },
        "rem": {
            "b_star": reference,
            "period": set_up.rem_period,
            "gamma": set_up.rem_gamma,
            "phi": set_up.phi,
            "alpha": set_up.rem_alpha,
            "packet": packet,
            "byte_mode": True,
        },
        "avq": {"alpha": set_up.avq_alpha, "gamma": set_up.avq_gamma, "packet": packet},
        "hred": {
            **thresholds,
            "kappa": set_up.kappa,
            "t_alpha": set_up.t_alpha,
            "t_beta": set_up.t_beta,
            "packet": packet,
        },
        "droptail": {},
        "xcp": {},
    }
    return {"name": name, "limit": f"{b}B", **of[name], **other}


def ftp(name: str, rtt: str, tcp: Table, start: str = "uniform(0s, 10s)") -> Table:
    """Return a flow with unlimited data."""
    source = {"name": "bulk", "start": start}
    return {"name": name, "path": ["bottleneck"], "rtt": rtt, "source": source, "tcp": tcp}


def web(
    rate: float,
    name: str = "web",
    start: str = "0s",
    *,
    set_up: SetUp = PAPER,
    tcp: Table | None = None,
    **other: Any,
) -> Table:
    """Return `rate` sessions per second, from several hosts; `other` are options of the source."""
    source = {
        "name": "sessions",
        "start": start,
        "interval": f"exponential({1e9 / rate:.0f}ns)",
        "transfers": set_up.transfers,
        "size": f"lomax(mean={set_up.transfer}, shape={set_up.shape:g})",
        "gap": f"exponential({set_up.gap})",
        **other,
    }
    hosts = {"name": name, "count": set_up.hosts, "path": ["bottleneck"]}
    rtt = f"uniform({set_up.rtt_min}, {set_up.rtt_max})"
    return {**hosts, "tcp": tcp or set_up.newreno, "rtt": rtt, "source": source}


def dumbbell(
    qdisc: Table,
    flows: int,
    sessions: Table | None,
    *,
    end: float = 200,
    warmup: float = 150,
    rtts: Sequence[str] = (),
    tcp: Table | None = None,
    set_up: SetUp = PAPER,
    **more: Any,
) -> Table:
    """Return `flows` FTPs and web sessions over the bottleneck."""
    own, times = tcp or set_up.newreno, rtts or set_up.rtts(flows)
    declared = [ftp(f"ftp-{i}", times[i], own) for i in range(flows)]
    return {
        "duration": f"{end:g}s",
        "warmup": f"{warmup:g}s",
        "links": {"bottleneck": {"rate": set_up.rate, "delay": "10ms", "qdisc": qdisc}},
        "flows": declared + ([sessions] if sessions else []),
        "sample_flows": False,
        **more,
    }


def step(
    qdisc: Table,
    percent: int,
    up: float,
    down: float,
    end: float,
    set_up: SetUp = PAPER,
    **more: Any,
) -> Table:
    """Return FTPs and web sessions, and `percent` more of both from `up` to `down` (s)."""
    few, count = set_up.ftps, set_up.ftps * percent // 100
    rate = set_up.web_rate
    options: Table = {"warmup": up / 2, "sample": "50ms", **more}
    base = dumbbell(qdisc, few, web(rate, set_up=set_up), end=end, set_up=set_up, **options)
    rtts = set_up.rtts(few + count)
    extra = [ftp(f"more-{i}", rtts[few + i], set_up.newreno, "0s") for i in range(count)]
    extra.append(web(rate * percent / 100, "more-web", set_up=set_up))
    return joining(base, extra, up, down)


def joining(base: Table, extra: list[Table], up: float, down: float | None = None) -> Table:
    """Return the scenario with flows that join at `up` and, if given, leave at `down` (s)."""
    names = [one["name"] for one in extra]
    changes: list[Table] = [{"at": f"{up:g}s", "join": names}]
    if down is not None:
        changes.append({"at": f"{down:g}s", "leave": names})
    return {**base, "flows": [*base["flows"], *extra], "changes": changes}


def two_groups(
    qdisc: Table,
    end: float,
    warmup: float,
    *,
    each: int = 150,
    tcp: Table | None = None,
    access: str | None = None,
    spread: float = 0,
    set_up: SetUp = PAPER,
) -> Table:
    """Return `each` FTPs with a short and with a long round-trip time, with own access links.

    With equal round-trip times the interleaving of packets matters, so the access links are
    modelled; an empty `access` omits them. With `spread`, round-trip times are uniform within that
    share to either side.
    """
    table = dumbbell(qdisc, 0, None, end=end, warmup=warmup, set_up=set_up)
    table["links"]["bottleneck"]["delay"] = "5ms"
    rate = set_up.access if access is None else access
    for name, rtt in (("short", set_up.short_rtt), ("long", set_up.long_rtt)):
        ms = 1000 * seconds(rtt)
        around = f"uniform({ms * (1 - spread):g}ms, {ms * (1 + spread):g}ms)"
        flow = ftp(name, around if spread else rtt, tcp or set_up.newreno) | {"count": each}
        if rate:
            line = {"rate": rate, "qdisc": {"name": "droptail", "limit": "10000p"}}
            table["links"] |= {f"{name}-{i}": line for i in range(each)}
            flow["path"] = [name + "-{i}", "bottleneck"]
        table["flows"].append(flow)
    return table


def gateway(
    qdisc: Table,
    flows: int,
    end: float,
    warmup: float,
    tcp: Table | None = None,
    set_up: SetUp = PAPER,
) -> Table:
    """Return `flows` FTPs and half as many 10-packet flows per second over the testbed."""
    short = {
        "name": "poisson",
        "interval": f"exponential({2e9 / flows:.0f}ns)",
        "size": set_up.transfer,
    }
    own = tcp or set_up.newreno
    path = {"path": ["bottleneck"], "rtt": set_up.bed_rtt, "tcp": own}
    return {
        "duration": f"{end:g}s",
        "warmup": f"{warmup:g}s",
        "links": {"bottleneck": {"rate": set_up.bed_rate, "delay": "10ms", "qdisc": qdisc}},
        "flows": [
            ftp("long", set_up.bed_rtt, own) | {"count": flows},
            {"name": "short", "source": short, **path},
        ],
    }
