"""Rules of the claims about bulk data: each function of `runs` returns the parts of a claim."""

from typing import Any, Literal

import numpy as np
import polars as pl

from sojourn_lab.papers.red_vs_taildrop.experiments import THREE
from sojourn_lab.papers.red_vs_taildrop.runs import NAMES
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.parts import Part, bound, equal, monotone, number, order

RED, STD = ("red", "gred", "opt"), ("red", "gred")
POINTS_MBPS = 0.3
"""Three points of the link's rate of 10 Mbit/s."""

NS2: dict[tuple[str, int], tuple[float, float, float, float]] = {
    ("td", 16): (0.72, 260, 39.4, 1.29), ("td", 64): (4.33, 298, 16.8, 1.42),
    ("td", 256): (17.0, 316, 4.3, 1.58), ("red", 16): (1.16, 74, 15.9, 1.00),
    ("red", 64): (5.66, 178, 14.2, 1.00), ("red", 256): (22.2, 208, 11.7, 3.79),
    ("gred", 16): (1.20, 74, 16.3, 1.00), ("gred", 64): (5.49, 178, 14.1, 1.00),
    ("gred", 256): (19.0, 249, 12.2, 1.00),
}  # fmt: skip
"""By discipline and FTPs: UDP loss (%), mean and standard deviation of the delay (ms), mean loss
run; ns-2 with 300 packets for every N, mean of three runs."""


def best_and_worst(frame: pl.DataFrame, x: str) -> list[Part]:
    """Return a part per load: the goodputs of all disciplines are within 3 % of the link's rate.

    Fails wrongly: a discipline with a shorter queue has shorter round-trip times, hence more
    retransmissions. Passes wrongly: at an overload all disciplines fill the link, whatever they do.
    """
    parts = []
    for one in sorted(set(frame[x])):
        goodputs = {q: values(frame, "goodput_mbps", q=q, **{x: one}) for q in NAMES}
        low, high = (pick(goodputs, key=lambda q: float(goodputs[q].mean())) for pick in (min, max))
        what = f"{x} {one}: {NAMES[low]} (least) as {NAMES[high]} (most)"
        parts.append(equal(what, goodputs[low], goodputs[high], points=POINTS_MBPS, unit="Mbit/s"))
    return parts


def less(frame: pl.DataFrame, what: str, less: str, more: str, **at: int) -> Part:
    """Return the part: a column is smaller with one discipline than with another.

    Fails wrongly: with few seeds of heavy-tailed traffic. Passes wrongly: on a difference that is
    significant but too small to matter.
    """
    where = ", ".join(f"{value} {name}" for name, value in at.items())
    a, b = (values(frame, what, q=q, **at) for q in (less, more))
    ms = what.startswith("delay")
    text = f"{where}: {NAMES[less]} below {NAMES[more]}"
    percent = what == "udp_loss"
    return order(text, a, b, unit="ms" if ms else "%" if percent else "",
                 scale=1e3 if ms else 100 if percent else 1)  # fmt: skip


def spread(frame: pl.DataFrame, x: str, load: str) -> list[Part]:
    """Return the parts: the deviation's range over the loads is larger with Tail Drop."""
    ran = sorted(set(frame[x]))
    ranges = {}
    for q in NAMES:
        each = np.array([values(frame, "delay_std_s", q=q, **{x: one}) for one in ran])
        ranges[q] = each.max(axis=0) - each.min(axis=0)
    return [
        order(f"{load}: range of {NAMES[q]}'s deviation below Tail Drop's", ranges[q],
              ranges["td"], unit="ms", scale=1e3)
        for q in RED
    ]  # fmt: skip


def _along(frame: pl.DataFrame, what: str, q: str, sign: Literal[1, -1]) -> Part:
    """Return the part: it rises (sign 1) or falls (-1) from each number of FTPs to the next."""
    steps = [values(frame, what, q=q, flows=n) for n in sorted(set(frame["flows"]))]
    word = "rises" if sign > 0 else "falls"
    return monotone(f"{NAMES[q]}: {word} from each N to the next", steps, sign, unit="ms",
                    scale=1e3)  # fmt: skip


def place(frame: pl.DataFrame) -> Any:
    """Return the mean queues relative to the thresholds: 0 at min_th, 1 at max_th; by seed."""
    low, high = values(frame, "min_th"), values(frame, "max_th")
    return (values(frame, "queue_packets") - low) / (high - low)


def _place(frame: pl.DataFrame, q: str, n: int) -> Any:
    """Return `place` for the runs of a discipline with `n` flows."""
    return place(frame.filter(q=q, flows=n))


def _share(frame: pl.DataFrame, what: str, of: str, **labels: Any) -> Any:
    """Return a column as a share of another one, by seed."""
    return values(frame, what, **labels) / values(frame, of, **labels)


