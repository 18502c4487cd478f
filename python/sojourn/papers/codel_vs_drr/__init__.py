"""CoDel against DRR on a dumbbell with traffic both ways.

The paper uses ns-2 and a dumbbell with FTP over TCP and CBR in both directions. It reports the
range of the queueing delay and the packets dropped per second, against the bottleneck rate (2, 4,
10, 100 Mbit/s) and against the MTU (500, 1000, 1500 bytes).

It states nothing else. Our choices:

- Traffic in each direction: 4 FTPs (NewReno, as ns-2's agents: an ack per packet, no receiver's
  limit) with 1000-byte packets, and one CBR flow with 500-byte packets and a tenth of the
  bottleneck rate.
- Base round-trip time 40 ms (bottleneck 10 ms each way, access 5 ms); access links that never
  queue; 100 s, the first 10 s not counted.
- CoDel of 2012 (as in ns-2), target 5 ms, interval 100 ms, with a buffer of 1000 packets that
  never fills. DRR with ns-2's defaults: 25 000 bytes for all flows, a quantum of 250 bytes, 10
  hash buckets.
- MTU scenario: 2 Mbit/s, because the CoDel range that the paper gives for 1500 bytes is the one
  that it gives for 2 Mbit/s. All packets have the size of the MTU.

The paper labels delays in ms. Its 0.01 ms is impossible: a packet of 1000 bytes takes 4 ms at 2
Mbit/s. The numbers make sense as seconds, so they are read as seconds here. A range is the 5th to
the 95th percentile (the paper does not say). The smallest delays of the paper are above those of an
empty queue, so they include propagation and transmission; `node` adds these to the sojourn time.

Sensitivities: a receiver's window of 20 packets (ns-2's default `window_`), a DRR buffer as large
as CoDel's, and more flows.
"""

from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn._util.units import bps_of, seconds
from sojourn.plotting.lines import style
from sojourn.reproduction.claims import Claim, Part, Runs, bound, mean, number, order, short, values
from sojourn.reproduction.paper import Experiment, Point, figure, table
from sojourn.result.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "CoDel against DRR"
REFERENCE = "Ali, Khan and Quaid, IJCET 2015"

RATES = (2, 4, 10, 100)
MTUS = (500, 1000, 1500)
NAMES = {"codel": "CoDel", "drr": "DRR"}

CODEL: dict[str, Any] = {"name": "codel", "variant": "ns2_v1", "limit": "1000p"}
DRR: dict[str, Any] = {"name": "drr", "limit": "25kB", "quantum": "250B", "flows": 10}
WIDE_DRR: dict[str, Any] = {**DRR, "limit": "1000p"}
NS2_DRR: dict[str, Any] = {**DRR, "limit": "100kB"}
FQ_CODEL: dict[str, Any] = {"name": "fq_codel", "limit": "1000p"}


def dumbbell(
    qdisc: dict[str, Any],
    rate: int,
    mtu: int = 1000,
    flows: int = 4,
    window: int = 10_000,
    rtt_ms: int = 40,
) -> dict[str, Any]:
    """Return the scenario: FTPs and a CBR flow in each direction over `rate` Mbit/s."""
    links, declared = {}, []
    for way, other in (("forward", "backward"), ("backward", "forward")):
        links[way] = {"rate": f"{rate}mbit", "delay": f"{rtt_ms * 250}us", "qdisc": qdisc}
        declared.append(
            {
                "name": f"ftp-{way}",
                "count": flows,
                "path": [way],
                "return_path": [other],
                "rtt": f"{rtt_ms}ms",
                "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                "tcp": {
                    "name": "newreno",
                    "profile": "ns2",
                    "packet": f"{mtu}B",
                    "receive_window": f"{window}p",
                },
            }
        )
        udp: dict[str, Any] = {
            "name": "cbr",
            "rate": f"{rate * 100}kbit",
            "packet": f"{min(500, mtu)}B",
        }
        udp |= {"jitter": 0.5, "start": "uniform(0s, 1s)"}
        declared.append({"name": f"cbr-{way}", "path": [way], "source": udp})
    times = {"duration": "100s", "warmup": "10s"}
    return {**times, "links": links, "flows": declared, "tape": True}


