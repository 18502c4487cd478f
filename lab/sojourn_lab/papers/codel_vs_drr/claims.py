"""Claims of `codel_vs_drr`, the rules that judge them, fixed before the runs, and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from sojourn._util.units import bytes_of, seconds
from sojourn_lab.papers.codel_vs_drr.runs import CHANGES, MTUS, NAMES, OURS, RATES
from sojourn_lab.reproduction.claims import Claim, Runs, Setting, overlay, values
from sojourn_lab.reproduction.parts import Part, bound, number, order

RANGES = tuple(f"004-C{n}" for n in (1, 2, 3, 4, 10, 11))
"""Claims about ranges of delays."""


def _columns(**read: str) -> Any:
    """Return the function of rows that reads columns from others."""
    return lambda frame: frame.with_columns(**{to: pl.col(one) for to, one in read.items()})


def _reading(name: str, claims: Sequence[str], **read: str) -> Setting:
    """Return the setting that reads the delays differently, in both scenarios."""
    change = _columns(**read)
    return Setting(name, {"bandwidth": change, "mtu": change}, claims=claims)


SETTINGS = [
    *(
        Setting(what, {"bandwidth": overlay("changed", what=what),
                       "mtu": overlay("changed mtu", what=what)})
        for what in CHANGES
    ),
    Setting("4 Mbit/s", {"mtu": overlay("changed mtu", what="4 Mbit/s")}),
    _reading("delays over all packets", (*RANGES, "004-C14"), data_low_s="node_low_s",
             data_high_s="node_high_s", data_std_s="node_std_s"),
    _reading("range from minimum to maximum", RANGES, data_low_s="data_least_s",
             data_high_s="data_most_s"),
    _reading("delay in the queue alone", RANGES, data_low_s="data_wait_low_s",
             data_high_s="data_wait_high_s"),
]  # fmt: skip


def _range(
    runs: Runs, *, stated: tuple[float, float], of: str = "bandwidth", **labels: Any
) -> list[Part]:
    """Compare both ends of a range of delays (ms), each within 20 %.

    Fails wrongly: if the paper's range is not from the 5th to the 95th percentile, or includes acks
    and CBR (both are settings). Passes wrongly: the low end is mostly our own propagation delay,
    which the paper does not state; the delay in the queue alone is a setting too.
    """
    frame = runs[of]

    def what(end: str) -> str:
        at = f", {labels['mtu']} bytes" if "mtu" in labels else ""
        return f"{end} end{at}"

    return [
        number(what(end), values(frame, f"data_{end}_s", **labels), one, unit="ms", scale=1e3)
        for end, one in zip(("low", "high"), stated, strict=True)
    ]


def _less(
    runs: Runs,
    *,
    less: str,
    more: str,
    what: str,
    at: Sequence[int],
    of: str = "bandwidth",
    x: str = "rate",
) -> list[Part]:
    """Return a part per place: `what` is smaller with `less` than with `more`.

    Fails wrongly: if seeds are too few for a small difference; intervals are printed. Passes
    wrongly: on a difference that is significant but too small to matter.
    """
    frame, drops = runs[of], what == "drops_per_s"
    return [
        order(
            f"{NAMES[less]} below {NAMES[more]}, {x} {one}",
            values(frame, what, qdisc=less, **{x: one}),
            values(frame, what, qdisc=more, **{x: one}),
            unit="/s" if drops else "ms",
            scale=1.0 if drops else 1e3,
        )
        for one in at
    ]


def _drops(runs: Runs, qdisc: str, stated: Mapping[int, float]) -> list[Part]:
    """Return the parts of a claim about drops at two rates (Mbit/s): numbers, and their order."""
    frame = runs["bandwidth"]
    drops = {rate: values(frame, "drops_per_s", qdisc=qdisc, rate=rate) for rate in stated}
    fewer, more = sorted(stated, key=lambda rate: stated[rate])
    return [
        *(number(f"at {rate} Mbit/s", drops[rate], stated[rate], unit="/s") for rate in stated),
        order(f"fewer at {fewer} than at {more} Mbit/s", drops[fewer], drops[more], unit="/s"),
    ]


def _codel_drops(runs: Runs) -> list[Part]:
    """C7: two numbers and the rise between them.

    Fails wrongly: drops per second depend on the number of flows and their round-trip time, which
    the paper does not state (all are settings). Passes wrongly: if one number agrees by chance; the
    rise is therefore a part of its own.
    """
    return _drops(runs, "codel", {2: 12, 100: 16})


def _drr_drops(runs: Runs) -> list[Part]:
    """C8: two numbers and the fall between them.

    Fails and passes wrongly: as C7.
    """
    return _drops(runs, "drr", {2: 7, 100: 4})


def _drops_by_mtu(runs: Runs, *, qdisc: str, stated: Mapping[int, float]) -> list[Part]:
    """C12, C15: two numbers and an order.

    Fails wrongly: as C7. Passes wrongly: neighbouring numbers (11 and 14) overlap within 20 %, so
    that a constant of 12.5 would pass; the order is therefore a part of its own.
    """
    drops = {mtu: values(runs["mtu"], "drops_per_s", qdisc=qdisc, mtu=mtu) for mtu in stated}
    small, large = stated
    return [
        *(number(f"{mtu} bytes", drops[mtu], one, unit="/s") for mtu, one in stated.items()),
        order(f"fewer at {small} than at {large} bytes", drops[small], drops[large], unit="/s"),
    ]


def _grows(
    runs: Runs, *, qdisc: str, small: tuple[float, float], wide: tuple[float, float]
) -> list[Part]:
    """Compare both ends of the range at 500 and at 1500 bytes.

    Fails wrongly: as `_range`; the rate of this scenario is a setting too. Passes wrongly: the
    lower ends of the paper are the same at both sizes, so half of the parts cannot show growth.
    """
    return [
        *_range(runs, of="mtu", stated=small, qdisc=qdisc, mtu=500),
        *_range(runs, of="mtu", stated=wide, qdisc=qdisc, mtu=1500),
    ]


def _varies_less(runs: Runs) -> list[Part]:
    """C14: the deviation of the delays, at each rate and at each MTU.

    Fails wrongly: if the paper looked at ranges of figures, not at deviations. Passes wrongly: as
    `_less`.
    """
    both: dict[str, Any] = {"less": "codel", "more": "drr", "what": "data_std_s"}
    return [
        *_less(runs, at=RATES, **both),
        *_less(runs, of="mtu", x="mtu", at=MTUS, **both),
    ]


def _longest(runs: Runs) -> list[Part]:
    """C13: the longest sojourn time at each rate.

    Fails wrongly: if "no packet" was meant loosely, since one packet of a run decides. Passes
    wrongly: cannot, as the whole interval must be below the target.
    """
    frame = runs["bandwidth"]
    return [
        bound(f"longest at {rate} Mbit/s", values(frame, "wait_max_s", qdisc="codel", rate=rate),
              "<", 5, unit="ms", scale=1e3)
        for rate in RATES
    ]  # fmt: skip


PROPAGATION_MS = seconds(OURS.rtt) * 1e3 / 4


def _least(rate: int, packet: str = OURS.packet) -> str:
    """Return the delay from node to node of a packet that meets an empty queue."""
    return f"{PROPAGATION_MS + bytes_of(packet) * 8 / rate / 1e3:.3g} ms"


RANGE = (
    "5th and 95th percentile of the delay from node to node of the FTPs' data packets; each end "
    "within 20 %."
)
EMPTY = (
    f"{RANGE} Of the low end, {{}} are the path of an empty queue, most of it our own propagation "
    "delay; with the delay in the queue alone (a setting) the low end is another."
)
PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
BANDWIDTH, MTU = ("bandwidth",), ("mtu",)

CLAIMS = [
    Claim(
        "004-C1", "CoDel's range of delays at 10 Mbit/s.", "4.1", "10 to 30 ms",
        EMPTY.format(_least(10)),
        partial(_range, stated=(10, 30), qdisc="codel", rate=10), BANDWIDTH,
    ),
    Claim(
        "004-C2", "CoDel's range at 2 Mbit/s.", "4.1", "20 to 50 ms", EMPTY.format(_least(2)),
        partial(_range, stated=(20, 50), qdisc="codel", rate=2), BANDWIDTH,
    ),
    Claim(
        "004-C3", "DRR's range at 10 Mbit/s.", "4.1", "10 to 40 ms", EMPTY.format(_least(10)),
        partial(_range, stated=(10, 40), qdisc="drr", rate=10), BANDWIDTH,
    ),
    Claim(
        "004-C4", "DRR's range at 2 Mbit/s.", "4.1", "50 to 120 ms", RANGE,
        partial(_range, stated=(50, 120), qdisc="drr", rate=2), BANDWIDTH,
    ),
    Claim(
        "004-C5", "The queueing delay is smaller with CoDel than with DRR up to 10 Mbit/s.", "4.1",
        "less at 2, 4 and 10 Mbit/s", f"Mean sojourn time of all packets. {PAIRS}",
        partial(_less, less="codel", more="drr", what="wait_mean_s", at=(2, 4, 10)), BANDWIDTH,
    ),
    Claim(
        "004-C6", "At 100 Mbit/s the queueing delay is smaller with DRR.", "4.1", "less",
        f"Mean sojourn time of all packets. {PAIRS}",
        partial(_less, less="drr", more="codel", what="wait_mean_s", at=(100,)), BANDWIDTH,
    ),
    Claim(
        "004-C7", "CoDel's drops per second rise with the rate.", "4.2",
        "12 at 2, 16 at 100 Mbit/s", f"Within 20 %; and the order. {PAIRS}", _codel_drops,
        BANDWIDTH,
    ),
    Claim(
        "004-C8", "DRR's drops per second; most at the lowest rate.", "4.2",
        "7 at 2, 4 at 100 Mbit/s", f"Within 20 %; and the order. {PAIRS}", _drr_drops, BANDWIDTH,
    ),
    Claim(
        "004-C9", "DRR drops less than CoDel at every rate.", "4.2", "less", PAIRS,
        partial(_less, less="drr", more="codel", what="drops_per_s", at=RATES), BANDWIDTH,
    ),
    Claim(
        "004-C10", "CoDel's range grows with the MTU.", "4.3",
        "10 to 30 ms (500 bytes), 20 to 50 ms (1500)", RANGE,
        partial(_grows, qdisc="codel", small=(10, 30), wide=(20, 50)), MTU,
    ),
    Claim(
        "004-C11", "DRR's range grows with the MTU.", "4.3",
        "50 to 110 ms (500 bytes), 50 to 150 ms (1500)", RANGE,
        partial(_grows, qdisc="drr", small=(50, 110), wide=(50, 150)), MTU,
    ),
    Claim(
        "004-C12", "CoDel's drops per second rise with the MTU.", "4.4",
        "11 (500 bytes) to 14 (1500)", f"Within 20 %; and the order. {PAIRS}",
        partial(_drops_by_mtu, qdisc="codel", stated={500: 11, 1500: 14}), MTU,
    ),
    Claim(
        "004-C13", "With CoDel no packet stays in the queue for more than 5 ms.", "4.1", "< 5 ms",
        "The longest sojourn time, at each rate.", _longest, BANDWIDTH,
    ),
    Claim(
        "004-C14", "CoDel's delays vary less than DRR's in each scenario.", "4.1, 4.3", "less",
        f"Standard deviation of the delay of the FTPs' data packets. {PAIRS}",
        _varies_less, ("bandwidth", "mtu"),
    ),
    Claim(
        "004-C15", "DRR's drops per second rise with the MTU.", "4.4",
        "4 (500 bytes) to 6 (1500)", f"Within 20 %; and the order. {PAIRS}",
        partial(_drops_by_mtu, qdisc="drr", stated={500: 4, 1500: 6}), MTU,
    ),
]  # fmt: skip

WHY = {
    "004-C2": "CoDel's queue runs empty, so low delays are the path's",
    "004-C3": "with four FTPs DRR's queue rarely empties",
    "004-C7": "drops per second fall with the rate for loss-based senders",
    "004-C9": "DRR's 25 kB are only 2 ms at 100 Mbit/s",
    "004-C10": "CoDel's delay at a slow link exceeds its target",
    "004-C11": "DRR's buffer holds as many bytes whatever the MTU",
    "004-C12": "fewer, larger packets mean fewer CoDel drops",
    "004-C13": "the target bounds minimum delay per interval, not maximum",
    "004-C14": "at 100 Mbit/s DRR's buffer is the smaller one",
}
"""Reasons, in at most ten words, of verdicts other than `holds`."""

CLAIMS = [replace(one, why=WHY.get(one.id, "")) for one in CLAIMS]
