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

Missing from our copy of the paper: Table 1 (the web users) and the values of tables 3a and 4a (the
parameters by load). The constants c1, c2 and c3 of REDopt's model are unverified: its paper could
not be read, and `red_opt` has them from memory. They set the buffer of every discipline.

Our choices where the paper (or our copy of it) states nothing:

- Bulk data: N = 16, 32, 64, 128, 256, with N/4 FTPs per host. Linux of 2001: SACK, delayed acks,
  1514-byte packets, an initial window of two packets, a minimum RTO of 200 ms (profile `rfc`).
  Experiment `each-ack` has ns-2's Sack1, an ack per packet and packets of 1400 to 1628 bytes.
- RED's drops are independent (`wait` bernoulli) in all three RED variants. The paper says that
  REDopt's queue settles in the middle between the thresholds. With an ack per packet, only this one
  of the three variants in use gives that (table `spacing`).
- Web: Feldmann's users as in ns-2's webtraf before November 2001; a page does not wait for the end
  of the previous one. Pages are Pareto (50 s, shape 2) apart, with Pareto (4, 1.2) objects that are
  Pareto (0.5 s, 1.5) apart, of Pareto (12 kB, 1.2) size. Each object has its own connection (ns-2's
  Sack1), without a request packet. The offered load is 9.05 Mbit/s at 1300 sessions (median of
  three runs of 2000 s over a fast link). UDP leaves 9 Mbit/s, so nothing had to be scaled.
- REDopt's N for web: `ACTIVE`, the median of six first runs with 300 packets of Tail Drop.
- Access links and the link between the first two routers have 100 Mbit/s and 1000 packets. No queue
  can form behind the bottleneck, so the simulated path ends there, and acks return as a pure delay.
- CBR sources start at random in the first 10 s. Goodput counts headers of 40 bytes.

Experiments that the paper names or cites, and does not show:

- Two-way traffic (figure `two-way`): N FTPs in each direction. The link back has 10 Mbit/s, no
  delay, and the same discipline and buffer, so the acks of each direction queue behind the data of
  the other. UDP goes forward only.
- Half-duplex Ethernet (table `half-duplex`): the acks share the bottleneck of 10 Mbit/s, and its
  queue, with the data. The simulator lets both directions share a link. It has no queue per station
  in front of a shared medium (no discipline tells the acks of a flow from its data), no
  collisions and no backoff. So acks wait behind data as they would not on Ethernet; the
  capacity that they take is the same. Preamble and gaps between frames are not counted.
- RIO (figure `profile`): every second FTP of each host, and every second CBR source, is in profile.
  This is a property of the flow; there is no meter. Packets out of profile have REDstd's curve over
  the average of all packets. Packets in profile have its thresholds over the average of packets in
  profile, and in_max_p 0.02. Tail Drop and REDstd ignore the profile.

Settings varied: an ack per packet, the spacing of RED's drops, acks that share the bottleneck,
goodput of payload, losses of all packets, REDopt's w_q, parameters made for fewer sessions, other
web users.