def measure(result: Result) -> dict[str, Any]:
    """Keep delays in the queue and from node to node, and drops per second, of one direction."""
    import numpy as np

    link, described = result.links["forward"], result.scenario["links"]["forward"]
    tape = link.tape
    sent = (tape.fate == 0) & (tape.arrived_s >= 10)
    waited = (tape.left_s - tape.arrived_s)[sent]
    node = (
        waited + tape.size_bytes[sent] * 8 / bps_of(described["rate"]) + seconds(described["delay"])
    )
    low, high = np.percentile(node, [5, 95])
    return {
        "wait_mean_s": float(waited.mean()),
        "wait_low_s": float(np.percentile(waited, 5)),
        "wait_high_s": float(np.percentile(waited, 95)),
        "wait_max_s": float(waited.max()),
        "node_low_s": float(low),
        "node_high_s": float(high),
        "node_std_s": float(node.std()),
        "drops_per_s": link.dropped_packets / 90,
        "utilisation": link.utilisation,
    }


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the two scenarios of the paper, and the sensitivities."""
    seeds = 10 if full else 3
    both = (("codel", CODEL), ("drr", DRR))
    extra = (*both, ("drr1000p", WIDE_DRR), ("drr100kB", NS2_DRR), ("fq_codel", FQ_CODEL))
    counts = COUNTS if full else COUNTS[::2]
    rates: list[Point] = [
        ({"qdisc": name, "rate": rate}, dumbbell(qdisc, rate))
        for name, qdisc in both
        for rate in RATES
    ]
    sizes: list[Point] = [
        ({"qdisc": name, "mtu": mtu}, dumbbell(qdisc, 2, mtu))
        for name, qdisc in both
        for mtu in MTUS
    ]
    changed: list[Point] = [
        ({"what": what, "qdisc": name, "rate": rate}, dumbbell(qdisc, rate, **changes))
        for what, changes, chosen in (
            ("window of 20", {"window": 20}, both),
            ("1 FTP each way", {"flows": 1}, both),
            ("2 FTPs each way", {"flows": 2}, both),
            ("2 FTPs, RTT 10 ms", {"flows": 2, "rtt_ms": 10}, both),
            ("other queues", {}, extra[2:]),
        )
        for name, qdisc in chosen
        for rate in RATES
    ]
    many: list[Point] = [
        ({"qdisc": name, "flows": n}, dumbbell(qdisc, 10, flows=n))
        for name, qdisc in extra
        for n in counts
    ]
    return {
        "bandwidth": Experiment(rates, measure, seeds),
        "mtu": Experiment(sizes, measure, seeds),
        "changed": Experiment(changed, measure, seeds if full else 1),
        "flows": Experiment(many, measure, seeds if full else 1),
    }


def _ranges(frame: pl.DataFrame, x: str, ax: "Axes", unit: str) -> None:
    """Draw the range of delays from node to node, disciplines side by side."""
    places = sorted(frame[x].unique().to_list())
    for n, (name, label) in enumerate(NAMES.items()):
        where = [i + (n - 0.5) * 0.25 for i in range(len(places))]
        low = [mean(frame, "node_low_s", qdisc=name, **{x: one}) for one in places]
        high = [mean(frame, "node_high_s", qdisc=name, **{x: one}) for one in places]
        tall = [b - a for a, b in zip(low, high, strict=True)]
        ax.bar(where, tall, 0.22, bottom=low, color=style(n)["color"], label=label)
    ax.set_xticks(range(len(places)), [str(one) for one in places])
    ax.set(xlabel=f"{x}, {unit}", ylabel="delay of packets, s", ylim=(0, None))
    ax.legend()


def _drops(frame: pl.DataFrame, x: str, ax: "Axes", unit: str) -> None:
    """Draw packets dropped per second against `x`, evenly spaced as in the paper."""
    from sojourn.plotting.lines import lines

    lines(
        ax,
        frame.with_columns(pl.col(x).cast(pl.String).alias("place")).sort(x),
        "place",
        "drops_per_s",
        by="qdisc",
        names=NAMES,
    )
    ax.set(xlabel=f"{x}, {unit}", ylabel="dropped, packets/s", ylim=(0, None))


@figure("4.1", "Range of packet delay (5th to 95th percentile)", needs=["bandwidth"])
def delay_by_bandwidth(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.1."""
    _ranges(runs["bandwidth"], "rate", ax, "Mbit/s")


