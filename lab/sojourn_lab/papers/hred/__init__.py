"""HRED: a stable AQM algorithm with fast adaptation, against RED, Blue, PIC, REM and AVQ.

The paper uses ns-2 and a dumbbell of 45 Mbit/s with a buffer in bytes, base round-trip times
uniform on 40 to 200 ms (one fixed set), and packets of 500 bytes. Traffic T is T FTPs and T/12 web
sessions per second, each of ten transfers of Pareto length (mean 10 packets, shape 1.2). It
measures 50 s after 150 s of warm-up. Further experiments are steps of the load, and a testbed: a
Linux 2.4.9 gateway at 10 Mbit/s with 100 ms and 50 kB. Parameters are from its table 1; all
disciplines drop, none marks.

Our choices where the paper states nothing:

- Sweep: T from 100 to 600; HRED with 200, 300, 500 and 1000 kB, the others with 300 and 500 kB;
  300 kB wherever the paper names no buffer.
- TCP: NewReno as ns-2's agents (an ack per packet, no receiver's limit), 500 bytes on the wire;
  FTPs start in the first 10 s.
- Access links: omitted, and acks return as a pure delay. `reports/validation.md` shows that this
  makes no measurable difference as long as round-trip times differ. Table 2 has equal round-trip
  times, and therefore access links of 100 Mbit/s.
- Web sessions: successive transfers, each on a new connection, with pauses of 1 s on average and
  Lomax (Pareto II) lengths, as in ns-2's own example of web traffic; 50 hosts whose round-trip
  times are drawn for every seed.
- RED: ns-2's gentle mode, spacing (`wait`) and byte mode, as in the validation against ns-2. With
  max_th at half the buffer both gentle modes are the same.
- HRED: p_min starts at 0.01 and never falls below 0.00001 (from 0 it could not rise).
- Figure 8: 0 to 50 sessions/s. Table 2: FTPs alone, 150 with 20 ms and 150 with 200 ms.
- Step: 30 % is 90 FTPs and 7.5 sessions/s more, all at once from 100 s to 150 s; steps of 10 to
  50 % likewise. The response ends when the deviation of the queue over 5 s, about its mean before
  the first change, is below 1.5 times the one before that change. The metric `response_time_s`
  takes the deviation about the mean of those 5 s; it cannot detect a queue that is constant at a
  wrong level (table `late step` has both).
- Testbed: x long flows and x/2 flows of 10 packets per second, x from 50 to 120, with the same TCP
  and 100 ms each; RED is computed in floating point and gentle.

Settings varied: PIC with another crossover frequency (section IV.B reconfigures it for a quick
response, without numbers), or later; table 2 with 500 kB, and with ns-2's default of 50 packets for
tail drop; packets of 250 to 750 bytes; web sessions without pauses; independent drops of RED; REM
with ten times the gain; SACK and delayed acks on the testbed.

Scale: three seeds (two in tables without claims); the paper has five for response times and does
not state the others. Quick mode has fewer points, 12 s after 18 s of warm-up, and steps at 40 s;
PIC and Blue have not converged by then.

Additions: two figures compare the stability bound (11) with the measured deviation, over the buffer
and over the gain |G| of (9). Several tables repeat claims that do not hold with one parameter
changed.
"""

from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.hred.checks import BUFFERS, NS2, RESPONDING, RULES, STATED_SHARES
from sojourn_lab.papers.hred.claims import CLAIMS, SETTINGS
from sojourn_lab.papers.hred.common import (
    NAMES,
    fluid_limit,
    gain,
    smallest_stable_buffer,
)
from sojourn_lab.papers.hred.facts import FACTS
from sojourn_lab.papers.hred.live_runs import LIVE, live
from sojourn_lab.papers.hred.runs import (
    AVQ_GAMMAS,
    BDP_KB,
    KAPPAS,
    MANY,
    PATHS,
    REDS,
    TCPS,
    scenarios,
)
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.drawings import drop_curve
from sojourn_lab.reproduction.paper import figure, table
from sojourn_lab.reproduction.parts import with_interval
from sojourn_lab.reproduction.theirs import level, ns2, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CLAIMS",
    "FACTS",
    "LEFT_OUT",
    "LIVE",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "live",
    "scenarios",
]

LEFT_OUT = {
    "1, 2, 12": "pictures were not available to us, and the text does not describe them",
}

