"""HRED: a queue management that is stable and adapts fast, against RED, Blue, PIC, REM and AVQ.

The paper: ns-2, a dumbbell of 45 Mbit/s, a buffer in bytes, round trips uniform on 40 to 200 ms
(one fixed set), packets of 500 bytes. T traffic is T FTPs and T/12 web sessions per second, each
of ten transfers of Pareto length (mean 10 packets, shape 1.2). It measures 50 s after 150 s. Then
steps of the load, and a testbed: a Linux 2.4.9 gateway at 10 Mbit/s with 100 ms and 50 kB. The
schemes are set as in its table 1; all drop, none marks.

It does not state, and chosen here is:

- the sweep: T 100 to 600, HRED with 200, 300, 500 and 1000 kB, the others with 300 and 500;
  300 kB wherever it names no buffer;
- TCP: NewReno as ns-2's agents (an ack per packet, no limit by the receiver), 500 bytes on the
  wire; FTPs start in the first 10 s;
- the access links: left out, and acks return in a pure delay. `docs/validation.md` shows that
  this changes nothing that its intervals would show, as long as round trips differ. In table 2,
  where they are equal, there are access links of 100 Mbit/s;
- web sessions: transfers one after the other, each on a new connection, with pauses of a second
  on average and lengths of Pareto's second kind (from 0 up), as in ns-2's own example of web
  traffic; 50 hosts whose round trips are drawn anew for every seed;
- RED: ns-2's gentle form, spread (`wait`) and byte mode, as the validation against ns-2 has it.
  With max_th at half of the buffer both gentle forms are one;
- HRED: p_min starts at 0.01 and never falls below 0.00001 (from 0 it could not rise);
- web rates of figure 8: 0 to 50 sessions/s; table 2: FTPs alone, 150 of 20 ms and 150 of 200 ms;
- the step: 30 % is 90 FTPs and 7.5 sessions/s more, all at once at 100 s, gone at once at 150 s;
  steps of 10 to 50 % likewise. Response time: the first moment from which on the deviation of the
  queue over 5 s is below 1.5 times the steady one (`response_time_s`); after a fall the steady one
  is that of the 25 s before it, since the 50 s hold the answer to the rise;
- the testbed: x long flows and x/2 flows of 10 packets per second, x 50 to 120, of the same TCP
  and with 100 ms each; RED is computed in floating point and gentle.

Scaled: five seeds, where the paper has one run and (for response times) five. Quick runs have
three seeds, T 100, 300 and 600, and 15 s after 25 s: PIC and Blue have not settled by then.

Beside the paper's: two figures hold its stability bound (11) against the measured deviation, over
the buffer and over the gain |G| of (9); several tables repeat what does not hold with one thing
changed.
"""

from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn.claims import Runs, mean, told, values
from sojourn.curves import lines, style
from sojourn.figure import legend
from sojourn.paper import Experiment, Point, figure, table
from sojourn.papers._hred import (
    NAMES,
    TESTBED,
    dumbbell,
    fluid_limit,
    gain,
    gateway,
    over_time,
    response,
    scheme,
    shares,
    smallest_stable_buffer,
    steady,
    step,
    two_groups,
    web,
)
from sojourn.papers._hred_claims import BUFFERS, CLAIMS, NS2, RESPONDING, RULES, STATED_SHARES
from sojourn.statistics import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CLAIMS", "REFERENCE", "TITLE", "scenarios"]

TITLE = "HRED: stability and fast adaptation"
REFERENCE = "Joo, Bahk and Lumetta, Journal of Communications and Networks"

BDP_KB = 675
"""45 Mbit/s times 120 ms, the mean of the round trips."""

WITH_WEB = ("red", "blue", "pi", "avq", "hred")
"""The schemes of figure 8."""

GAMMAS = (0.001, 0.0005, 0.0002, 0.0001, 0.00005)
KAPPAS = (1, 2, 4)
ALL_KAPPAS = (0.1, 0.25, 0.5, 1, 2, 4)
MANY = (100, 300)


