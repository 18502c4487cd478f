"""Tail Drop against RED, gentle RED and RED configured by a model, for bulk and web traffic.

The paper has a bottleneck of 10 Mbit/s and four hosts with base round-trip times of 120, 140, 160
and 180 ms, all of it on the forward path. Traffic is TCP with SACK, and four CBR sources of
573-byte packets with 1 Mbit/s together. The disciplines:

- Tail Drop;
- REDstd and GREDstd: max_p 0.1, w_q 0.002, min_th 3/20 and max_th 13/20 of the buffer. GREDstd's
  drop probability rises from max_p at max_th to 1 at the full buffer;
- REDopt, configured by a model from bandwidth, round-trip time and the number of flows N.

All have REDopt's buffer, which grows with N. Bulk data (figure 3) is a testbed: 16 to 256 FTPs, 10
runs of 500 s, the first 100 s not counted. Web traffic (figure 4) is ns-2: 800 to 1400 sessions, 50
runs of 5000 s, the first 100 s not counted. REDopt's N is the mean number of active flows of a
first run.

Our choices where the paper (or our copy of it) states nothing:

- Bulk data: N = 16, 32, 64, 128, 256, with N/4 FTPs per host. Linux of 2001: SACK, delayed acks,
  1514-byte packets, an initial window of two packets, a minimum RTO of 200 ms (profile `rfc`).
  Experiment `simulated` has ns-2's Sack1, an ack per packet and packets of 1400 to 1628 bytes.
- REDopt's model is the discipline `red_opt`, whose constants are from memory; not gentle.
- RED's drops are independent (`wait` bernoulli) in all three RED variants. The paper says that
  REDopt's queue settles in the middle between the thresholds. With an ack per packet, only this one
  of the three variants in use gives that (table `spread`).
- Web: Feldmann's users as in ns-2's webtraf before November 2001; a page does not wait for the end
  of the previous one. Pages are Pareto (50 s, shape 2) apart, with Pareto (4, 1.2) objects that are
  Pareto (0.5 s, 1.5) apart, of Pareto (12 kB, 1.2) size. Each object has its own connection (ns-2's
  Sack1), without a request packet. The offered load is 9.05 Mbit/s at 1300 sessions (median of
  three runs of 2000 s over a fast link). UDP leaves 9 Mbit/s, so nothing had to be scaled.
- REDopt's N for web: `ACTIVE`, the median of six first runs with 300 packets of Tail Drop.
- Access links and the link between the first two routers have 100 Mbit/s and 1000 packets. No queue
  can form behind the bottleneck, so the simulated path ends there, and acks return as a pure delay.
- CBR sources start at random in the first 10 s. Goodput counts headers of 40 bytes.

Settings varied: an ack per packet, the spacing of RED's drops, goodput of payload, losses of all
packets, REDopt's w_q, other web users.

Scale: bulk data is run as in the testbed, 6 times 500 s (the paper 10). Web has 4 runs of 5000 s
(the paper 50); the settings have 3 runs of 300 to 5000 s. Quick mode has 2 or 3 runs of 200 to
500 s, too short for the sessions of an overload to accumulate. All simulations
of the paper (4 disciplines, 5 loads, 50 runs of 5000 s) would send 13 G packets in 45 minutes on
one core: 2.3 to 3 s and 11 to 15 M packets per run.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn_lab.papers.red_vs_taildrop import rules as rules
from sojourn_lab.papers.red_vs_taildrop.claims import CLAIMS, SETTINGS
from sojourn_lab.papers.red_vs_taildrop.facts import FACTS
from sojourn_lab.papers.red_vs_taildrop.live_runs import LIVE, live
from sojourn_lab.papers.red_vs_taildrop.rules import NS2, RED, STD, max_p
from sojourn_lab.papers.red_vs_taildrop.runs import (
    ACTIVE,
    FTPS,
    MORE_WEB,
    NAMES,
    SESSIONS,
    room,
    scenarios,
)
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.drawings import drop_curve, topology
from sojourn_lab.reproduction.paper import figure, table
from sojourn_lab.reproduction.theirs import level, ns2

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["CLAIMS", "FACTS", "LIVE", "REFERENCE", "SETTINGS", "TITLE", "live", "scenarios"]

TITLE = "Tail Drop against RED for bulk and web traffic"
REFERENCE = "Ziegler, Brandauer, Fdida and others, ISCC 2001 (as far as known)"


def _ftps(ax: "Axes") -> None:
    ax.set(xlabel="FTP flows", xscale="log", ylim=(0, None))
    _plain(ax.xaxis, FTPS)


def _over_ftps(runs: Runs, ax: "Axes", what: str, label: str, scale: float = 1.0) -> None:
    """Draw a column over the number of FTPs."""
    lines(ax, runs["ftp"], "flows", what, by="q", names=NAMES, scale=scale)
    column = {"udp_loss": 0, "delay_s": 1, "delay_std_s": 2}.get(what)
    for n, q in enumerate(NAMES):
        theirs = {
            flows: row[column]
            for (name, flows), row in NS2.items()
            if name == q and column is not None
        }
        if theirs:
            ns2(ax, list(theirs), list(theirs.values()), n, "ns-2, 300 packets")
    _ftps(ax)
    ax.set_ylabel(label)


def _over_sessions(runs: Runs, ax: "Axes", what: str, label: str, scale: float = 1.0) -> None:
    """Draw a column over the number of web sessions."""
    lines(ax, runs["web"], "sessions", what, by="q", names=NAMES, scale=scale)
    ax.set(xlabel="web sessions", xticks=list(SESSIONS), ylabel=label, ylim=(0, None))


def _run_lengths(frame: pl.DataFrame, ax: "Axes", **labels: Any) -> None:
    """Draw the share of loss runs of length n: mean over seeds with 95 % intervals."""
    from sojourn.plotting.run import legend
    from sojourn.result.statistics import interval

    longest = 1
    for k, (q, name) in enumerate(NAMES.items()):
        counts = [np.asarray(one) for one in values(frame, "runs", q=q, **labels)]
        most = max(len(one) for one in counts)
        shares = np.array([np.pad(one, (0, most - len(one))) / one.sum() for one in counts])
        seen = [n for n in range(most) if shares[:, n].mean() > 0]
        means = [interval(shares[:, n]) for n in seen]
        # A logarithmic axis cannot show an interval that includes zero.
        bars = [one.half if one.low > 0 else 0.0 for one in means]
        look = style(k) | {"ls": "-" if most < 20 else "", "label": name, "alpha": 0.8}
        look["ms"] = 4 if q == "opt" else 6 if q == "gred" else 3
        ax.errorbar([n + 1 for n in seen], [one.mean for one in means], yerr=bars, capsize=2,
                    elinewidth=0.8, mfc="none", **look)  # fmt: skip
        longest = max(longest, most)
    ax.set(xlabel="losses in a row, n", ylabel="P(N = n)", xscale="log", yscale="log")
    _plain(ax.xaxis, [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= 2 * longest])
    low = int(np.floor(np.log10(ax.get_ylim()[0])))
    _plain(ax.yaxis, [10.0**n for n in range(low + 1, 1)])
    legend(ax)


def _plain(axis: "Axis", places: Sequence[float]) -> None:
    """Set plain numbers as the only ticks of a logarithmic axis."""
    axis.set_ticks(list(places), [f"{one:g}" for one in places])
    axis.set_ticks([], minor=True)


def _parameters(frame: pl.DataFrame, x: str, places: Sequence[int], used: Any) -> pl.DataFrame:
    """Tabulate the parameters of the disciplines."""
    rows = []
    for one in places:
        opt = [mean(frame, k, q="opt", **{x: one}) for k in ("min_th", "max_th", "max_p", "w_q")]
        n = used(one)
        rows.append([one, n, room(n), *opt[:2], f"{opt[2]:.3f}", f"{opt[3]:.2g}",
                     round(room(n) * 3 / 20), round(room(n) * 13 / 20)])  # fmt: skip
    names = [x, "N", "buffer, packets", "REDopt min_th", "max_th", "max_p", "w_q",
             "(G)REDstd min_th", "(G)REDstd max_th"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@figure("curves", "Own drawing of drop probability over the average queue", needs=())
def curves_drawn(_: Runs, ax: "Axes") -> None:
    """Draw the three RED variants."""
    rise = [(0.0, 0.0), (0.15, 0.0), (0.65, 0.1)]
    curves = {"REDstd": [*rise, (0.65, 1.0), (1.0, 1.0)], "GREDstd": [*rise, (1.0, 1.0)]}
    curves["REDopt"] = [(0.0, 0.0), (0.15, 0.0), (0.65, 0.3), (0.65, 1.0), (1.0, 1.0)]
    ticks = {0.0: "0", 0.15: "min_th", 0.65: "max_th", 1.0: "B"}
    heights = {0.1: "0.1", 0.3: "model", 1.0: "1"}
    drop_curve(ax, curves, ticks, heights)


@figure("network", "Own drawing of the network", needs=(), size=(6.4, 2.8))
def network_drawn(_: Runs, ax: "Axes") -> None:
    """Draw the topology of testbed and simulation."""
    nodes = {f"host {n + 1}": (0.0, 3.0 - n) for n in range(4)}
    nodes |= {"router 1": (3.0, 1.5), "router 2": (7.4, 1.5), "receivers": (9.8, 1.5)}
    links = [(f"host {n + 1}", "router 1", f"{20 * (n + 1)} ms") for n in range(4)]
    links += [("router 1", "router 2", "10 Mbit/s, 100 ms"), ("router 2", "receivers", "")]
    topology(ax, nodes, links, [("router 1", "router 2")])


@table("3a", "Parameters for bulk data", needs=["ftp"])
def bulk_parameters(runs: Runs) -> pl.DataFrame:
    """Tabulate table 3a."""
    return _parameters(runs["ftp"], "flows", FTPS, lambda n: n)


@figure("3 goodput", "FTP: goodput of TCP", needs=["ftp"])
def bulk_goodput(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput of FTPs, which the paper states only in text."""
    _over_ftps(runs, ax, "goodput_mbps", "goodput, Mbit/s")
    level(ax, 8.4)
    ax.set_ylim(8, 10)


