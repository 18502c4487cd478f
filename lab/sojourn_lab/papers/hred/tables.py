"""Tables of the paper on HRED, and of those beyond it."""

from typing import Any

import polars as pl

from sojourn.result.statistics import interval
from sojourn_lab.papers.hred.checks import BUFFERS, NS2, RESPONDING, RULES, STATED_SHARES
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.papers.hred.extras import (
    AVQ_GAMMAS,
    BANDS,
    CORRECTIONS,
    GROUPS,
    P_INITS,
    PATHS,
    RATIOS,
    REDS,
    T_ALPHAS,
    TCPS,
)
from sojourn_lab.papers.hred.runs import FEW
from sojourn_lab.papers.hred.settings import PIC
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.parts import with_interval

TABLE_1 = {
    "RED": "min_th B/4, max_th B/2, w_q 0.002, max_p 0.1, gentle",
    "Blue": "d1 0.0002, d2 0.00002, freeze 10 ms",
    "PIC": "q_ref 3B/8, R+ 200 ms, N- 100, 160 Hz",
    "REM": "b* 3B/8, alpha 0.1, gamma 0.001, phi 1.001, 1 kHz",
    "AVQ": "alpha 0.15, gamma 1.0",
    "HRED": "min_th B/4, max_th B/2, kappa 2, T_alpha 400 ms, T_beta 200 ms",
}


def parameters(_: Runs) -> pl.DataFrame:
    """Tabulate the paper's table 1."""
    return pl.DataFrame(
        list(TABLE_1.items()), schema=["discipline", "parameters, buffer B"], orient="row"
    )


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


ANSWERS = ("rise_s", "fall_s", "rise_about_s", "fall_about_s", "away_up_s", "away_down_s")


def by_start(runs: Runs) -> pl.DataFrame:
    """Tabulate PIC's queue and loss by its initial drop probability."""
    rows, frame = [], runs["p_init"]
    for t in FEW:
        for p in P_INITS:
            own = {"T": t, "p_init": p}
            cells = (_cell(frame, one, 100, **own) for one in ("loss", "utilisation"))
            rows.append((t, f"{p:g}", *_two(frame, **own), *cells))
    names = ["T", "initial probability", *QUEUE, "loss, %", "utilisation, %"]
    return pl.DataFrame(rows, schema=names, orient="row")


def answers(runs: Runs) -> pl.DataFrame:
    """Compare response times by the metric with the time that the queue is away from its mean."""
    rows, varied = [], runs["step settings"]
    frames = [(NAMES[name], runs["step"].filter(pl.col("qdisc") == name)) for name in RESPONDING]
    frames += [(f"PIC, {it}", varied.filter(pl.col("setting") == it)) for it in PIC]
    for what, frame in frames:
        for size in frame["size"].unique().sort().to_list():
            cells = [_cell(frame, one, size=size) for one in ANSWERS]
            cut = frame.filter(pl.col("size") == size)
            late = int((cut["rise_about_s"] >= cut["cut_s"]).sum())
            late += int((cut["fall_about_s"] >= cut["cut_s"]).sum())
            used = _cell(frame, "used_after", 100, size=size)
            rows.append((what, size, *cells, f"{late} of {2 * len(cut)}", used))
    names = ["discipline", "step, %", "response to rise, s", "to fall, s"]
    names += ["about the old mean: rise, s", "about the old mean: fall, s"]
    names += ["away after rise, s", "away after fall, s", "cut", "utilisation after fall, %"]
    return pl.DataFrame(rows, schema=names, orient="row")


def by_ratio(runs: Runs) -> pl.DataFrame:
    """Tabulate HRED's queue for other ratios of T_alpha to T_beta."""
    rows = []
    for b, t in ((200, 100), (1000, 600)):
        for up, down in RATIOS:
            own = {"buffer": b, "T": t, "t_alpha": up, "t_beta": down}
            rows.append((b, t, up, down, f"{(up / down) ** 2:g}", *_two(runs["ratio"], **own)))
    names = ["buffer, kB", "T", "T_alpha, ms", "T_beta, ms", "K_beta / K_alpha", *QUEUE]
    return pl.DataFrame(rows, schema=names, orient="row")


