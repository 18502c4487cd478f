"""Tail Drop against RED, gentle RED and RED configured by a model, for bulk and web traffic.

The paper: 10 Mbit/s; round trips of 120, 140, 160 and 180 ms for four hosts, whose delays are all
on the way forward; TCP with SACK and four CBR sources of 573-byte packets with 1 Mbit/s together.
Tail Drop; REDstd and GREDstd (max_p 0.1, w_q 0.002, min_th 3/20 and max_th 13/20 of the buffer,
GREDstd's slope goes from max_p at max_th to 1 at the full buffer); REDopt, which a model
configures from bandwidth, round-trip time and the number of flows. All have REDopt's buffer, which
grows with the flows. Bulk data (figure 3): a testbed, 16 to 256 FTPs, 500 s of which 100 are cut,
10 runs. Web (figure 4): ns-2, 800 to 1400 sessions, 5000 s of which 100 are cut, 50 runs; REDopt
takes for N the mean number of active flows of a first run.

What it leaves out (or our copy does), and what was chosen:

- bulk data: N = 16, 32, 64, 128, 256, N/4 per host. Linux of 2001: SACK, delayed acks, 1514-byte
  packets, a first window of two, a least time-out of 200 ms (the profile `rfc`). With ns-2's Sack1,
  an ack per packet and sizes of 1400 to 1628 bytes: experiment `simulated`;
- REDopt's model is that of the discipline `red_opt` (its constants are recollected); not gentle;
- RED's signals are independent (`wait` bernoulli) in all three RED schemes. The paper says that
  REDopt's queue settles in the middle between the thresholds; of the three forms that are in use
  only this one does it (`spread` has the others);
- web: Feldmann's users as ns-2's webtraf had them before November 2001, a page does not wait for
  the end of the one before: pages Pareto (50 s, shape 2) apart, Pareto (4, 1.2) objects, Pareto
  (0.5 s, 1.5) apart, of Pareto (12 kB, 1.2). Each over a connection of its own (ns-2's Sack1),
  without the packet that asks for it. They offer 9.05 Mbit/s at 1300 sessions (median of three
  runs of 2000 s over a fast link), which is what UDP leaves: nothing had to be scaled;
- REDopt's N for web: `ACTIVE`, the median of six first runs with 300 packets of Tail Drop;
- access links and the one between the first two routers have 100 Mbit/s and 1000 packets; behind
  the bottleneck no queue can form, so links end there and acks return as a pure delay;
- CBR sources begin at random in the first 10 s; goodput counts headers of 40 bytes.

Scaled down: web has 6 runs of 5000 s (the paper 50), what else decides 2 to 5 runs of 300 to 2000
s; quick cuts all of it to 200 to 500 s, 2 or 3 runs. The paper's bulk data is run as it was, 10
times 500 s. What its simulations would take in full, 4 schemes at 4 loads, 50 runs of 5000 s: 800
runs of 2.3 to 3 s each on one core, 35 minutes, and 11 G packets (over three links each).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.claims import (
    Claim, Part, Runs, bound, equal, mean, number, order, shape, values,
)  # fmt: skip
from sojourn.curves import lines, style
from sojourn.paper import figure, table
from sojourn.papers._red_vs_taildrop import (
    ACTIVE, FTPS, LIGHT, MORE_WEB, NAMES, SATURATED, SESSIONS, gap, room, scenarios,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CLAIMS", "REFERENCE", "TITLE", "scenarios"]

TITLE = "Tail Drop against RED for bulk and web traffic"
REFERENCE = "Ziegler, Brandauer, Fdida and others, ISCC 2001 (as far as known)"

RED, STD = ("red", "gred", "opt"), ("red", "gred")
CAPACITY_MBPS, POINTS = 10.0, 0.03

NS2: dict[tuple[str, int], tuple[float, float, float, float]] = {
    ("td", 16): (0.72, 260, 39.4, 1.29), ("td", 64): (4.33, 298, 16.8, 1.42),
    ("td", 256): (17.0, 316, 4.3, 1.58), ("red", 16): (1.16, 74, 15.9, 1.00),
    ("red", 64): (5.66, 178, 14.2, 1.00), ("red", 256): (22.2, 208, 11.7, 3.79),
    ("gred", 16): (1.20, 74, 16.3, 1.00), ("gred", 64): (5.49, 178, 14.1, 1.00),
    ("gred", 256): (19.0, 249, 12.2, 1.00),
}  # fmt: skip
"""By scheme and FTPs: loss of UDP (%), mean and standard deviation of the delay (ms), mean run of
losses; ns-2 with 300 packets for every N (`td_red_ftp.csv` of the oracle, mean of three runs)."""


def _ftps(ax: "Axes") -> None:
    ax.set(xlabel="FTP flows", xscale="log", ylim=(0, None))
    ax.set_xticks(list(FTPS), [str(n) for n in FTPS], minor=False)
    ax.minorticks_off()


def _over_ftps(runs: Runs, ax: "Axes", what: str, label: str, scale: float = 1.0) -> None:
    """Draw something over the number of FTPs."""
    lines(ax, runs["ftp"], "flows", what, by="q", names=NAMES, scale=scale)
    _ftps(ax)
    ax.set_ylabel(label)


def _over_sessions(runs: Runs, ax: "Axes", what: str, label: str, scale: float = 1.0) -> None:
    """Draw something over the number of web sessions."""
    lines(ax, runs["web"], "sessions", what, by="q", names=NAMES, scale=scale)
    ax.set(xlabel="web sessions", xticks=list(SESSIONS), ylabel=label, ylim=(0, None))


def _run_lengths(frame: pl.DataFrame, ax: "Axes", **labels: Any) -> None:
    """Draw the shares of runs of n losses, their mean over seeds, with 95 % intervals."""
    from sojourn.figure import legend
    from sojourn.statistics import interval

    for k, (q, name) in enumerate(NAMES.items()):
        found = [np.asarray(one) for one in values(frame, "runs", q=q, **labels)]
        longest = max(len(one) for one in found)
        shares = np.array([np.pad(one, (0, longest - len(one))) / one.sum() for one in found])
        seen = [n for n in range(longest) if shares[:, n].mean() > 0]
        halves = [interval(shares[:, n]) for n in seen]
        look = style(k) | {"ls": "-" if longest < 20 else "", "label": name}
        bars = [
            [min(one.half, one.mean * 0.99) for one in halves],
            [one.half for one in halves],
        ]
        ax.errorbar([n + 1 for n in seen], [one.mean for one in halves], yerr=bars,
                    elinewidth=0.5, alpha=0.8, **look)  # fmt: skip
    ax.set(xlabel="losses in a row, n", ylabel="P(N = n)", xscale="log", yscale="log")
    legend(ax)


def _parameters(frame: pl.DataFrame, x: str, places: Sequence[int], used: Any) -> pl.DataFrame:
    """Give what the schemes were configured with."""
    rows = []
    for one in places:
        opt = [mean(frame, k, q="opt", **{x: one}) for k in ("min_th", "max_th", "max_p", "w_q")]
        n = used(one)
        rows.append([one, n, room(n), *opt[:2], f"{opt[2]:.3f}", f"{opt[3]:.2g}",
                     round(room(n) * 3 / 20), round(room(n) * 13 / 20)])  # fmt: skip
    names = [x, "N", "buffer, packets", "REDopt min_th", "max_th", "max_p", "w_q",
             "(G)REDstd min_th", "its max_th"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@table("3a", "Parameters for bulk data", needs=["ftp"])
def bulk_parameters(runs: Runs) -> pl.DataFrame:
    """Give table 3a."""
    return _parameters(runs["ftp"], "flows", FTPS, lambda n: n)


@figure("3 goodput", "FTP: goodput of TCP", needs=["ftp"])
def bulk_goodput(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput of FTPs, of which the paper only tells."""
    _over_ftps(runs, ax, "goodput_mbps", "goodput, Mbit/s")
    ax.set_ylim(8, 10)