TITLE = "HRED: stability and fast adaptation"
REFERENCE = "Joo, Bahk and Lumetta, Journal of Communications and Networks"

MEAN, STD = "mean queue / buffer", "deviation of the queue / buffer"


def _of_hred(runs: Runs, ax: "Axes", what: str, label: str) -> None:
    """Draw a line for each buffer of HRED against T."""
    frame = runs["sweep"].filter(pl.col("qdisc") == "hred")
    names = {b: f"{b} kB" for b in (200, 300, 500, 1000)}
    lines(ax, frame, "T", what, by="buffer", names=names)
    if what == "mean":
        level(ax, 0.375)
    ax.set(xlabel="traffic T: FTPs, and T/12 web sessions/s", ylabel=label, ylim=(0, None))


def _of_all(runs: Runs, ax: "Axes", what: str, label: str, buffer: int) -> None:
    """Draw a line for each discipline against T."""
    rules = pl.col("qdisc").is_in(RULES)
    frame = runs["sweep"].filter((pl.col("buffer") == buffer) & rules)
    lines(ax, frame, "T", what, by="qdisc", names=NAMES)
    for n, name in enumerate(NAMES) if buffer == 300 else ():
        theirs = {t: row[("mean", "std").index(what)] for (q, t), row in NS2.items() if q == name}
        if theirs and name in RULES:
            ns2(ax, list(theirs), list(theirs.values()), n)
    ax.set(xlabel="traffic T: FTPs, and T/12 web sessions/s", ylabel=label, ylim=(0, None))


TABLE_1 = {
    "RED": "min_th B/4, max_th B/2, w_q 0.002, max_p 0.1, gentle",
    "Blue": "d1 0.0002, d2 0.00002, freeze 10 ms",
    "PIC": "q_ref 3B/8, R+ 200 ms, N- 100, 160 Hz",
    "REM": "b* 3B/8, alpha 0.1, gamma 0.001, phi 1.001, 1 kHz",
    "AVQ": "alpha 0.15, gamma 1.0",
    "HRED": "min_th B/4, max_th B/2, kappa 2, T_alpha 400 ms, T_beta 200 ms",
}


@figure("map", "Own drawing: drop probability of HRED and of gentle RED",
        needs=())  # fmt: skip
def maps_drawn(_: Runs, ax: "Axes") -> None:
    """Draw HRED's map p_min (1 + (q - min_th) / (kappa max_th)) for two p_min, and RED's curve."""
    ends = (0.0, 1.0)
    curves = {
        name: [(q, p_min * (1 + (q - 0.25) / (2 * 0.5))) for q in ends]
        for name, p_min in (("HRED, p_min", 0.25), ("HRED, 2 p_min", 0.5))
    }
    curves["RED, gentle"] = [(0.0, 0.0), (0.25, 0.0), (0.5, 0.1), (1.0, 1.0)]
    ticks = {0.0: "0", 0.25: "min_th", 0.5: "max_th", 1.0: "B"}
    drop_curve(ax, curves, ticks, {0.1: "max_p", 0.25: "p_min", 0.5: "2 p_min", 1.0: "1"},
               "queue (RED: its average)")  # fmt: skip


@table("Table 1", "Parameters of the disciplines", needs=())
def parameters(_: Runs) -> pl.DataFrame:
    """Tabulate the paper's table 1."""
    return pl.DataFrame(
        list(TABLE_1.items()), schema=["discipline", "parameters, buffer B"], orient="row"
    )


figure_3a = figure("3a", "HRED: mean queue", needs=["sweep"])(
    lambda runs, ax: _of_hred(runs, ax, "mean", MEAN)
)
figure_3b = figure("3b", "HRED: standard deviation of the queue", needs=["sweep"])(
    lambda runs, ax: _of_hred(runs, ax, "std", STD)
)
figure_4a = figure("4a", "Mean queue, 300 kB", needs=["sweep"])(
    lambda runs, ax: _of_all(runs, ax, "mean", MEAN, 300)
)
figure_4b = figure("4b", "Mean queue, 500 kB", needs=["sweep"])(
    lambda runs, ax: _of_all(runs, ax, "mean", MEAN, 500)
)
figure_5a = figure("5a", "Standard deviation of the queue, 300 kB", needs=["sweep"])(
    lambda runs, ax: _of_all(runs, ax, "std", STD, 300)
)
figure_5b = figure("5b", "Standard deviation of the queue, 500 kB", needs=["sweep"])(
    lambda runs, ax: _of_all(runs, ax, "std", STD, 500)
)