def overflowed(runs: Runs) -> pl.DataFrame:
    """Tabulate the overflow after 600 FTPs have joined 100, by correction and configuration."""
    rows, frame = [], runs["overflow"]
    for band in BANDS:
        for correction in CORRECTIONS:
            own: dict[str, Any] = {"band": band, "correction": correction}
            cells = [_cell(frame, "drops", **own), _cell(frame, "full_s", **own)]
            cells += [_cell(frame, one, 100, **own) for one in ("after", "later")]
            rows.append((band, correction, *cells))
    names = ["thresholds", "correction", "overflows in 10 s", "s at 0.95 B or more"]
    names += ["mean queue in these 10 s, % of B", "afterwards, % of B"]
    return pl.DataFrame(rows, schema=names, orient="row")


def by_t_alpha(runs: Runs) -> pl.DataFrame:
    """Tabulate HRED's queue before a step of 30 %, and its response, by T_alpha."""
    rows, frame = [], runs["t_alpha"]
    for t in (one for one in T_ALPHAS if one in frame["t_alpha"]):
        columns = ("start_s", "back_s", "rise_about_s", "fall_about_s")
        cells = [_cell(frame, one, t_alpha=t) for one in columns]
        rows.append((t, *_two(frame, t_alpha=t), *cells))
    names = ["T_alpha, ms", *QUEUE, "from the start until in the band, s", "from the step, s"]
    names += ["response to rise, s", "response to fall, s"]
    return pl.DataFrame(rows, schema=names, orient="row")


SIGNALS = ("loss, %", "marks, %", "utilisation, %")


def with_ecn(runs: Runs) -> pl.DataFrame:
    """Compare queues and losses with marks and with drops."""
    rows, frame = [], runs["ecn"]
    for name in RULES:
        for t in FEW:
            for signal in ("drops", "marks"):
                own = {"qdisc": name, "T": t, "signal": signal}
                columns = ("loss", "marks", "utilisation")
                cells = (_cell(frame, one, 100, **own) for one in columns)
                rows.append((NAMES[name], t, signal, *_two(frame, **own), *cells))
    names = ["discipline", "T", "signal", *QUEUE, *SIGNALS]
    return pl.DataFrame(rows, schema=names, orient="row")


def with_xcp(runs: Runs) -> pl.DataFrame:
    """Compare XCP with HRED: table 2's network, and traffic T."""
    rows: list[tuple[Any, ...]] = []
    columns = ("mean", "std", "loss", "utilisation")
    for each in (one for one in GROUPS if one in runs["xcp"]["each"]):
        for name, text in (("xcp", "XCP"), ("hred", "HRED")):
            own = {"qdisc": name, "each": each}
            cells = (_cell(runs["xcp"], one, 100, **own) for one in ("share", *columns))
            rows.append((f"{each} of 20 ms, {each} of 200 ms", text, *cells))
    for t in FEW:
        xcp = (_cell(runs["xcp sweep"], one, 100, T=t) for one in columns)
        own = {"qdisc": "hred", "buffer": 300, "T": t}
        hred = (_cell(runs["sweep"], one, 100, **own) for one in columns)
        rows += [(f"T {t}", "XCP", "", *xcp), (f"T {t}", "HRED", "", *hred)]
    names = ["traffic", "system", "share of the 20 ms group, %", *QUEUE, "loss, %"]
    return pl.DataFrame(rows, schema=[*names, "utilisation, %"], orient="row")


def shares_by_path(runs: Runs) -> pl.DataFrame:
    """Tabulate the shares under tail drop with one parameter changed."""
    rows = [(one, _cell(runs["paths"], "share", 100, what=one)) for one in PATHS]
    return pl.DataFrame(rows, schema=["changed", "share of the 20 ms group, %"], orient="row")


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