def goodput(runs: Runs) -> list[Part]:
    """C1: against the number, against the rate that UDP leaves, and among disciplines.

    Fails wrongly: the paper's 8.4 may be payload, and ours counts headers (a setting). Passes
    wrongly: a fifth of 8.4 accepts more than the link carries, so the tolerance is 3 points of the
    link's rate.
    """
    frame = runs["ftp"]
    ran = set(frame["flows"])
    parts = [
        number(f"{NAMES[q]}, {n} flows", values(frame, "goodput_mbps", q=q, flows=n), 8.4,
               unit="Mbit/s", points=POINTS_MBPS)
        .with_ns2("9.0 with headers" if (q, n) in NS2 else "")
        for q in NAMES for n in THREE if n in ran
    ]  # fmt: skip
    for q in NAMES:
        share = [_share(frame, "goodput_mbps", "left_mbps", q=q, flows=n) for n in sorted(ran)]
        worst = min(share, key=lambda one: float(one.mean()))
        parts.append(
            bound(f"{NAMES[q]}: share of the rate left by UDP, lowest N", worst, ">", 95,
                  unit="%", scale=100)
        )  # fmt: skip
    return [*parts, *best_and_worst(frame, "flows")]


def too_aggressive(runs: Runs) -> list[Part]:
    """C2: (G)REDstd with 16 flows.

    Fails wrongly: "slightly" has no size; any significant loss of goodput counts. Passes wrongly: a
    queue near min_th has other reasons than max_p; both parts must hold.
    """
    frame = runs["ftp"]
    return [
        *(less(frame, "goodput_mbps", q, "td", flows=16) for q in STD),
        *(bound(f"{NAMES[q]}: mean queue from min_th (0) to max_th (1)",
                _place(frame, q, 16), "<", 0.25) for q in STD),
    ]  # fmt: skip


def udp_light(runs: Runs) -> list[Part]:
    """C3: ratios and order at 16 flows, the spread at 256.

    Fails wrongly: UDP's losses depend on how bursty TCP is (settings: ns-2's TCP; losses of all
    packets). Passes wrongly: a ratio within 20 % of 2 also if both losses are wrong by the same
    factor.
    """
    frame = runs["ftp"]
    opt = values(frame, "udp_loss", q="opt", flows=16)
    ratios = [
        number(f"16 flows: {NAMES[q]} to REDopt", values(frame, "udp_loss", q=q, flows=16) / opt, 2)
        for q in STD
    ]
    many = {q: values(frame, "udp_loss", q=q, flows=256) for q in NAMES}
    low, high = (pick(many, key=lambda q: float(many[q].mean())) for pick in (min, max))
    all_alike = equal(f"256 flows: {NAMES[low]} (least) as {NAMES[high]} (most)", many[low],
                      many[high], within=0.2, unit="%", scale=100)  # fmt: skip
    return [
        *ratios,
        less(frame, "udp_loss", "opt", "td", flows=16),
        *(less(frame, "udp_loss", "td", q, flows=16) for q in STD),
        all_alike,
    ]


def delays(runs: Runs) -> list[Part]:
    """C4: growth over N, and where the mean queues are.

    Fails wrongly: "near B" is read as above 80 %, a choice. Passes wrongly: a mean below max_th
    hides times above it.
    """
    frame = runs["ftp"]
    ran = sorted(set(frame["flows"]))
    full = [_share(frame, "queue_packets", "buffer_packets", q="td", flows=n) for n in ran]
    least = min(full, key=lambda one: float(one.mean()))
    tops = {
        q: max((_share(frame, "queue_packets", "max_th", q=q, flows=n) for n in ran),
               key=lambda one: float(one.mean()))
        for q in RED
    }  # fmt: skip
    theirs = {"red": "0.995 (256 flows, 300 packets)", "gred": "1.19 (gentle up to 2 max_th)"}
    return [
        *(_along(frame, "delay_s", q, 1) for q in NAMES),
        bound("Tail Drop: mean queue as a share of B, lowest N", least, ">", 0.8)
        .with_ns2("0.84, 0.95, 0.99 at 16, 64, 256 flows"),
        *(bound(f"{NAMES[q]}: mean queue as a share of max_th, highest N", top, "<", 1)
          .with_ns2(theirs.get(q, "")) for q, top in tops.items()),
    ]  # fmt: skip