Scale: bulk data is run as in the testbed, 6 times 500 s (the paper 10). Web has 4 runs of 5000 s
(the paper 50). The settings have as long runs of 3 seeds (4 with the parameters for fewer sessions;
other web users 2000 s). Quick mode has 2 or 3 runs of 200 to 500 s, too short for the sessions of
an overload to accumulate. All simulations of the paper (4 disciplines, 5 loads, 50 runs of 5000 s)
would send 13 G packets in 45 minutes on one core: 2.3 to 3 s and 11 to 15 M packets per run.
"""

from typing import TYPE_CHECKING

import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn_lab.papers.red_vs_taildrop.claims import CLAIMS
from sojourn_lab.papers.red_vs_taildrop.drawing import (
    BASE,
    ftp_axis,
    over_ftps,
    over_sessions,
    plain_ticks,
    relative,
    run_lengths,
    with_ns2_values,
)
from sojourn_lab.papers.red_vs_taildrop.experiments import THREE, scenarios
from sojourn_lab.papers.red_vs_taildrop.facts import FACTS
from sojourn_lab.papers.red_vs_taildrop.live_runs import LIVE, live
from sojourn_lab.papers.red_vs_taildrop.rules import RED, STD
from sojourn_lab.papers.red_vs_taildrop.runs import NAMES, SetUp
from sojourn_lab.papers.red_vs_taildrop.settings import SETTINGS
from sojourn_lab.papers.red_vs_taildrop.tables import (
    bulk_losses,
    bulk_parameters,
    drop_spacing,
    each_ack,
    half_duplex,
    in_profile,
    open_connections,
    other_parameters,
    over_two_ways,
    same_seeds,
    web_parameters,
    with_ns2,
)
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.drawings import drop_curve, topology
from sojourn_lab.reproduction.paper import figure
from sojourn_lab.reproduction.theirs import level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CLAIMS",
    "FACTS",
    "LIVE",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "SetUp",
    "bulk_losses",
    "bulk_parameters",
    "drop_spacing",
    "each_ack",
    "half_duplex",
    "in_profile",
    "live",
    "open_connections",
    "other_parameters",
    "over_two_ways",
    "scenarios",
    "web_parameters",
    "with_ns2",
]

TITLE = "Tail Drop against RED for bulk and web traffic"
REFERENCE = "Brandauer, Iannaccone, Diot, Ziegler, Fdida, May, ISCC 2001"


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


@figure("3 goodput", "FTP: goodput of TCP", needs=["ftp"])
def bulk_goodput(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput of FTPs, which the paper states only in text."""
    over_ftps(runs["ftp"], ax, "goodput_mbps", "goodput, Mbit/s")
    level(ax, 8.4)
    ax.set_ylim(8, 10)


