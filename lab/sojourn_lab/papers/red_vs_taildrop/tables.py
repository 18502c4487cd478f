"""Tables of `red_vs_taildrop`."""

from collections.abc import Callable, Sequence

import polars as pl

from sojourn_lab.papers.red_vs_taildrop import rules
from sojourn_lab.papers.red_vs_taildrop.experiments import LIGHT, SATURATED, USERS
from sojourn_lab.papers.red_vs_taildrop.rules import NS2
from sojourn_lab.papers.red_vs_taildrop.rules_web import max_p
from sojourn_lab.papers.red_vs_taildrop.runs import ACTIVE, FTPS, NAMES, SESSIONS, room
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.paper import table

__all__ = [
    "bulk_losses",
    "bulk_parameters",
    "drop_spacing",
    "each_ack",
    "half_duplex",
    "in_profile",
    "open_connections",
    "other_parameters",
    "over_two_ways",
    "web_parameters",
    "with_ns2",
]

SEEN = ("goodput_mbps", "udp_loss", "delay_s", "delay_std_s", "run_mean", "runs_of_2", "runs_of_10")


def same_seeds(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the runs with the seeds of `other`."""
    return frame.filter(pl.col("seed").is_in(other["seed"].unique().implode()))


def _parameters(
    frame: pl.DataFrame, x: str, loads: Sequence[int], flows: Callable[[int], int]
) -> pl.DataFrame:
    """Tabulate the parameters of the disciplines."""
    rows = []
    for one in loads:
        opt = [mean(frame, k, q="opt", **{x: one}) for k in ("min_th", "max_th", "max_p", "w_q")]
        std = [mean(frame, k, q="red", **{x: one}) for k in ("min_th", "max_th")]
        n = flows(one)
        rows.append([one, n, room(n), *opt[:2], f"{opt[2]:.3f}", f"{opt[3]:.2g}", *std])
    names = [x, "N", "buffer, packets", "REDopt min_th", "max_th", "max_p", "w_q",
             "(G)REDstd min_th", "(G)REDstd max_th"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@table("3a", "Parameters for bulk data: ours; the paper's are missing from our copy",
       needs=["ftp"])  # fmt: skip
def bulk_parameters(runs: Runs) -> pl.DataFrame:
    """Tabulate table 3a."""
    return _parameters(runs["ftp"], "flows", FTPS, lambda n: n)


@table("4a", "Parameters for web traffic: ours; the paper's are missing from our copy",
       needs=["web"])  # fmt: skip
def web_parameters(runs: Runs) -> pl.DataFrame:
    """Tabulate table 4a."""
    return _parameters(runs["web"], "sessions", SESSIONS, lambda s: ACTIVE[s])


@table("losses", "FTP: loss of UDP, and of all packets, in %", needs=["ftp"])
def bulk_losses(runs: Runs) -> pl.DataFrame:
    """Compare the losses of the evenly spaced UDP with the losses of all packets."""
    columns = [(q, what) for what in ("udp_loss", "loss") for q in NAMES]
    rows = [
        [n, *(round(100 * mean(runs["ftp"], what, q=q, flows=n), 2) for q, what in columns)]
        for n in FTPS
    ]
    heads = [f"{'UDP' if what == 'udp_loss' else 'all'}: {NAMES[q]}" for q, what in columns]
    return pl.DataFrame(rows, schema=["flows", *heads], orient="row")


@table("flows", "Open connections under Tail Drop, and REDopt's max_p for that number",
       needs=["first", "other-users", "model"])  # fmt: skip
def open_connections(runs: Runs) -> pl.DataFrame:
    """Compare the chosen web users with others, whose runs are shorter."""
    rows = []
    own = {"as chosen": (runs["first"], (LIGHT, *SESSIONS, SATURATED))}
    others = {one: (runs["other-users"].filter(users=one), SESSIONS) for one in USERS}
    for users, (frame, loads) in (own | others).items():
        for s in loads:
            n = mean(frame, "active", sessions=s)
            cells = [mean(frame, k, sessions=s) for k in ("goodput_mbps", "utilisation")]
            rows.append([users, s, n, max_p(runs, n), *cells])
    names = ["users", "sessions", "open connections", "REDopt's max_p", "goodput, Mbit/s",
             "utilisation"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@table("spacing", "FTP: spacing of RED's drops", needs=["ftp", "each-ack", "spacing"])
def drop_spacing(runs: Runs) -> pl.DataFrame:
    """Compare the three ways in which RED spaces its drops."""
    rows, other = [], runs["spacing"]
    points = other.select("acks", "q", "flows").unique(maintain_order=True).sort("acks", "q")
    for acks, q, n in points.iter_rows():
        own = runs["ftp" if acks == 2 else "each-ack"].filter(q=q, flows=n)
        here = other.filter(acks=acks, q=q, flows=n)
        frames = {"bernoulli": same_seeds(own, other)}
        frames |= {wait: here.filter(wait=wait) for wait in ("no", "yes")}
        for wait, frame in frames.items():
            between = float(rules.place(frame).mean())
            rows.append([acks, n, NAMES[q], wait, between, *(mean(frame, k) for k in SEEN)])
    names = ["packets per ack", "flows", "discipline", "wait",
             "mean queue from min_th (0) to max_th (1)"]  # fmt: skip
    return pl.DataFrame(rows, schema=[*names, *SEEN], orient="row")


def _by_load(frame: pl.DataFrame, names: dict[str, str], columns: Sequence[str]) -> pl.DataFrame:
    """Tabulate columns by number of FTPs and discipline."""
    rows = [
        [n, name, *(mean(frame, k, q=q, flows=n) for k in columns)]
        for n in sorted(set(frame["flows"]))
        for q, name in names.items()
    ]
    return pl.DataFrame(rows, schema=["flows", "discipline", *columns], orient="row")


@table("each-ack", "FTP with ns-2's TCP, an ack per packet", needs=["each-ack"])
def each_ack(runs: Runs) -> pl.DataFrame:
    """Tabulate the simulation that the paper mentions but does not show."""
    return _by_load(runs["each-ack"], NAMES, SEEN)


@table("half-duplex", "FTP, acks share the bottleneck with the data", needs=["half-duplex"])
def half_duplex(runs: Runs) -> pl.DataFrame:
    """Tabulate bulk data over a shared medium."""
    return _by_load(runs["half-duplex"], NAMES, SEEN)


@table("two-way values", "FTPs in both directions, as many in each", needs=["two-way"])
def over_two_ways(runs: Runs) -> pl.DataFrame:
    """Tabulate two-way traffic: the forward direction, then the link back."""
    back = ("goodput_back_mbps", "delay_back_s", "utilisation_back")
    return _by_load(runs["two-way"], NAMES, (*SEEN, "utilisation", *back))


@table("profile values", "Half of the FTPs in profile: RIO, REDstd and Tail Drop",
       needs=["profile"])  # fmt: skip
def in_profile(runs: Runs) -> pl.DataFrame:
    """Tabulate goodput and loss of the flows in profile and of the others."""
    names = {"td": "Tail Drop", "red": "REDstd", "rio": "RIO"}
    columns = ("goodput_mbps", "goodput_in_mbps", "goodput_out_mbps", "udp_loss_in",
               "udp_loss_out", "delay_s", "delay_std_s", "run_mean")  # fmt: skip
    return _by_load(runs["profile"], names, columns)


@table("ns-2", "FTP, 300 packets for every N, compared with ns-2", needs=["ns-2"])
def with_ns2(runs: Runs) -> pl.DataFrame:
    """Compare runs with ns-2's."""
    measures = ("udp_loss", "delay_s", "delay_std_s", "run_mean")
    rows = []
    for (q, n), theirs in NS2.items():
        ours = [mean(runs["ns-2"], k, q=q, flows=n) for k in measures]
        both = zip(theirs, ours, (100, 1e3, 1e3, 1), strict=True)
        rows.append([NAMES[q], n, *(cell for a, b, c in both for cell in (float(a), c * b))])
    names = ["UDP loss, %", "delay, ms", "deviation, ms", "mean loss run"]
    heads = [head for name in names for head in (f"ns-2: {name}", f"ours: {name}")]
    return pl.DataFrame(rows, schema=["discipline", "flows", *heads], orient="row")


@table("misjudged", "Web: 1400 sessions with parameters for 1200; REDopt with a faster average",
       needs=["web", "made-for-1200", "memory-web"])  # fmt: skip
def other_parameters(runs: Runs) -> pl.DataFrame:
    """Compare disciplines with other parameters than in figure 4."""
    rows = []
    changes = {"made for 1200 sessions": "made-for-1200", "w_q by memory": "memory-web"}
    for label, name in changes.items():
        other, web = runs[name], same_seeds(runs["web"], runs[name])
        for q, s in other.select("q", "sessions").unique(maintain_order=True).iter_rows():
            for parameters, frame in (("figure 4", web), (label, other)):
                cells = [mean(frame, k, q=q, sessions=s) for k in SEEN]
                rows.append([s, NAMES[q], parameters, *cells])
    return pl.DataFrame(rows, schema=["sessions", "discipline", "parameters", *SEEN], orient="row")