@figure("3b", "FTP: loss of UDP", needs=["ftp"])
def bulk_udp_loss(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3b."""
    _over_ftps(runs, ax, "udp_loss", "UDP packets lost, %", 100)


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
    """Draw the loss runs for fewer than 64 flows, which the paper states only in text."""
    _run_lengths(runs["ftp"], ax, flows=32)


@figure("3e", "FTP: standard deviation of the queueing delay", needs=["ftp"])
def bulk_deviation(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3e."""
    _over_ftps(runs, ax, "delay_std_s", "standard deviation, ms", 1e3)


@table("4a", "Parameters for web traffic", needs=["web"])
def web_parameters(runs: Runs) -> pl.DataFrame:
    """Tabulate table 4a."""
    return _parameters(runs["web"], "sessions", SESSIONS, lambda s: ACTIVE[s])


@figure("4 goodput", "Web: goodput of TCP", needs=["web"])
def web_goodput(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput of web traffic, which the paper states only in text."""
    _over_sessions(runs, ax, "goodput_mbps", "goodput, Mbit/s")
    level(ax, 8.7, "paper, maximum")


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
    """Draw the goodput of Tail Drop over its delay, and the points of the RED variants."""
    from sojourn.plotting.run import legend

    for n, dash in ((16, "-"), (64, "--"), (256, ":")):
        tail = pl.concat([
            runs["buffers"].filter(flows=n).select("delay_s", "goodput_mbps", place="share"),
            runs["ftp"].filter(q="td", flows=n)
            .select("delay_s", "goodput_mbps", place=pl.lit(1.0)),
        ]).group_by("place").mean().sort("place")  # fmt: skip
        look = style(0) | {"ls": dash, "label": f"Tail Drop, N = {n}"}
        ax.plot(tail["delay_s"] * 1e3, tail["goodput_mbps"], **look)
        last = tail.row(-1, named=True)
        end = (last["delay_s"] * 1e3, last["goodput_mbps"])
        # Below the end of the line.
        ax.annotate(f"N = {n}", end, (0, -13), textcoords="offset points", fontsize=8, ha="center")
    for k, q in enumerate(RED, 1):
        places = [[mean(runs["ftp"], what, q=q, flows=n) for n in (16, 64, 256)]
                  for what in ("delay_s", "goodput_mbps")]  # fmt: skip
        look = style(k) | {"ls": "", "ms": 6, "label": NAMES[q]}
        ax.plot([1e3 * one for one in places[0]], places[1], **look)
    ax.set(xlabel="mean queueing delay, ms", ylabel="goodput, Mbit/s", ylim=(8.7, 9.3))
    legend(ax)


@figure("wq", "Web, 1400 sessions: runs of losses against w_q", needs=["weights"])
def runs_by_weight(runs: Runs, ax: "Axes") -> None:
    """Draw the mean length of loss runs against the weight, at the highest load."""
    _weights(runs, ax, 1400)


@figure("wq light", "Web, 800 sessions: runs of losses against w_q", needs=["weights"])
def runs_by_weight_light(runs: Runs, ax: "Axes") -> None:
    """Draw the mean length of loss runs against the weight, at the lowest load."""
    _weights(runs, ax, 800)


def _weights(runs: Runs, ax: "Axes", sessions: int) -> None:
    frame, names = runs["weights"].filter(sessions=sessions), {q: NAMES[q] for q in STD}
    lines(ax, frame, "w_q", "run_mean", by="q", names=names, begin=1)
    ax.set(xlabel="w_q", ylabel="mean run of losses", xscale="log", ylim=(1, None))
    _plain(ax.xaxis, sorted(set(frame["w_q"])))


@table("flows", "Open connections under Tail Drop, and REDopt's max_p for that number",
       needs=["first", "users", "model"])  # fmt: skip
def open_connections(runs: Runs) -> pl.DataFrame:
    """Compare the chosen web users with others."""
    rows = []
    own = runs["first"].with_columns(users=pl.lit("as chosen, long runs"))
    for users, frame in [(None, own), *((one, runs["users"]) for one in MORE_WEB)]:
        chosen = frame if users is None else frame.filter(users=users)
        for s in sorted(set(chosen["sessions"]) & set(SESSIONS)):
            n = mean(chosen, "active", sessions=s)
            cells = [mean(chosen, k, sessions=s) for k in ("goodput_mbps", "utilisation")]
            rows.append([users or "as chosen, long runs", s, n, max_p(runs, n), *cells])
    names = ["users", "sessions", "open connections", "REDopt's max_p", "goodput, Mbit/s",
             "utilisation"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@table(
    "spread",
    "Spacing of RED's drops",
    needs=["ftp", "web", "simulated", "spread"],
)
def spread_signals(runs: Runs) -> pl.DataFrame:
    """Compare the three ways in which RED spaces its drops."""
    rows, spread = [], runs["spread"]
    for load, q in spread.select("load", "q").unique(maintain_order=True).iter_rows():
        name, x = "ftp", "flows"
        if load.endswith("sessions"):
            name, x = "web", "sessions"
        elif load.endswith("TCP"):
            name = "simulated"
        count, other = int(load.split()[0]), spread.filter(load=load, q=q)
        own = _same_seeds(runs[name].filter(pl.col(x) == count, q=q), other)
        for wait, frame in (
            ("bernoulli", own),
            *((one, other.filter(wait=one)) for one in ("no", "yes")),
        ):
            place = float(rules.place(frame, q, ACTIVE.get(count, count)).mean())
            rows.append([load, NAMES[q], wait, place, *(mean(frame, k) for k in SEEN)])
    names = ["load", "discipline", "wait", "mean queue from min_th (0) to max_th (1)"]
    return pl.DataFrame(rows, schema=[*names, *SEEN], orient="row")


def _same_seeds(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the runs with the seeds of `other`."""
    return frame.filter(pl.col("seed").is_in(other["seed"].unique().implode()))


SEEN = ("goodput_mbps", "udp_loss", "delay_s", "delay_std_s", "run_mean", "runs_of_2", "runs_of_10")


@table("simulated", "FTP with ns-2's TCP, an ack per packet", needs=["simulated"])
def ftp_simulated(runs: Runs) -> pl.DataFrame:
    """Tabulate the simulation that the paper mentions but does not show."""
    frame = runs["simulated"]
    rows = [
        [n, NAMES[q], *(mean(frame, k, q=q, flows=n) for k in SEEN)]
        for n in sorted(set(frame["flows"]))
        for q in NAMES
    ]
    return pl.DataFrame(rows, schema=["flows", "discipline", *SEEN], orient="row")


@table("ns-2", "FTP, 300 packets for every N, compared with ns-2", needs=["ns-2"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
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


@table("misjudged", "1400 sessions with parameters for 1200; REDopt with a faster average",
       needs=["web", "misjudged"])  # fmt: skip
def other_parameters(runs: Runs) -> pl.DataFrame:
    """Compare disciplines with other parameters than in figure 4."""
    rows = []
    web, other = _same_seeds(runs["web"], runs["misjudged"]), runs["misjudged"]
    for what, q, s in other.select("what", "q", "sessions").unique(maintain_order=True).iter_rows():
        for label, frame in (("figure 4", web), (what, other.filter(what=what))):
            cells = [mean(frame, k, q=q, sessions=s) for k in SEEN]
            rows.append([s, NAMES[q], label, *cells])
    return pl.DataFrame(rows, schema=["sessions", "discipline", "parameters", *SEEN], orient="row")