@figure("3b", "FTP: loss of UDP", needs=["ftp"])
def bulk_udp_loss(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3b."""
    over_ftps(runs["ftp"], ax, "udp_loss", "UDP packets lost, %", 100)


@figure("3c", "FTP: mean queueing delay", needs=["ftp"])
def bulk_delay(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3c."""
    over_ftps(runs["ftp"], ax, "delay_s", "mean queueing delay, ms", 1e3)


@figure("3d", "FTP, N = 256: runs of losses", needs=["ftp"])
def bulk_runs(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3d."""
    run_lengths(runs["ftp"], ax, flows=256)


@figure("3d light", "FTP, N = 32: runs of losses", needs=["ftp"])
def bulk_runs_light(runs: Runs, ax: "Axes") -> None:
    """Draw the loss runs for fewer than 64 flows, which the paper states only in text."""
    run_lengths(runs["ftp"], ax, flows=32)


@figure("3e", "FTP: standard deviation of the queueing delay", needs=["ftp"])
def bulk_deviation(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3e."""
    over_ftps(runs["ftp"], ax, "delay_std_s", "standard deviation, ms", 1e3)


@figure("4 goodput", "Web: goodput of TCP", needs=["web"])
def web_goodput(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput of web traffic, which the paper states only in text."""
    over_sessions(runs, ax, "goodput_mbps", "goodput, Mbit/s")
    level(ax, 8.7, "paper, maximum")


@figure("4b", "Web: loss of UDP (means)", needs=["web"])
def web_udp_loss(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4b."""
    over_sessions(runs, ax, "udp_loss", "UDP packets lost, %", 100)


@figure("4b paired", "Web: loss of UDP, compared with Tail Drop by seed", needs=["web"])
def web_udp_loss_paired(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4b as paired differences."""
    relative(runs, ax, "udp_loss", "UDP packets lost, % more\nthan with Tail Drop")


@figure("4c", "Web: mean queueing delay (means)", needs=["web"])
def web_delay(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c."""
    over_sessions(runs, ax, "delay_s", "mean queueing delay, ms", 1e3)


@figure("4c paired", "Web: mean queueing delay, compared with Tail Drop by seed", needs=["web"])
def web_delay_paired(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c as paired differences."""
    relative(runs, ax, "delay_s", "mean queueing delay, % more\nthan with Tail Drop")


@figure("4 std", "Web: standard deviation of the queueing delay (means)", needs=["web"])
def web_deviation(runs: Runs, ax: "Axes") -> None:
    """Draw the panel of figure 4 with the deviations."""
    over_sessions(runs, ax, "delay_std_s", "standard deviation, ms", 1e3)


@figure("4 std paired", "Web: standard deviation, compared with Tail Drop by seed", needs=["web"])
def web_deviation_paired(runs: Runs, ax: "Axes") -> None:
    """Draw the deviations as paired differences."""
    relative(runs, ax, "delay_std_s", "standard deviation, % more\nthan with Tail Drop")


@figure("4d", "Web, 1400 sessions: runs of losses", needs=["web"])
def web_runs(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d."""
    run_lengths(runs["web"], ax, sessions=1400)


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


@figure("wq", "Web, 1400 sessions: runs of losses against w_q, paired by seed",
        needs=["web", "weights"])  # fmt: skip
def runs_by_weight(runs: Runs, ax: "Axes") -> None:
    """Draw the mean length of loss runs against the weight, relative to the weight of figure 4."""
    columns = ["q", "seed", "run_mean"]
    own = same_seeds(runs["web"], runs["weights"]).filter(pl.col("q").is_in(STD), sessions=1400)
    base = own.select("q", "seed", base="run_mean")
    every = pl.concat(
        [runs["weights"].select(*columns, "w_q"), own.select(*columns, w_q=pl.lit(SetUp().w_q))]
    )
    paired = every.join(base, on=["q", "seed"])
    paired = paired.with_columns(more=100 * (pl.col("run_mean") / pl.col("base") - 1))
    lines(ax, paired, "w_q", "more", by="q", names={q: NAMES[q] for q in STD}, begin=1)
    ax.axhline(0, **BASE)
    ax.set(xlabel="w_q", ylabel="mean run of losses, % longer\nthan with 0.002", xscale="log")
    plain_ticks(ax.xaxis, sorted(set(every["w_q"])))


@figure("ns-2 loss", "FTP, 300 packets for every N: loss of UDP, with ns-2", needs=["ns-2"])
def ns2_loss(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3b for one buffer, with ns-2's values."""
    with_ns2_values(runs, ax, "udp_loss", 0, "UDP packets lost, %", 100)


@figure("ns-2 delay", "FTP, 300 packets for every N: mean queueing delay, with ns-2",
        needs=["ns-2"])  # fmt: skip
def ns2_delay(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3c for one buffer, with ns-2's values."""
    with_ns2_values(runs, ax, "delay_s", 1, "mean queueing delay, ms", 1e3)


@figure("ns-2 deviation", "FTP, 300 packets for every N: deviation of the delay, with ns-2",
        needs=["ns-2"])  # fmt: skip
def ns2_deviation(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3e for one buffer, with ns-2's values."""
    with_ns2_values(runs, ax, "delay_std_s", 2, "standard deviation, ms", 1e3)


@figure("two-way", "FTPs in both directions: goodput of both", needs=["two-way"])
def both_directions(runs: Runs, ax: "Axes") -> None:
    """Draw the sum of the goodputs of two-way traffic."""
    both = pl.col("goodput_mbps") + pl.col("goodput_back_mbps")
    over_ftps(runs["two-way"].with_columns(both=both), ax, "both", "goodput, Mbit/s")
    plain_ticks(ax.xaxis, THREE)
    ax.set(xlabel="FTP flows in each direction", ylim=(12, 20))


@figure("profile", "Half of the FTPs in profile: their share of the goodput", needs=["profile"])
def profile_share(runs: Runs, ax: "Axes") -> None:
    """Draw the share of the goodput that the flows in profile have."""
    share = 100 * pl.col("goodput_in_mbps") / pl.col("goodput_mbps")
    frame = runs["profile"].with_columns(share=share)
    for begin, names in ((0, {q: NAMES[q] for q in ("td", "red")}), (len(NAMES), {"rio": "RIO"})):
        lines(ax, frame, "flows", "share", by="q", names=names, begin=begin)
    ftp_axis(ax)
    plain_ticks(ax.xaxis, THREE)
    ax.set(ylabel="goodput of flows in profile, %", ylim=(40, 100))