def scenarios(full: bool) -> dict[str, Experiment]:
    """Give the paper's experiments, and what they are sensitive to."""
    seeds = 5 if full else 3
    span: dict[str, Any] = {"end": 200, "warmup": 150} if full else {"end": 40, "warmup": 25}
    brief: dict[str, Any] = {"end": 100, "warmup": 50} if full else {"end": 30, "warmup": 15}
    up, down, end = (100, 150, 200) if full else (40, 60, 80)
    traffic = range(100, 601, 100) if full else (100, 300, 600)
    ratios = (0.15, 0.27, 0.4, 4 / 7, 0.8, 4 / 3, 2) if full else (0.15, 4 / 7, 4 / 3)

    def at(name: str, kb: int, t: int) -> dict[str, Any]:
        return dumbbell(scheme(name, kb), t, web(t / 12), **span)

    sweep: list[Point] = [
        ({"qdisc": name, "buffer": b, "T": t}, at(name, b, t))
        for name in RULES
        for b in ((200, 300, 500, 1000) if name == "hred" else BUFFERS)
        for t in traffic
    ]
    sweep += [
        ({"qdisc": "droptail", "buffer": 300, "T": t}, at("droptail", 300, t))
        for t in (100, 300, 600)
    ]
    rem: list[Point] = [
        ({"T": t}, {**at("rem", 500, t), "sample": "10ms"}) for t in (100, 300, 600)
    ]
    late: dict[str, Any] = {"end": end, "warmup": up, "sample": "10ms"}
    web_on: list[Point] = [
        ({"qdisc": name}, dumbbell(scheme(name, 300), 300, web(25, start=f"{up}s"), **late))
        for name in RESPONDING
    ]
    with_web: list[Point] = [
        (
            {"qdisc": name, "web": rate},
            dumbbell(scheme(name, 300), 300, web(rate) if rate else None, **span),
        )
        for name in WITH_WEB
        for rate in ((0, 10, 25, 40, 50) if full else (0, 25, 50))
    ]
    groups: list[Point] = [
        ({"qdisc": name}, two_groups(scheme(name, 300), **span)) for name in STATED_SHARES
    ]
    steps: list[Point] = [
        ({"qdisc": name, "size": size}, step(scheme(name, 300), size, up, down, end))
        for name in RESPONDING
        for size in ((10, 20, 30, 40, 50) if full else (10, 30, 50))
    ]
    beds: list[Point] = [
        ({"qdisc": name, "flows": x}, gateway(scheme(name, 50, **TESTBED.get(name, {})), x, **span))
        for name in RULES
        for x in (range(50, 121, 10) if full else (50, 80, 120))
    ]
    gammas: list[Point] = [
        (
            {"gamma": gamma, "T": t},
            dumbbell(scheme("rem", 500, gamma=gamma), t, web(t / 12), **span),
        )
        for gamma in (GAMMAS if full else GAMMAS[::2])
        for t in (100, 300)
    ]
    same = ["120ms"] * 300
    bounds: list[Point] = [
        (
            {"kappa": kappa, "ratio": ratio},
            dumbbell(
                scheme("hred", round(BDP_KB * ratio), kappa=kappa), 300, None, rtts=same, **brief
            ),
        )
        for kappa in KAPPAS
        for ratio in ratios
    ]
    gains: list[Point] = [
        (
            {"kappa": kappa, "flows": n},
            dumbbell(scheme("hred", 300, kappa=kappa), n, None, rtts=same, **brief),
        )
        for kappa in ALL_KAPPAS
        for n in MANY
    ]
    return {
        "sweep": Experiment(sweep, steady, seeds),
        "rem": Experiment(rem, over_time, seeds),
        "web_on": Experiment(web_on, over_time, seeds),
        "web": Experiment(with_web, steady, seeds),
        "shares": Experiment(groups, shares, seeds),
        "step": Experiment(steps, response, seeds),
        "testbed": Experiment(beds, steady, seeds),
        "gamma": Experiment(gammas, steady, seeds),
        "bound": Experiment(bounds, steady, seeds),
        "gain": Experiment(gains, steady, seeds),
    }


MEAN, STD = "mean queue / buffer", "deviation of the queue / buffer"


def _of_hred(runs: Runs, ax: "Axes", what: str, label: str) -> None:
    """Draw a line for each buffer of HRED against T."""
    frame = runs["sweep"].filter(pl.col("qdisc") == "hred")
    names = {b: f"{b} kB" for b in (200, 300, 500, 1000)}
    lines(ax, frame, "T", what, by="buffer", names=names)
    ax.set(xlabel="traffic T: FTPs, and T/12 web sessions/s", ylabel=label, ylim=(0, None))


def _of_all(runs: Runs, ax: "Axes", what: str, label: str, buffer: int) -> None:
    """Draw a line for each scheme against T."""
    rules = pl.col("qdisc").is_in(RULES)
    frame = runs["sweep"].filter((pl.col("buffer") == buffer) & rules)
    lines(ax, frame, "T", what, by="qdisc", names=NAMES)
    ax.set(xlabel="traffic T: FTPs, and T/12 web sessions/s", ylabel=label, ylim=(0, None))


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
    ax.set(xlabel="time, s", ylabel="queue, kB", ylim=(0, buffer * 1.02))


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
    ax.set(xlabel="web sessions per second", ylabel=STD, ylim=(0, None))