def drift(runs: Runs) -> list[Part]:
    """C5: growth of the delay, and the place between the thresholds.

    Fails wrongly: quarters of the band are a choice. Passes wrongly: the growth compares means over
    five loads; its interval is by seed.
    """
    frame = runs["ftp"]
    ran = sorted(set(frame["flows"]))
    by_q = {q: np.array([values(frame, "delay_s", q=q, flows=n) for n in ran]) for q in RED}
    grown = {q: one.max(axis=0) / one.min(axis=0) - 1 for q, one in by_q.items()}
    parts = [
        order(f"growth of the delay (largest / smallest - 1): twice REDopt's below {NAMES[q]}'s",
              2 * grown["opt"], grown[q])
        for q in STD
    ]  # fmt: skip
    for q in STD:
        for n, relation, limit in ((16, "<", 0.25), (256, ">", 0.75)):
            what = f"{NAMES[q]}, {n} flows: mean queue from min_th (0) to max_th (1)"
            parts.append(bound(what, _place(frame, q, n), relation, limit))  # type: ignore[arg-type]
    places = [_place(frame, "opt", n) for n in ran]
    ends = min(places, key=np.mean), max(places, key=np.mean)
    return [
        *parts,
        bound("REDopt: lowest place over N", ends[0], ">", 0.25),
        bound("REDopt: highest place over N", ends[1], "<", 0.75),
    ]


def swings(runs: Runs) -> list[Part]:
    """C6: the standard deviation of the delay.

    Fails wrongly: one step between neighbouring N within the noise. Passes wrongly: a deviation
    that is high for another reason than synchronisation.
    """
    frame = runs["ftp"]
    a, b = (values(frame, "delay_std_s", q="td", flows=n) for n in (256, 16))
    return [
        order("Tail Drop: less at 256 flows than at 16", a, b, unit="ms", scale=1e3)
        .with_ns2("4.3 against 39.4 ms"),
        _along(frame, "delay_std_s", "td", -1).with_ns2("39.4, 16.8, 4.3 ms at 16, 64, 256"),
        *(less(frame, "delay_std_s", q, "td", flows=16)
          .with_ns2("15.9 against 39.4 ms" if q == "red" else "") for q in RED),
    ]  # fmt: skip


def light_runs(runs: Runs) -> list[Part]:
    """C7: mean runs of losses with 16 and 32 flows.

    Fails wrongly: with few losses the mean run is noisy; the interval must be within 20 %. Passes
    wrongly: runs near 1 differ by less than 20 % even if their tails differ.
    """
    frame, parts = runs["ftp"], []
    for n in (16, 32):
        base = values(frame, "run_mean", q="gred", flows=n)
        for q in ("red", "opt"):
            other = values(frame, "run_mean", q=q, flows=n)
            parts.append(equal(f"{n} flows: {NAMES[q]} as GREDstd", other, base, within=0.2))
        parts += [less(frame, "run_mean", q, "td", flows=n)
                  .with_ns2("1.00 against 1.29" if n == 16 and q in STD else "")
                  for q in RED]  # fmt: skip
    return parts


def many_runs(runs: Runs) -> list[Part]:
    """C8: runs of losses with 256 flows.

    Fails wrongly: the average is held at max_th by the drops it causes, so it cannot be far above.
    Passes wrongly: P(N >= 10) of both may be 0; then the order fails, as it must.
    """
    frame = runs["ftp"]
    average = _share(frame, "average_packets", "max_th", q="red", flows=256)
    tail = [values(frame, "runs_of_10", q=q, flows=256) for q in ("td", "opt")]
    return [
        bound("REDstd: average as a share of max_th", average, ">", 1),
        less(frame, "run_mean", "gred", "red", flows=256).with_ns2("1.00 against 3.79"),
        less(frame, "run_mean", "opt", "red", flows=256),
        less(frame, "runs_of_2", "opt", "td", flows=256),
        order("heavy tail: P(N >= 10) of Tail Drop below REDopt's", *tail),
    ]


def same_delay(runs: Runs) -> list[Part]:
    """C9: interpolate Tail Drop's goodput at REDopt's delay, paired by seed.

    Fails wrongly: outside of the buffers run, the nearest one is used. Passes wrongly: at an
    overload goodput does not depend on the buffer.
    """
    parts = []
    shares = sorted(set(runs["buffers"]["share"]))
    seeds = min(runs[name]["seed"].n_unique() for name in ("buffers", "ftp"))
    for n in THREE:
        own = [
            values(runs["ftp"], k, q="opt", flows=n)[:seeds] for k in ("delay_s", "goodput_mbps")
        ]
        tail = [
            np.array([values(runs["buffers"], k, share=one, flows=n)[:seeds] for one in shares])
            for k in ("delay_s", "goodput_mbps")
        ]
        read = [np.interp(own[0][i], tail[0][:, i], tail[1][:, i]) for i in range(seeds)]
        parts.append(
            equal(f"{n} flows, {1e3 * own[0].mean():.0f} ms: Tail Drop as REDopt", read, own[1],
                  points=POINTS_MBPS, unit="Mbit/s")
        )  # fmt: skip
    return parts