@figure("3b", "FTP: loss of UDP", needs=["ftp"])
def bulk_udp_loss(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3b."""
    _over_ftps(runs, ax, "udp_loss", "UDP packets lost, %", 100)


@figure("3c", "FTP: mean queueing delay", needs=["ftp"])
def bulk_delay(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3c."""
    _over_ftps(runs, ax, "delay_s", "mean queueing delay, ms", 1e3)


@figure("3d", "FTP, N = 256: runs of losses", needs=["ftp"])
def bulk_runs(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3d."""
    _run_lengths(runs["ftp"], ax, flows=256)


@figure("3d light", "FTP, N = 32: runs of losses", needs=["ftp"])
def bulk_runs_light(runs: Runs, ax: "Axes") -> None:
    """Draw what the paper says of fewer than 64 flows."""
    _run_lengths(runs["ftp"], ax, flows=32)


@figure("3e", "FTP: standard deviation of the queueing delay", needs=["ftp"])
def bulk_deviation(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3e."""
    _over_ftps(runs, ax, "delay_std_s", "standard deviation, ms", 1e3)


@table("4a", "Parameters for web traffic", needs=["web"])
def web_parameters(runs: Runs) -> pl.DataFrame:
    """Give table 4a."""
    return _parameters(runs["web"], "sessions", SESSIONS, lambda s: ACTIVE[s])


@figure("4 goodput", "Web: goodput of TCP", needs=["web"])
def web_goodput(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput of web traffic, of which the paper only tells."""
    _over_sessions(runs, ax, "goodput_mbps", "goodput, Mbit/s")


@figure("4b", "Web: loss of UDP", needs=["web"])
def web_udp_loss(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4b."""
    _over_sessions(runs, ax, "udp_loss", "UDP packets lost, %", 100)


@figure("4c", "Web: mean queueing delay", needs=["web"])
def web_delay(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c."""
    _over_sessions(runs, ax, "delay_s", "mean queueing delay, ms", 1e3)


@figure("4 std", "Web: standard deviation of the queueing delay", needs=["web"])
def web_deviation(runs: Runs, ax: "Axes") -> None:
    """Draw the panel of figure 4 with the deviations."""
    _over_sessions(runs, ax, "delay_std_s", "standard deviation, ms", 1e3)


@figure("4d", "Web, 1400 sessions: runs of losses", needs=["web"])
def web_runs(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d."""
    _run_lengths(runs["web"], ax, sessions=1400)


@figure("buffers", "Goodput against delay: Tail Drop with other buffers", needs=["ftp", "buffers"])
def smaller_buffers(runs: Runs, ax: "Axes") -> None:
    """Draw what Tail Drop gives for a delay, and what the other schemes do."""
    from sojourn.figure import legend

    for k, n in enumerate((16, 64, 256)):
        tail = pl.concat([
            runs["buffers"].filter(flows=n).select("delay_s", "goodput_mbps", place="share"),
            runs["ftp"].filter(q="td", flows=n)
            .select("delay_s", "goodput_mbps", place=pl.lit(1.0)),
        ]).group_by("place").mean().sort("place")  # fmt: skip
        look = style(k) | {"marker": "."}
        ax.plot(tail["delay_s"] * 1e3, tail["goodput_mbps"], label=f"Tail Drop, N = {n}", **look)
        for q, marker in zip(RED, "s^D", strict=True):
            x = 1e3 * mean(runs["ftp"], "delay_s", q=q, flows=n)
            y = mean(runs["ftp"], "goodput_mbps", q=q, flows=n)
            label = NAMES[q] if n == 16 else None
            ax.plot(x, y, marker, mfc="none", color=look["color"], label=label)
    ax.set(xlabel="mean queueing delay, ms", ylabel="goodput, Mbit/s", ylim=(8, 10))
    legend(ax)


@figure("wq", "Web, 1400 sessions: runs of losses against w_q", needs=["weights"])
def runs_by_weight(runs: Runs, ax: "Axes") -> None:
    """Draw how long runs of losses are with other weights."""
    names = {q: NAMES[q] for q in STD}
    lines(ax, runs["weights"], "w_q", "run_mean", by="q", names=names, begin=1)
    ax.set(xlabel="w_q", ylabel="mean run of losses", xscale="log", ylim=(0, None))


@table("flows", "Open connections under Tail Drop, and REDopt's max_p for so many",
       needs=["first", "users", "model"])  # fmt: skip
def open_connections(runs: Runs) -> pl.DataFrame:
    """Put the users that were chosen beside others."""
    rows = []
    own = runs["first"].with_columns(users=pl.lit("as chosen, long runs"))
    for users, frame in [(None, own), *((one, runs["users"]) for one in MORE_WEB)]:
        chosen = frame if users is None else frame.filter(users=users)
        for s in sorted(set(chosen["sessions"]) & set(SESSIONS)):
            n = mean(chosen, "active", sessions=s)
            cells = [mean(chosen, k, sessions=s) for k in ("goodput_mbps", "utilisation")]
            rows.append([users or "as chosen, long runs", s, n, _max_p(runs, n), *cells])
    names = ["users", "sessions", "open connections", "max_p for so many", "goodput, Mbit/s",
             "utilisation"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@table("spread", "How RED's signals are spread", needs=["ftp", "web", "spread"])
def spread_signals(runs: Runs) -> pl.DataFrame:
    """Put the three forms of RED's signals beside each other."""
    rows = []
    for load in runs["spread"]["load"].unique(maintain_order=True):
        count = int(load.split()[0])
        own = runs["web"].filter(sessions=count)
        own = own if len(own) else runs["ftp"].filter(flows=count)
        for q in RED:
            forms = [("bernoulli", own.filter(q=q))]
            other = runs["spread"].filter(load=load, q=q)
            forms += [(wait, other.filter(wait=wait)) for wait in ("no", "yes")]
            rows += [[load, NAMES[q], wait, *(mean(one, k) for k in SEEN)] for wait, one in forms]
    return pl.DataFrame(rows, schema=["load", "scheme", "wait", *SEEN], orient="row")


SEEN = ("goodput_mbps", "udp_loss", "delay_s", "delay_std_s", "run_mean", "runs_of_2", "runs_of_10")


@table("simulated", "FTP with ns-2's TCP, an ack per packet", needs=["simulated"])
def ftp_simulated(runs: Runs) -> pl.DataFrame:
    """Give the simulation that the paper does not show."""
    frame = runs["simulated"]
    rows = [
        [n, NAMES[q], *(mean(frame, k, q=q, flows=n) for k in SEEN)]
        for n in sorted(set(frame["flows"]))
        for q in NAMES
    ]
    return pl.DataFrame(rows, schema=["flows", "scheme", *SEEN], orient="row")


@table("ns-2", "FTP, 300 packets for every N, beside ns-2", needs=["ns-2"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Put runs beside ns-2's."""
    told = ("udp_loss", "delay_s", "delay_std_s", "run_mean")
    rows = []
    for (q, n), theirs in NS2.items():
        ours = [mean(runs["ns-2"], k, q=q, flows=n) for k in told]
        both = zip(theirs, ours, (100, 1e3, 1e3, 1), strict=True)
        rows.append([NAMES[q], n, *(cell for a, b, c in both for cell in (float(a), c * b))])
    names = ["UDP loss, %", "delay, ms", "its deviation, ms", "run of losses"]
    heads = [head for name in names for head in (f"ns-2: {name}", f"ours: {name}")]
    return pl.DataFrame(rows, schema=["scheme", "flows", *heads], orient="row")


@table("misjudged", "1400 sessions under queues made for 1200; REDopt with a faster average",
       needs=["web", "misjudged"])  # fmt: skip
def other_parameters(runs: Runs) -> pl.DataFrame:
    """Put schemes with other parameters beside those of figure 4."""
    rows = []
    for what, group in runs["misjudged"].group_by("what", maintain_order=True):
        for q, s in group.select("q", "sessions").unique(maintain_order=True).iter_rows():
            for label, frame in (("figure 4", runs["web"]), (what[0], group)):
                cells = [mean(frame, k, q=q, sessions=s) for k in SEEN]
                rows.append([s, NAMES[q], label, *cells])
    return pl.DataFrame(rows, schema=["sessions", "scheme", "what", *SEEN], orient="row")


def _max_p(runs: Runs, n: float) -> float:
    """Give REDopt's max_p for `n` flows, between those that the model was asked for."""
    model = runs["model"].sort("flows")
    return float(np.exp(np.interp(np.log(n), np.log(model["flows"]), np.log(model["max_p"]))))


def _best_and_worst(frame: pl.DataFrame, x: str) -> list[Part]:
    """Ask at each load whether the goodputs of all schemes lie within 3 points of the link."""
    parts = []
    for one in sorted(set(frame[x])):
        found = [mean(frame, "goodput_mbps", q=q, **{x: one}) for q in NAMES]
        told = f"{min(found):.2f} to {max(found):.2f} Mbit/s"
        close = max(found) - min(found) <= POINTS * CAPACITY_MBPS
        parts.append(shape(f"{x} {one}: all schemes", close, told, "within 0.3 Mbit/s"))
    return parts


def _less(frame: pl.DataFrame, what: str, less: str, more: str, **at: int) -> Part:
    """Ask whether one scheme has less of something than another."""
    where = ", ".join(f"{value} {name}" for name, value in at.items())
    a, b = (values(frame, what, q=q, **at) for q in (less, more))
    ms = what.startswith("delay")
    text = f"{where}: {NAMES[less]} below {NAMES[more]}"
    percent = what == "udp_loss"
    return order(text, a, b, unit="ms" if ms else "%" if percent else "",
                 scale=1e3 if ms else 100 if percent else 1)  # fmt: skip


def _rises(frame: pl.DataFrame, what: str, q: str, x: str, low: int, high: int) -> Part:
    """Ask whether something is less at a low load than at a high one."""
    a, b = (values(frame, what, q=q, **{x: one}) for one in (low, high))
    ms = what.startswith("delay")
    return order(f"{NAMES[q]}: less at {low} than at {high} {x}", a, b,
                 unit="ms" if ms else "Mbit/s", scale=1e3 if ms else 1)  # fmt: skip


def _along(frame: pl.DataFrame, what: str, q: str, sign: int) -> Part:
    """Ask whether the means rise (sign 1) or fall (-1) from each number of FTPs to the next."""
    found = [1e3 * mean(frame, what, q=q, flows=n) for n in FTPS]
    steady = all(sign * (b - a) > 0 for a, b in zip(found, found[1:], strict=False))
    told = ", ".join(f"{one:.3g}" for one in found) + " ms"
    word = "rises" if sign > 0 else "falls"
    return shape(f"{NAMES[q]}: {word} from each N to the next", steady, told, f"{word}")


def _band(q: str, n: int) -> tuple[float, float]:
    """Give the thresholds (packets) of a RED scheme for `n` flows."""
    ends = (0.3, 1.3) if q == "opt" else (3 / 20, 13 / 20)
    whole = gap(n) if q == "opt" else room(n)
    return ends[0] * whole, ends[1] * whole


def _place(frame: pl.DataFrame, q: str, n: int) -> Any:
    """Give where between the thresholds the mean queue is, by seed: 0 at min_th, 1 at max_th."""
    low, high = _band(q, n)
    return (values(frame, "queue_packets", q=q, flows=n) - low) / (high - low)


def _goodput(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    parts = [
        number(f"{NAMES[q]}, {n} flows", values(frame, "goodput_mbps", q=q, flows=n), 8.4,
               unit="Mbit/s").beside("9.0 with headers" if (q, n) in NS2 else "")
        for q in NAMES for n in (16, 64, 256)
    ]  # fmt: skip
    for q in NAMES:
        share = [
            values(frame, "goodput_mbps", q=q, flows=n)
            / (CAPACITY_MBPS - 1 + values(frame, "udp_loss", q=q, flows=n))
            for n in FTPS
        ]
        worst = min(share, key=lambda one: float(one.mean()))
        parts.append(bound(f"{NAMES[q]}: of what UDP leaves, least of all N", worst, ">", 0.95))
    return [*parts, *_best_and_worst(frame, "flows")]


def _too_aggressive(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    return [
        *(_less(frame, "goodput_mbps", q, "td", flows=16) for q in STD),
        *(bound(f"{NAMES[q]}: mean queue, as a share of the way from min_th to max_th",
                _place(frame, q, 16), "<", 0.25) for q in STD),
    ]  # fmt: skip


def _udp_light(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    opt = values(frame, "udp_loss", q="opt", flows=16)
    ratios = [
        number(f"16 flows: {NAMES[q]} to REDopt", values(frame, "udp_loss", q=q, flows=16) / opt, 2)
        for q in STD
    ]
    many = [mean(frame, "udp_loss", q=q, flows=256) for q in NAMES]
    told = f"{100 * min(many):.1f} to {100 * max(many):.1f} %"
    return [
        *ratios,
        _less(frame, "udp_loss", "opt", "td", flows=16),
        *(_less(frame, "udp_loss", "td", q, flows=16) for q in STD),
        shape("256 flows: all within a fifth", max(many) <= 1.2 * min(many), told),
    ]


def _delays(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    full = [values(frame, "queue_packets", q="td", flows=n) / room(n) for n in FTPS]
    least = min(full, key=lambda one: float(one.mean()))
    tops = {
        q: max((values(frame, "queue_packets", q=q, flows=n) / _band(q, n)[1] for n in FTPS),
               key=lambda one: float(one.mean()))
        for q in RED
    }  # fmt: skip
    theirs = {"red": "0.995 (256 flows, 300 packets)", "gred": "1.19 (its slope ends at 2 max_th)"}
    return [
        *(_along(frame, "delay_s", q, 1) for q in NAMES),
        bound("Tail Drop: mean queue as a share of B, least of all N", least, ">", 0.8)
        .beside("0.84, 0.95, 0.99 at 16, 64, 256 flows"),
        *(bound(f"{NAMES[q]}: mean queue as a share of max_th, most of all N", top, "<", 1)
          .beside(theirs.get(q, "")) for q, top in tops.items()),
    ]  # fmt: skip


def _drift(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    found = {q: [mean(frame, "delay_s", q=q, flows=n) for n in FTPS] for q in RED}
    grown = {q: max(one) / min(one) - 1 for q, one in found.items()}
    parts = [
        shape(f"growth of the delay: REDopt's less than half of {NAMES[q]}'s",
              grown["opt"] < grown[q] / 2, f"{1 + grown['opt']:.2f} against {1 + grown[q]:.2f} times")
        for q in STD
    ]  # fmt: skip
    for q in STD:
        for n, relation, limit in ((16, "<", 0.25), (256, ">", 0.75)):
            what = f"{NAMES[q]}, {n} flows: mean queue from min_th (0) to max_th (1)"
            parts.append(bound(what, _place(frame, q, n), relation, limit))  # type: ignore[arg-type]
    places = [float(_place(frame, "opt", n).mean()) for n in FTPS]
    within = all(0.25 <= one <= 0.75 for one in places)
    told = ", ".join(f"{one:.2f}" for one in places)
    return [*parts, shape("REDopt: at every N from 0.25 to 0.75", within, told)]


def _swings(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    a, b = (values(frame, "delay_std_s", q="td", flows=n) for n in (256, 16))
    return [
        order("Tail Drop: less at 256 flows than at 16", a, b, unit="ms", scale=1e3)
        .beside("4.3 against 39.4 ms"),
        _along(frame, "delay_std_s", "td", -1).beside("39.4, 16.8, 4.3 ms at 16, 64, 256"),
        *(_less(frame, "delay_std_s", q, "td", flows=16)
          .beside("15.9 against 39.4 ms" if q == "red" else "") for q in RED),
    ]  # fmt: skip


def _light_runs(runs: Runs) -> list[Part]:
    frame, parts = runs["ftp"], []
    for n in (16, 32):
        base = values(frame, "run_mean", q="gred", flows=n)
        for q in ("red", "opt"):
            other = values(frame, "run_mean", q=q, flows=n)
            parts.append(equal(f"{n} flows: {NAMES[q]} as GREDstd", other, base, within=0.2))
        parts += [_less(frame, "run_mean", q, "td", flows=n)
                  .beside("1.00 against 1.29" if n == 16 and q in STD else "")
                  for q in RED]  # fmt: skip
    return parts


def _many_runs(runs: Runs) -> list[Part]:
    frame = runs["ftp"]
    average = values(frame, "average_packets", q="red", flows=256) / _band("red", 256)[1]
    tail = [values(frame, "runs_of_10", q=q, flows=256) for q in ("td", "opt")]
    return [
        bound("REDstd: its average as a share of max_th", average, ">", 1),
        _less(frame, "run_mean", "gred", "red", flows=256).beside("1.00 against 3.79"),
        _less(frame, "run_mean", "opt", "red", flows=256),
        _less(frame, "runs_of_2", "opt", "td", flows=256),
        order("heavy tail: P(N >= 10) of Tail Drop below REDopt's", *tail),
    ]


def _same_delay(runs: Runs) -> list[Part]:
    """Read Tail Drop's goodput at REDopt's delay, seed by seed."""
    parts, seeds = [], runs["buffers"]["seed"].n_unique()
    shares = sorted(set(runs["buffers"]["share"]))
    for n in (16, 64, 256):
        own = [values(runs["ftp"], k, q="opt", flows=n)[:seeds] for k in ("delay_s", "goodput_mbps")]
        tail = [
            np.array([values(runs["buffers"], k, share=one, flows=n) for one in shares])
            for k in ("delay_s", "goodput_mbps")
        ]
        read = [np.interp(own[0][i], tail[0][:, i], tail[1][:, i]) for i in range(seeds)]
        parts.append(
            equal(f"{n} flows, {1e3 * own[0].mean():.0f} ms: Tail Drop as REDopt", read, own[1],
                  within=POINTS, unit="Mbit/s")
        )  # fmt: skip
    return parts


def _most_goodput(runs: Runs) -> list[Part]:
    frame, parts = runs["web"], []
    for q in NAMES:
        parts += [_rises(frame, "goodput_mbps", q, "sessions", a, b)
                  for a, b in ((800, 1000), (1000, 1200))]  # fmt: skip
        most = max(SESSIONS, key=lambda s: mean(frame, "goodput_mbps", q=q, sessions=s))
        parts.append(number(f"{NAMES[q]}: greatest, at {most} sessions",
                            values(frame, "goodput_mbps", q=q, sessions=most), 8.7,
                            unit="Mbit/s"))  # fmt: skip
    return parts


def _estimate(runs: Runs) -> list[Part]:
    """Read the model at the flows of each first run."""
    found = {
        s: np.array([_max_p(runs, n) for n in values(runs["first"], "active", sessions=s)])
        for s in SESSIONS
    }
    return [
        number(f"max_p at {b} sessions to that at {a}", found[b] / found[a], stated)
        for a, b, stated in ((800, 1000, 2.6), (1200, 1400, 16.7))
    ]


def _web_losses(runs: Runs) -> list[Part]:
    frame = runs["web"]
    parts = [_less(frame, "udp_loss", "td", q, sessions=s) for s in SESSIONS for q in RED]
    more = {
        s: float(np.mean([mean(frame, "udp_loss", q=q, sessions=s) for q in RED]))
        / mean(frame, "udp_loss", q="td", sessions=s)
        for s in SESSIONS
    }
    told = ", ".join(f"{s}: {one:.2f}" for s, one in more.items())
    most = max(more, key=lambda s: more[s]) == 1200
    return [*parts, shape("the RED schemes' mean to Tail Drop's is most at 1200", most, told)]


def _web_delays(runs: Runs) -> list[Part]:
    frame = runs["web"]
    pairs = [("opt", "red"), ("opt", "gred"), ("red", "td"), ("gred", "td")]
    return [
        *(_rises(frame, "delay_s", q, "sessions", a, b)
          for q in NAMES for a, b in zip(SESSIONS, SESSIONS[1:], strict=False)),
        *(_less(frame, "delay_s", a, b, sessions=s) for s in SESSIONS for a, b in pairs),
    ]  # fmt: skip


def _weights_matter(runs: Runs) -> list[Part]:
    return [
        order(f"{NAMES[q]}: mean run with w_q 0.02 below that with 0.0005",
              *(values(runs["weights"], "run_mean", q=q, w_q=w_q) for w_q in (0.02, 0.0005)))
        for q in STD
    ]  # fmt: skip


def _beyond(runs: Runs) -> list[Part]:
    first = runs["first"]
    rate, bulk = (
        values(first, "goodput_mbps", sessions=SATURATED),
        values(runs["ftp"], "goodput_mbps", q="td", flows=256),
    )
    return [
        bound(f"{LIGHT} sessions: utilisation", values(first, "utilisation", sessions=LIGHT), "<",
              0.85),
        bound(f"{SATURATED} sessions: mean queue of Tail Drop, as a share of 300 packets",
              values(first, "queue_packets", sessions=SATURATED) / 300, ">", 0.8),
        equal(f"{SATURATED} sessions: goodput as that of 256 FTPs", rate, bulk, within=POINTS,
              unit="Mbit/s"),
    ]  # fmt: skip


PAIRS = "Seed by seed; the 95 % interval of the difference is above 0."
FTP, WEB = ("ftp",), ("web",)

CLAIMS = [
    Claim(
        "001-C1", "FTP goodput is practically equal for all schemes, and almost optimal.",
        "3 goodput", "about 8.4 Mbit/s",
        "Within 20 % of 8.4; above 95 % of what UDP leaves of the link; at each N the schemes "
        "within 3 points of the link's rate.",
        _goodput, FTP,
    ),
    Claim(
        "001-C2", "It is slightly below for (G)REDstd at N = 16: max_p is too aggressive, the mean "
        "queue near min_th.", "3 goodput", "less",
        f"Below Tail Drop's. {PAIRS} Mean queue in the lowest quarter between the thresholds.",
        _too_aggressive, FTP,
    ),
    Claim(
        "001-C3", "UDP loses less with REDopt than with (G)REDstd at light load, Tail Drop is "
        "between, and at high load the differences vanish.", "3b", "a factor of 2",
        f"N = 16: the ratio within 20 %, and the order: {PAIRS} N = 256: most at most a fifth "
        "above least.",
        _udp_light, FTP,
    ),
    Claim(
        "001-C4", "Mean delay grows with N for all; Tail Drop is near B, RED below max_th.", "3c",
        "shape", "Means grow from each N to the next; Tail Drop's mean queue is above 80 % of B, "
        "those of RED are below max_th, at every N.",
        _delays, FTP,
    ),
    Claim(
        "001-C5", "The delay varies much less with N for REDopt than for (G)REDstd, whose queues "
        "go from min_th to max_th.", "3c", "shape",
        "Most to least delay, less 1: REDopt's under half of the others'. (G)REDstd's mean queue "
        "is in the lowest quarter between the thresholds at 16 flows and in the highest at 256; "
        "REDopt's is in neither at any N.",
        _drift, FTP,
    ),
    Claim(
        "001-C6", "Tail Drop's delay varies much at light load (global synchronisation), less at "
        "high load.", "3e", "shape",
        f"Standard deviation: falls from N to N; at 16 flows above those of RED. {PAIRS}",
        _swings, FTP,
    ),
    Claim(
        "001-C7", "Losses in a row, N below 64: all RED schemes alike, Tail Drop clearly worse.",
        "3d light", "shape", f"Mean run at 16 and 32 flows: within 20 % of GREDstd's; order: {PAIRS}",
        _light_runs, FTP,
    ),
    Claim(
        "001-C8", "Losses in a row, N = 256: REDstd bad (its average is above max_th), GREDstd "
        "better, REDopt good but with a heavy tail.", "3d", "shape",
        "The average over max_th; mean run; share of runs of 2 and more; REDopt's share of runs "
        f"of 10 and more above Tail Drop's. {PAIRS}",
        _many_runs, FTP,
    ),
    Claim(
        "001-C9", "Tail Drop with a buffer that gives REDopt's delay has REDopt's goodput.",
        "buffers", "equal",
        "Tail Drop's goodput over its delay with four buffers, read at REDopt's delay; within 3 %.",
        _same_delay, ("ftp", "buffers"),
    ),
    Claim(
        "001-C10", "Web goodput rises with the sessions to a maximum.", "4 goodput", "8.7 Mbit/s",
        f"From 800 to 1000 to 1200: {PAIRS} The greatest mean within 20 %.",
        _most_goodput, WEB,
    ),
    Claim(
        "001-C11", "Web goodput does not depend on the scheme.", "4 goodput", "equal",
        "The schemes are within 3 points of the link's rate at each number of sessions.",
        lambda runs: _best_and_worst(runs["web"], "sessions"), WEB,
    ),
    Claim(
        "001-C12", "The drop probability that REDopt is made for grows with the sessions.", "flows",
        "2.6 times from 800 to 1000, 16.7 times from 1200 to 1400",
        "The model's max_p for the open connections of each first run; ratios within 20 %.",
        _estimate, ("first", "model"),
    ),
    Claim(
        "001-C13", "Web: UDP loses least with Tail Drop, mainly at 1200 sessions.", "4b", "least",
        f"{PAIRS} And the ratio is greatest at 1200.",
        _web_losses, WEB,
    ),
    Claim(
        "001-C14", "Web: mean delay grows with the sessions; REDopt has the least, Tail Drop the "
        "most.", "4c", "shape", f"From each number to the next, and at each number. {PAIRS}",
        _web_delays, WEB,
    ),
    Claim(
        "001-C15", "Web: REDopt's delay varies more than (G)REDstd's (its w_q is smaller).",
        "4 std", "more", f"Standard deviation, at each number of sessions. {PAIRS}",
        lambda runs: [_less(runs["web"], "delay_std_s", q, "opt", sessions=s)
                      for s in SESSIONS for q in STD],
        WEB,
    ),
    Claim(
        "001-C16", "Web, 1400 sessions: more losses in a row with RED than with Tail Drop.", "4d",
        "significantly worse", f"Mean run. {PAIRS}",
        lambda runs: [_less(runs["web"], "run_mean", "td", q, sessions=1400) for q in RED],
        WEB,
    ),
    Claim(
        "001-C17", "A larger w_q shortens runs of losses.", "wq", "shorter",
        f"1400 sessions, mean run with 0.02 against 0.0005. {PAIRS}",
        _weights_matter, ("weights",),
    ),
    Claim(
        "001-C18", "Below 800 sessions the link is underloaded, above 1400 it is as with FTP.",
        "flows", "so", "600 sessions: utilisation below 85 %. 1600: Tail Drop's mean queue above "
        "80 % of the buffer, goodput within 3 % of that of 256 FTPs.",
        _beyond, ("first", "ftp"),
    ),
]  # fmt: skip