@table("Table 2", "Share of goodput of 150 flows of 20 ms beside 150 of 200 ms", needs=["shares"])
def who_gets_what(runs: Runs) -> pl.DataFrame:
    """Put the shares of the paper beside ours."""
    rows = [
        (
            NAMES[name],
            stated,
            told(interval(100 * values(runs["shares"], "share", qdisc=name))),
            told(interval(100 * values(runs["shares"], "goodput", qdisc=name))),
        )
        for name, stated in STATED_SHARES.items()
    ]
    names = ["scheme", "paper, %", "share of the 20 ms group, %", "goodput over the rate, %"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _step(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw a queue around a step of 30 %; the first quarter is left out, as in the paper."""
    frame = runs["step"]
    last = 0.1 * len(values(frame, "queue", qdisc=name, size=30)[0])
    _queue(ax, frame, name, 300, last / 4, qdisc=name, size=30)


def _used(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw the utilisation of each second around a step of 30 %."""
    used = values(runs["step"], "used", qdisc=name, size=30)[0]
    kept = range(len(used) // 4, len(used))
    colour = style(list(NAMES).index(name))["color"]
    ax.plot([i + 0.5 for i in kept], [100 * used[i] for i in kept], color=colour)
    ax.set(xlabel="time, s", ylabel="utilisation of each second, %", ylim=(80, 101))


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
    ax.set(xlabel="size of the step, %", ylabel="response time, s", ylim=(0, None))


figure_11a = figure("11a", "Response time to more traffic", needs=["step"])(
    lambda runs, ax: _response(runs, ax, "rise_s")
)
figure_11b = figure("11b", "Response time to less traffic", needs=["step"])(
    lambda runs, ax: _response(runs, ax, "fall_s")
)


def _bed(runs: Runs, ax: "Axes", what: str, label: str, scale: float = 1) -> None:
    """Draw what the testbed measured against the number of long flows."""
    lines(ax, runs["testbed"], "flows", what, by="qdisc", names=NAMES, scale=scale)
    ax.set(xlabel="long flows x, and x/2 flows of 10 packets per second", ylabel=label)


figure_13a = figure("13a", "Testbed (simulated): mean queue", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "mean", "mean queue, kB", 50)
)
figure_13b = figure("13b", "Testbed (simulated): deviation of the queue", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "std", "deviation of the queue, kB", 50)
)
figure_13c = figure("13c", "Testbed (simulated): utilisation", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "utilisation", "utilisation, %", 100)
)
figure_13d = figure("13d", "Testbed (simulated): loss", needs=["testbed"])(
    lambda runs, ax: _bed(runs, ax, "loss", "loss, %", 100)
)


@figure("bound", "HRED: deviation over the buffer, and the bound (11)", needs=["bound"])
def over_buffers(runs: Runs, ax: "Axes") -> None:
    """Draw the deviation with 300 FTPs of 120 ms, and the least stable buffer for each kappa."""
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
    """Draw the deviation for five kappas, the bound |G| = 1, and where fluid TCP would swing."""
    frame = runs["gain"]
    for n, flows in enumerate(MANY):
        points = []
        for kappa in ALL_KAPPAS:
            queue = mean(frame, "mean", kappa=kappa, flows=flows)
            found = interval(values(frame, "std", kappa=kappa, flows=flows))
            points.append((gain(queue, BDP_KB / 300, 1 / 4, 1 / 2, kappa), found))
        looks = style(n)
        ax.errorbar(
            [x for x, _ in points],
            [found.mean for _, found in points],
            yerr=[found.half for _, found in points],
            label=f"{flows} FTPs",
            capsize=2,
            **looks,
        )
        packets = (BDP_KB + 300 * mean(frame, "mean", kappa=2, flows=flows)) / 0.5
        ax.axvline(fluid_limit(packets / flows), color=looks["color"], lw=0.9, ls=":")
    ax.axvline(1, color="#000000", lw=0.9, ls="--")
    ax.set(xlabel="|G|; dashed: the paper's bound, dotted: of fluid TCP", ylabel=STD)
    ax.set(ylim=(0, None), xscale="log")
    ax.set_xticks((0.5, 1, 2, 5, 10), ("0.5", "1", "2", "5", "10"))
    ax.minorticks_off()
    legend(ax)


@table("gamma", "REM with smaller gamma, 500 kB, beside PIC", needs=["gamma", "sweep"])
def by_gamma(runs: Runs) -> pl.DataFrame:
    """Put REM's queue for each gamma beside PIC's."""
    rows = []
    for t in (100, 300):
        frame = runs["gamma"]
        each = sorted(frame["gamma"].unique().to_list(), reverse=True)
        rows += [(t, f"REM, gamma {one:g}", *_two(frame, T=t, gamma=one)) for one in each]
        rows.append((t, "PIC", *_two(runs["sweep"], T=t, qdisc="pi", buffer=500)))
    names = ["T", "scheme", "mean queue / buffer", "deviation / buffer"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _two(frame: pl.DataFrame, **labels: Any) -> tuple[str, str]:
    """Write mean and deviation of the queue."""
    mean_of, std = (told(interval(values(frame, what, **labels))) for what in ("mean", "std"))
    return mean_of, std


@table("ns-2", "Beside ns-2: 300 kB, with web sessions", needs=["sweep"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Put mean and deviation of the queue, and loss, beside those of ns-2."""
    rows = []
    for (name, t), (theirs, std, loss) in NS2.items():
        own = {"qdisc": name, "T": t, "buffer": 300}
        mine = [mean(runs["sweep"], what, **own) for what in ("mean", "std", "loss")]
        rows.append((NAMES[name], t, theirs, mine[0], std, mine[1], 100 * loss, 100 * mine[2]))
    names = ["scheme", "T", "mean, ns-2", "ours", "deviation, ns-2", "ours, deviation"]
    names += ["loss, ns-2, %", "ours, loss, %"]
    return pl.DataFrame(rows, schema=names, orient="row")