def _queue(
    ax: "Axes", frame: pl.DataFrame, name: str, buffer: int, from_s: float, **labels: Any
) -> None:
    """Draw the queue (kB) of the first seed over time, and the thresholds of table 1."""
    queue = values(frame, "queue", **labels)[0]
    kept = [(0.1 * (i + 1), one * buffer) for i, one in enumerate(queue) if i >= 10 * from_s]
    ax.plot(*zip(*kept, strict=True), color=style(list(NAMES).index(name))["color"], lw=0.7)
    for share, what in ((1 / 4, "B/4"), (3 / 8, "3B/8"), (1 / 2, "B/2")):
        if (what == "3B/8") == (name in ("pi", "rem")):
            ax.axhline(share * buffer, color="#666666", lw=0.7, ls=":")
            ax.annotate(what, (1, share * buffer), xycoords=("axes fraction", "data"), fontsize=7)
    ax.axhline(buffer, color="#000000", lw=0.7)
    ax.annotate("B", (1, buffer), xycoords=("axes fraction", "data"), fontsize=7)
    ax.set(xlabel="time, s", ylabel="queue, kB", ylim=(0, buffer * 1.08))


def _rem(runs: Runs, ax: "Axes", t: int) -> None:
    """Draw REM's queue over the measured time."""
    last = 0.1 * len(values(runs["rem"], "queue", T=t)[0])
    _queue(ax, runs["rem"], "rem", 500, last - (50 if last > 150 else 20), T=t)


figure_6a = figure("6a", "REM, 500 kB, T 100 (seed 1)", needs=["rem"])(
    lambda runs, ax: _rem(runs, ax, 100)
)
figure_6b = figure("6b", "REM, 500 kB, T 300 (seed 1)", needs=["rem"])(
    lambda runs, ax: _rem(runs, ax, 300)
)
figure_6c = figure("6c", "REM, 500 kB, T 600 (seed 1)", needs=["rem"])(
    lambda runs, ax: _rem(runs, ax, 600)
)