@figure("4.2", "Packets dropped per second", needs=["bandwidth"])
def drops_by_bandwidth(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.2."""
    _drops(runs["bandwidth"], "rate", ax, "Mbit/s")


@figure("4.3", "Range of packet delay (5th to 95th percentile), 2 Mbit/s", needs=["mtu"])
def delay_by_mtu(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.3."""
    _ranges(runs["mtu"], "mtu", ax, "bytes")


@figure("4.4", "Packets dropped per second, 2 Mbit/s", needs=["mtu"])
def drops_by_mtu(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.4."""
    _drops(runs["mtu"], "mtu", ax, "bytes")


NS2 = {2: (240, 2.4), 4: (110, 3.8), 10: (45, 7.0), 100: (1.8, 18)}
"""By rate in Mbit/s: mean sojourn time (ms) and drops/s of ns-2's DRR with 100 packets for all
flows, with five FTPs of other round-trip times."""


@table("ns-2", "DRR with 100 packets of 1000 bytes, compared with ns-2", needs=["changed"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Compare our DRR of 100 kB with that of ns-2."""
    rows = []
    for rate, (wait_ms, drops) in NS2.items():
        mine = {"what": "other queues", "qdisc": "drr100kB", "rate": rate}
        wait = 1e3 * mean(runs["changed"], "wait_mean_s", **mine)
        ours = mean(runs["changed"], "drops_per_s", **mine)
        rows.append((rate, wait_ms, wait, float(drops), ours))
    names = ["Mbit/s", "ns-2: mean delay, ms", "ours", "ns-2: drops/s", "ours: drops/s"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("changed", "Drops per second with one parameter changed", needs=["bandwidth", "changed"])
def drops_when_changed(runs: Runs) -> pl.DataFrame:
    """Tabulate the effect of windows and of the number of flows on drops."""
    rows = []
    changes = ["window of 20", "1 FTP each way", "2 FTPs each way", "2 FTPs, RTT 10 ms"]
    for name, label in NAMES.items():
        for rate in RATES:
            own = {"qdisc": name, "rate": rate}
            cells: list[Any] = [label, rate, *STATED.get((name, rate), ("",))]
            cells.append(short(mean(runs["bandwidth"], "drops_per_s", **own)))
            each = [mean(runs["changed"], "drops_per_s", what=what, **own) for what in changes]
            cells += [short(one) for one in each]
            rows.append(cells)
    names = ["qdisc", "Mbit/s", "paper", "here (4 FTPs)", *changes]
    return pl.DataFrame(rows, schema=names, orient="row")


STATED = {("codel", 2): ("12",), ("codel", 100): ("16",), ("drr", 2): ("7",), ("drr", 100): ("4",)}
"""Drops per second in the paper, by discipline and rate."""


@figure("flows", "10 Mbit/s: drops against the number of FTPs each way", needs=["flows"])
def drops_by_flows(runs: Runs, ax: "Axes") -> None:
    """Draw drops per second for more disciplines than the paper's two."""
    from sojourn.plotting.lines import lines

    names = {
        **NAMES,
        "drr1000p": "DRR, 1000 packets",
        "drr100kB": "DRR, 100 kB",
        "fq_codel": "FQ-CoDel",
    }
    lines(ax, runs["flows"], "flows", "drops_per_s", by="qdisc", names=names)
    ax.set(xlabel="FTPs each way", ylabel="dropped, packets/s", xscale="log", ylim=(0, None))
    ax.set_xticks(list(COUNTS), [str(n) for n in COUNTS], minor=False)
    ax.minorticks_off()


COUNTS = (2, 4, 8, 16, 32)


def _range(frame: pl.DataFrame, stated: tuple[float, float], **labels: Any) -> list[Part]:
    """Compare both ends of a range of delays (ms), each within 20 %."""

    def what(end: str) -> str:
        at = f", {labels['mtu']} bytes" if "mtu" in labels else ""
        return f"{end} end{at}"

    return [
        number(what(end), values(frame, f"node_{end}_s", **labels), one, unit="ms", scale=1e3)
        for end, one in zip(("low", "high"), stated, strict=True)
    ]


def _each(frame: pl.DataFrame, x: str, less: str, more: str, what: str, *at: int) -> list[Part]:
    """Return a part per place: `what` is smaller with `less` than with `more`."""
    return [
        order(
            f"{NAMES[less]} below {NAMES[more]}, {x} {one}",
            values(frame, what, qdisc=less, **{x: one}),
            values(frame, what, qdisc=more, **{x: one}),
            unit="ms" if what.endswith("_s") and what != "drops_per_s" else "/s",
            scale=1e3 if what.endswith("_s") and what != "drops_per_s" else 1.0,
        )
        for one in at
    ]


def _falls(frame: pl.DataFrame) -> Part:
    """Return the part: DRR drops fewer packets at 100 Mbit/s than at 2 Mbit/s."""
    slow, fast = (values(frame, "drops_per_s", qdisc="drr", rate=rate) for rate in (2, 100))
    return order("fewer at 100 than at 2 Mbit/s", fast, slow, unit="/s")


RANGE = "5th and 95th percentile of the delay from node to node; each end within 20 %."
PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
BANDWIDTH, MTU = ("bandwidth",), ("mtu",)

CLAIMS = [
    Claim(
        "004-C1", "CoDel's range of delays at 10 Mbit/s.", "4.1", "10 to 30 ms", RANGE,
        lambda runs: _range(runs["bandwidth"], (10, 30), qdisc="codel", rate=10), BANDWIDTH,
    ),
    Claim(
        "004-C2", "CoDel's range at 2 Mbit/s.", "4.1", "20 to 50 ms", RANGE,
        lambda runs: _range(runs["bandwidth"], (20, 50), qdisc="codel", rate=2), BANDWIDTH,
    ),
    Claim(
        "004-C3", "DRR's range at 10 Mbit/s.", "4.1", "10 to 40 ms", RANGE,
        lambda runs: _range(runs["bandwidth"], (10, 40), qdisc="drr", rate=10), BANDWIDTH,
    ),
    Claim(
        "004-C4", "DRR's range at 2 Mbit/s.", "4.1", "50 to 120 ms", RANGE,
        lambda runs: _range(runs["bandwidth"], (50, 120), qdisc="drr", rate=2), BANDWIDTH,
    ),
    Claim(
        "004-C5", "The queueing delay is smaller with CoDel than with DRR up to 10 Mbit/s.", "4.1",
        "less at 2, 4 and 10 Mbit/s", f"Mean sojourn time. {PAIRS}",
        lambda runs: _each(runs["bandwidth"], "rate", "codel", "drr", "wait_mean_s", 2, 4, 10),
        BANDWIDTH,
    ),
    Claim(
        "004-C6", "At 100 Mbit/s the queueing delay is smaller with DRR.", "4.1", "less",
        f"Mean sojourn time. {PAIRS}",
        lambda runs: _each(runs["bandwidth"], "rate", "drr", "codel", "wait_mean_s", 100),
        BANDWIDTH,
    ),
    Claim(
        "004-C7", "CoDel's drops per second.", "4.2", "12 at 2, 16 at 100 Mbit/s",
        "Within 20 %.",
        lambda runs: [
            number(f"at {rate} Mbit/s", values(runs["bandwidth"], "drops_per_s", qdisc="codel",
                   rate=rate), stated, unit="/s")
            for rate, stated in ((2, 12), (100, 16))
        ],
        BANDWIDTH,
    ),
    Claim(
        "004-C8", "DRR's drops per second; most at the lowest rate.", "4.2",
        "7 at 2, 4 at 100 Mbit/s", f"Within 20 %; and the order. {PAIRS}",
        lambda runs: [
            *(
                number(f"at {rate} Mbit/s", values(runs["bandwidth"], "drops_per_s", qdisc="drr",
                       rate=rate), stated, unit="/s")
                for rate, stated in ((2, 7), (100, 4))
            ),
            _falls(runs["bandwidth"]),
        ],
        BANDWIDTH,
    ),
    Claim(
        "004-C9", "DRR drops less than CoDel at every rate.", "4.2", "less", PAIRS,
        lambda runs: _each(runs["bandwidth"], "rate", "drr", "codel", "drops_per_s", *RATES),
        BANDWIDTH,
    ),
    Claim(
        "004-C10", "CoDel's range grows with the MTU.", "4.3",
        "10 to 30 ms (500 bytes), 20 to 50 ms (1500)", RANGE,
        lambda runs: [
            *_range(runs["mtu"], (10, 30), qdisc="codel", mtu=500),
            *_range(runs["mtu"], (20, 50), qdisc="codel", mtu=1500),
        ],
        MTU,
    ),
    Claim(
        "004-C11", "DRR's range grows with the MTU.", "4.3",
        "50 to 110 ms (500 bytes), 50 to 150 ms (1500)", RANGE,
        lambda runs: [
            *_range(runs["mtu"], (50, 110), qdisc="drr", mtu=500),
            *_range(runs["mtu"], (50, 150), qdisc="drr", mtu=1500),
        ],
        MTU,
    ),
    Claim(
        "004-C12", "Drops per second against the MTU.", "4.4",
        "CoDel 11 (500 bytes) to 14 (1500), DRR 4 to 6", "Within 20 %.",
        lambda runs: [
            number(f"{NAMES[name]}, {mtu} bytes", values(runs["mtu"], "drops_per_s", qdisc=name,
                   mtu=mtu), stated, unit="/s")
            for name, mtu, stated in (
                ("codel", 500, 11), ("codel", 1500, 14), ("drr", 500, 4), ("drr", 1500, 6)
            )
        ],
        MTU,
    ),
    Claim(
        "004-C13", "With CoDel no packet stays in the queue for more than 5 ms.", "4.1", "< 5 ms",
        "The longest sojourn time, at each rate.",
        lambda runs: [
            bound(f"longest at {rate} Mbit/s", values(runs["bandwidth"], "wait_max_s",
                  qdisc="codel", rate=rate), "<", 5, unit="ms", scale=1e3)
            for rate in RATES
        ],
        BANDWIDTH,
    ),
    Claim(
        "004-C14", "CoDel's delays vary less than DRR's in each scenario.", "4.1, 4.3", "less",
        f"Standard deviation of the delay. {PAIRS}",
        lambda runs: [
            *_each(runs["bandwidth"], "rate", "codel", "drr", "node_std_s", *RATES),
            *_each(runs["mtu"], "mtu", "codel", "drr", "node_std_s", *MTUS),
        ],
        ("bandwidth", "mtu"),
    ),
]  # fmt: skip