def _web_on(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw a queue from before to after the web sessions start."""
    _queue(ax, runs["web_on"], name, 300, 0, qdisc=name)


WEB_ON = "300 FTPs, web sessions from half time on (seed 1)"
figure_7a = figure("7a", f"Blue: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: _web_on(runs, ax, "blue")
)
figure_7b = figure("7b", f"PIC: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: _web_on(runs, ax, "pi")
)
figure_7c = figure("7c", f"AVQ: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: _web_on(runs, ax, "avq")
)
figure_7d = figure("7d", f"HRED: {WEB_ON}", needs=["web_on"])(
    lambda runs, ax: _web_on(runs, ax, "hred")
)


@figure("8", "Standard deviation of the queue, 300 FTPs and web sessions", needs=["web"])
def deviation_by_web(runs: Runs, ax: "Axes") -> None:
    """Draw figure 8."""
    lines(ax, runs["web"], "web", "std", by="qdisc", names=NAMES)
    points(ax, [0], [0.11], None, "paper, all below")
    ax.set(xlabel="web sessions per second", ylabel=STD, ylim=(0, None))


@table("Table 2", "Share of goodput of 150 flows of 20 ms against 150 of 200 ms", needs=["shares"])
def goodput_shares(runs: Runs) -> pl.DataFrame:
    """Compare the shares of the paper with ours."""
    rows = [
        (
            NAMES[name],
            stated,
            with_interval(interval(100 * values(runs["shares"], "share", qdisc=name))),
            with_interval(interval(100 * values(runs["shares"], "goodput", qdisc=name))),
            with_interval(interval(100 * values(runs["shares"], "utilisation", qdisc=name))),
        )
        for name, stated in STATED_SHARES.items()
    ]
    names = ["discipline", "paper, %", "share of the 20 ms group, %", "goodput, % of the rate"]
    names.append("utilisation, %")
    return pl.DataFrame(rows, schema=names, orient="row")


def _step(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw a queue around a step of 30 %, without the first quarter of the run (as the paper)."""
    frame = runs["step"]
    last = 0.1 * len(values(frame, "queue", qdisc=name, size=30)[0])
    _queue(ax, frame, name, 300, last / 4, qdisc=name, size=30)


def _used(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw the utilisation of each second around a step of 30 %."""
    used = values(runs["step"], "used", qdisc=name, size=30)[0]
    kept = range(len(used) // 4, len(used))
    colour = style(list(NAMES).index(name))["color"]
    shown = [100 * used[i] for i in kept]
    ax.step([i + 1 for i in kept], shown, color=colour, where="pre")
    ax.fill_between([i + 1 for i in kept], shown, 100, step="pre", color=colour, alpha=0.25, lw=0)
    ax.set(xlabel="time, s", ylabel="utilisation of each second, %")
    ax.set_ylim(min(98.0, *shown) - 0.5, 100.4)


STEP = "30 % more traffic from half time to three quarters (seed 1)"
figure_9a = figure("9a", f"Blue: {STEP}", needs=["step"])(lambda runs, ax: _step(runs, ax, "blue"))
figure_9b = figure("9b", f"PIC: {STEP}", needs=["step"])(lambda runs, ax: _step(runs, ax, "pi"))
figure_9c = figure("9c", f"AVQ: {STEP}", needs=["step"])(lambda runs, ax: _step(runs, ax, "avq"))
figure_9d = figure("9d", f"HRED: {STEP}", needs=["step"])(lambda runs, ax: _step(runs, ax, "hred"))
figure_10a = figure("10a", f"Blue: {STEP}", needs=["step"])(
    lambda runs, ax: _used(runs, ax, "blue")
)
figure_10b = figure("10b", f"PIC: {STEP}", needs=["step"])(lambda runs, ax: _used(runs, ax, "pi"))
figure_10c = figure("10c", f"AVQ: {STEP}", needs=["step"])(lambda runs, ax: _used(runs, ax, "avq"))
figure_10d = figure("10d", f"HRED: {STEP}", needs=["step"])(
    lambda runs, ax: _used(runs, ax, "hred")
)


def _response(runs: Runs, ax: "Axes", way: str) -> None:
    """Draw response times against the size of the step."""
    lines(ax, runs["step"], "size", way, by="qdisc", names=NAMES)
    ax.set(xlabel="size of the step, %", ylabel="response time about the old mean, s")
    ax.set_yscale("symlog", linthresh=1)
    ax.set_yticks([0, 1, 2, 5, 10, 20, 50], ["0", "1", "2", "5", "10", "20", "50"])
    ax.set_ylim(-0.1, 60)


figure_11a = figure("11a", "Response time to more traffic", needs=["step"])(
    lambda runs, ax: _response(runs, ax, "rise_about_s")
)
figure_11b = figure("11b", "Response time to less traffic", needs=["step"])(
    lambda runs, ax: _response(runs, ax, "fall_about_s")
)


def _bed(runs: Runs, ax: "Axes", what: str, label: str, scale: float, least: float = 0) -> None:
    """Draw a column of the testbed against the number of long flows; the axis starts at `least`."""
    lines(ax, runs["testbed"], "flows", what, by="qdisc", names=NAMES, scale=scale)
    lowest = runs["testbed"][what].to_numpy().min()
    least = min(least, 5 * (scale * lowest // 5))
    ax.set(xlabel="long flows x, and x/2 flows of 10 packets per second", ylabel=label)
    ax.set_ylim(bottom=least)


figure_13a = figure("13a", "Testbed (simulated): mean queue", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "mean", "mean queue, kB", 50)
)
figure_13b = figure("13b", "Testbed (simulated): deviation of the queue", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "std", "deviation of the queue, kB", 50)
)
figure_13c = figure("13c", "Testbed (simulated): utilisation", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "utilisation", "utilisation, %", 100, 90)
)
figure_13d = figure("13d", "Testbed (simulated): loss", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "loss", "loss, %", 100)
)


@figure("bound", "HRED: deviation over the buffer, and the bound (11)", needs=["bound"])
def over_buffers(runs: Runs, ax: "Axes") -> None:
    """Draw the deviation with 300 FTPs of 120 ms, and the smallest stable buffer per kappa."""
    names = {kappa: f"kappa {kappa}" for kappa in KAPPAS}
    lines(ax, runs["bound"], "ratio", "std", by="kappa", names=names)
    for n, kappa in enumerate(KAPPAS):
        colour = style(n)["color"]
        ax.axvline(smallest_stable_buffer(0.5, kappa), color=colour, lw=0.9, ls=":")
    ax.set(xlabel="buffer / (rate x round trip); dotted: stable from there on", ylabel=STD)
    ax.set(ylim=(0, None), xscale="log")
    ax.set_xticks((0.15, 0.3, 0.5, 1, 2), ("0.15", "0.3", "0.5", "1", "2"))
    ax.minorticks_off()


@figure("gain", "HRED, 300 kB: deviation over the gain |G| of (9)", needs=["gain"])
def over_gains(runs: Runs, ax: "Axes") -> None:
    """Draw the deviation for all kappas, the bound |G| = 1, and the limit of the fluid model."""
    frame = runs["gain"]
    for n, flows in enumerate(MANY):
        points = []
        for kappa in frame["kappa"].unique().sort().to_list():
            queue = mean(frame, "mean", kappa=kappa, flows=flows)
            deviation = interval(values(frame, "std", kappa=kappa, flows=flows))
            steep = gain(queue, BDP_KB / 300, 1 / 4, 1 / 2, kappa)
            if steep > 0:  # else the mean queue is where the drop probability is 0
                points.append((steep, deviation))
        looks = style(n)
        ax.errorbar(
            [x for x, _ in points],
            [deviation.mean for _, deviation in points],
            yerr=[deviation.half for _, deviation in points],
            label=f"{flows} FTPs",
            capsize=2,
            **looks,
        )
        packets = (BDP_KB + 300 * mean(frame, "mean", flows=flows)) / 0.5
        ax.axvline(fluid_limit(packets / flows), color=looks["color"], lw=0.9, ls=":")
    ax.axvline(1, color="#000000", lw=0.9, ls="--")
    ax.set(xlabel="|G|; dashed: the paper's bound, dotted: of fluid TCP", ylabel=STD)
    ax.set(ylim=(0, None), xscale="log")
    ax.set_xticks((0.5, 1, 2, 5, 10), ("0.5", "1", "2", "5", "10"))
    ax.minorticks_off()
    legend(ax)


@table("gamma", "REM, 500 kB, with other gamma, compared with PIC", needs=["gamma", "sweep"])
def by_gamma(runs: Runs) -> pl.DataFrame:
    """Compare REM's queue for each gamma with PIC's."""
    rows, frame = [], runs["gamma"]
    for t in (100, 300, 600):
        each = sorted(frame.filter(pl.col("T") == t)["gamma"].unique().to_list(), reverse=True)
        rows += [(t, f"REM, gamma {one:g}", *_two(frame, T=t, gamma=one)) for one in each]
        rows.append((t, "PIC", *_two(runs["sweep"], T=t, qdisc="pi", buffer=500)))
    return pl.DataFrame(rows, schema=["T", "discipline", *QUEUE], orient="row")


QUEUE = ("mean queue, % of B", "deviation, % of B")


def _two(frame: pl.DataFrame, **labels: Any) -> tuple[str, str]:
    """Format mean and deviation of the queue."""
    return _cell(frame, "mean", 100, **labels), _cell(frame, "std", 100, **labels)


def _cell(frame: pl.DataFrame, column: str, scale: float = 1, **labels: Any) -> str:
    """Format a mean with its interval."""
    return with_interval(interval(scale * values(frame, column, **labels)))


@table("ns-2", "Compared with ns-2: 300 kB, with web sessions", needs=["sweep"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Compare mean and deviation of the queue, and loss, with ns-2's."""
    rows = []
    for (name, t), (theirs, std, loss) in NS2.items():
        own = {"qdisc": name, "T": t, "buffer": 300}
        mine = [mean(runs["sweep"], what, **own) for what in ("mean", "std", "loss")]
        rows.append((NAMES[name], t, theirs, mine[0], std, mine[1], 100 * loss, 100 * mine[2]))
    names = ["discipline", "T", "mean, ns-2", "mean, ours", "deviation, ns-2", "deviation, ours"]
    names += ["loss, ns-2, %", "loss, ours, %"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("avq", "AVQ, 300 kB, target utilisation below 1, compared with RED", needs=["avq", "sweep"])
def by_use(runs: Runs) -> pl.DataFrame:
    """Compare AVQ's queue for each gamma with RED's."""
    rows, columns = [], ("mean", "std", "utilisation")
    for t in (100, 300):
        for gamma in AVQ_GAMMAS:
            cells = (_cell(runs["avq"], one, 100, gamma=gamma, T=t) for one in columns)
            rows.append((t, f"AVQ, gamma {gamma:g}", *cells))
        own = {"qdisc": "red", "buffer": 300, "T": t}
        rows.append((t, "RED", *(_cell(runs["sweep"], one, 100, **own) for one in columns)))
    return pl.DataFrame(rows, schema=["T", "discipline", *QUEUE, "utilisation, %"], orient="row")


@table("late", "PIC starts with drop probability 0: a longer warm-up", needs=["late", "sweep"])
def with_more_time(runs: Runs) -> pl.DataFrame:
    """Compare PIC's queue after a longer warm-up with the usual one, and with RED and HRED."""
    rows = []
    for b in BUFFERS:
        for t in (300, 600):
            usual = {"buffer": b, "T": t}
            rows.append((b, t, "PIC, later", *_two(runs["late"], **usual)))
            for name in ("pi", "red", "hred"):
                own = {"qdisc": name, **usual}
                rows += [(b, t, NAMES[name], *_two(runs["sweep"], **own))]
    return pl.DataFrame(rows, schema=["buffer, kB", "T", "discipline", *QUEUE], orient="row")


@table("late step", "Response to a step, at the usual time and later", needs=["step", "late_step"])
def answers(runs: Runs) -> pl.DataFrame:
    """Compare response times by the metric with the time that the queue is away from its mean."""
    rows = []
    for when, frame in (("", runs["step"]), (", later", runs["late_step"])):
        for name in RESPONDING:
            sizes = frame.filter(pl.col("qdisc") == name)["size"].unique().sort()
            for size in sizes.to_list():
                own = {"qdisc": name, "size": size}
                cells = [_cell(frame, one, **own) for one in ANSWERS]
                used = _cell(frame, "used_after", 100, **own)
                rows.append((NAMES[name] + when, size, *cells, used))
    names = [
        "discipline",
        "step, %",
        "response to rise, s",
        "to fall, s",
        "about the old mean: rise, s",
        "about the old mean: fall, s",
    ]
    names += ["away after rise, s", "away after fall, s", "utilisation after fall, %"]
    return pl.DataFrame(rows, schema=names, orient="row")


ANSWERS = ("rise_s", "fall_s", "rise_about_s", "fall_about_s", "away_up_s", "away_down_s")


@table("paths", "Tail drop: sensitivity of the share of the 20 ms group", needs=["paths"])
def shares_by_path(runs: Runs) -> pl.DataFrame:
    """Tabulate the shares under tail drop with one parameter changed."""
    rows = [(one, _cell(runs["paths"], "share", 100, what=one)) for one in PATHS]
    return pl.DataFrame(rows, schema=["changed", "share of the 20 ms group, %"], orient="row")


@table("tcp", "300 FTPs, 25 web sessions/s: other TCPs", needs=["tcp", "sweep"])
def other_tcps(runs: Runs) -> pl.DataFrame:
    """Tabulate the deviations under other TCPs."""
    rows: list[tuple[Any, ...]] = []
    for name in ("red", "blue", "avq", "hred"):
        rows.append(
            (NAMES[name], "as in the sweep", *_two(runs["sweep"], T=300, buffer=300, qdisc=name))
        )
        for what in (*TCPS, "web without pauses"):
            own = {"qdisc": name, "what": what}
            rows += [(NAMES[name], what, *_two(runs["tcp"], **own))]
    return pl.DataFrame(rows, schema=["discipline", "changed", *QUEUE], orient="row")


@table("reds", "Testbed (simulated): RED with one parameter changed", needs=["reds"])
def other_reds(runs: Runs) -> pl.DataFrame:
    """Compare the testbed's RED with other configurations."""
    rows = []
    for what in REDS:
        for x in (50, 60):
            own = {"what": what, "flows": x}
            rows.append(
                (
                    what,
                    x,
                    _cell(runs["reds"], "utilisation", 100, **own),
                    *_two(runs["reds"], **own),
                )
            )
    return pl.DataFrame(
        rows, schema=["changed", "long flows", "utilisation, %", *QUEUE], orient="row"
    )
