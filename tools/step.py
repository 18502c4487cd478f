"""Response of a discipline to a step in load: one scenario for all, with numbers and a figure.

The numbers are part of the page of the discipline, so `tools/gen.py --check` runs the scenario
again for each. The figure contains a digest of its data, so that the check need not draw it.
`make gen` draws the figures whose data have changed.
"""

import ast
import hashlib
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sojourn as sj
from sojourn.plotting.run import colour, legend, new_figure, styled, write
from sojourn.result.result import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATE_BPS = 20e6
STEPS = (20.0, 40.0)
"""Times at which flows join and leave, seconds."""

PHASES = (("20", 10.0, 20.0), ("60", 30.0, 40.0), ("20", 50.0, 60.0))
"""Number of long flows, and the ten seconds of steady state before the next step."""

TITLE = 84
"""Characters per line of a figure's title."""

BIN = 15
"""Samples of 20 ms per point of a line."""

WORDS = (
    "20 long {tcp} flows with round-trip times of 60 to 140 ms share a link of 20 mbit. 40 more "
    "join at 20 s and stop at 40 s. A voice call sends 64 kbit throughout. Packets have 1000 B "
    "(the call's: 200 B), the buffer holds 500 packets; {given}. The line is the mean over 0.3 s, "
    "the band spans minimum to maximum."
)

RED = {"min_th": "50p", "max_th": "150p", "packet": "1kB"}
"""Thresholds for the queues of this scenario: the defaults are for slow links."""

SETTINGS: dict[str, dict[str, str]] = {
    "red": RED | {"gentle": "two_max_th"},
    "ared": {"target_delay": "40ms", "packet": "1kB"},
    "feng_red": RED | {"gentle": "two_max_th"},
    "red_opt": {"rtt": "100ms", "flows": "20", "packet": "1kB", "delayed_acks": "false"},
    "sa_red": RED | {"gentle": "two_max_th"},
    "rio": {"min_th": "30p", "max_th": "100p", "in_min_th": "50p", "in_max_th": "150p"},
    "hred": {"packet": "1kB"},
    "pi": {"q_ref": "100p", "flows": "20", "rtt": "180ms", "packet": "1kB"},
    "api": {"q_ref": "100p", "flows": "20", "rtt": "180ms", "packet": "1kB"},
    "rem": {"b_star": "100p"},
    "choke": RED | {"gentle": "two_max_th"},
    "fred": RED | {"gentle": "two_max_th"},
    "afd": {"q_target": "100p"},
    "af_qcn": {"q_eq": "100p"},
    "sfb": {"bins": "32"},
    "sfq": {"depth": "500"},
    "wf2q": {"flows": "64"},
    "qfq": {"flows": "64"},
    "prio": {"by": "flow", "flows": "64"},
    "wfq_red": RED,
    "fq_red": RED,
    "ewfq": {"limit": "500kB", "expected": "21", "rtt": "160ms"},
    "cake": {"bandwidth": "19.9mbit"},
    "tbf": {"rate": "19mbit"},
    "cbs": {"idleslope": "19mbit"},
    "ets": {"by": "flow", "flows": "64"},
    "fq": {"maxrate": "900kbit"},
    "hhf": {"admit_bytes": "20kB"},
}
"""Parameters besides the buffer size; disciplines that are not listed have their defaults."""


CLASSES: dict[str, int] = {"rio": 1}
"""Traffic class of the first 20 flows; all other flows have class 0."""


NEWRENO: tuple[str, str] = ("newreno", "NewReno")

TCPS: dict[str, tuple[str, str]] = {"xcp": ("xcp", "XCP")}
"""TCP of the long flows, and its name in text, if it is not NewReno."""


@dataclass(frozen=True)
class Gauge:
    """A variable to draw, with the label of its axis and a scale factor."""

    name: str
    axis: str
    scale: float = 1.0


DRAWN: dict[str, tuple[Gauge, ...]] = {
    "red": (Gauge("avg", "avg, packets"), Gauge("pb", "p_b")),
    "ared": (Gauge("avg", "avg, packets"), Gauge("max_p", "max_p")),
    "feng_red": (Gauge("avg", "avg, packets"), Gauge("max_p", "max_p")),
    "red_opt": (Gauge("avg", "avg, packets"), Gauge("pb", "p_b")),
    "sa_red": (Gauge("avg", "avg, packets"), Gauge("max_p", "max_p")),
    "rio": (Gauge("avg", "avg, packets"), Gauge("avg_in", "avg, in profile")),
    "hred": (Gauge("p", "p"), Gauge("p_min", "p_min")),
    "blue": (Gauge("pm", "p_m"),),
    "pi": (Gauge("p", "p"),),
    "api": (Gauge("p", "p"),),
    "rem": (Gauge("mu", "price mu"), Gauge("p", "p")),
    "avq": (Gauge("c_tilde", "C_tilde, packets/s"),),
    "codel": (Gauge("count", "count"),),
    "choke": (Gauge("avg", "avg, packets"), Gauge("pb", "p_b")),
    "cobalt": (Gauge("count", "count"), Gauge("p_blue", "p_blue")),
    "fred": (Gauge("avg", "avg, packets"), Gauge("avgcq", "avgcq, packets")),
    "sfb": (Gauge("pmin", "p_min"),),
    "sred": (Gauge("active", "1/P, flows"), Gauge("pz", "p_zap")),
    "afd": (Gauge("m_fair", "m_fair, kB", 1e-3), Gauge("active", "flows seen")),
    "af_qcn": (Gauge("fb", "Fb"),),
    "pie": (Gauge("p", "p"),),
    "ewfq": (Gauge("m_fair", "m_fair, kB", 1e-3),),
    "cake": (Gauge("bulk_flows", "bulk queues"), Gauge("count", "largest count")),
    "xcp": (Gauge("avg_rtt", "mean RTT, ms", 1e3), Gauge("q", "Q, kB", 1e-3)),
    "pi2": (Gauge("p_prime", "p'"), Gauge("p", "p'^2")),
    "dualpi2": (Gauge("p_prime", "p'"), Gauge("p_c", "p_C")),
    "curvy_red": (Gauge("q_c", "Q_C, ms", 1e3), Gauge("s", "s")),
}
"""Variables to draw, with their axes, where these are not the first two that a discipline shows.
Schedulers have virtual times only: their sojourn times are drawn."""

CLOCKS = {"V", "W", "v"}
"""Virtual times, which are not drawn."""


def scenario(name: str) -> dict[str, Any]:
    """Return the scenario with discipline `name`."""
    flow = {
        "path": ["bottleneck"],
        "tcp": {"name": TCPS.get(name, NEWRENO)[0], "packet": "1000B"},
        "rtt": "uniform(60ms, 140ms)",
    }
    call = {"name": "cbr", "rate": "64kbit", "packet": "200B"}
    more = {"name": "bulk", "start": "uniform(20s, 20.5s)", "stop": "40s"}
    return {
        "name": name,
        "duration": "60s",
        "sample": "20ms",
        "seed": 1,
        "packet_log": True,
        "links": {
            "bottleneck": {
                "rate": "20mbit",
                "delay": "5ms",
                "qdisc": {"name": name, "limit": "500p"} | SETTINGS.get(name, {}),
            }
        },
        "flows": [
            {"name": "call", "path": ["bottleneck"], "rtt": "100ms", "source": call},
            {"name": "first", "count": 20, "source": {"name": "bulk"}, **flow}
            | {"class": CLASSES.get(name, 0)},
            {"name": "more", "count": 40, "source": more, **flow},
        ],
    }


@cache
def _code() -> str:
    """Return the code of this module without imports, texts and the tables of disciplines."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            texts_and_tables = (ast.Import, ast.ImportFrom, ast.AnnAssign)
            node.body = [
                one
                for one in node.body
                if not (isinstance(one, texts_and_tables) and isinstance(node, ast.Module))
                and not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]
    return ast.dump(tree)


class Step:
    """The run of a discipline."""

    def __init__(self, name: str, about: str, result: sj.Result) -> None:
        self.name, self.about = name, about
        self.time_s = result.time_s
        link = result.links["bottleneck"]
        self.series, self.packet_log = link.series, link.packet_log
        self.call = list(result.flows).index("call")

    @cached_property
    def digest(self) -> str:
        """Hash of the data, the title, the drawn variables and the code of the figure."""
        whole = hashlib.sha256(_code().encode())
        whole.update(json.dumps([self.about, scenario(self.name)]).encode())
        whole.update(repr(DRAWN.get(self.name)).encode())
        for key, column in (*sorted(self.series.items()), *sorted(self.packet_log.items())):
            whole.update(key.encode() + np.ascontiguousarray(column).tobytes())
        return whole.hexdigest()[:16]

    @property
    def gauges(self) -> list[str]:
        """Names of the variables of the discipline."""
        return [k.removeprefix("gauge_") for k in self.series if k.startswith("gauge_")]

    def sojourns_ms(self, of_call: bool, since: float = 0.0, until: float = 60.0) -> Array:
        """Return the sojourn times of packets sent in an interval, of the call or of the others."""
        packet_log = self.packet_log
        sent = (packet_log.fate == 0) & (packet_log.left_s >= since) & (packet_log.left_s < until)
        sent &= (packet_log.flow == self.call) == of_call
        return np.asarray((packet_log.left_s - packet_log.arrived_s)[sent] * 1e3)

    def rows(self) -> list[str]:
        """Return the rows of the table, one per phase."""
        lines = []
        for flows, since, until in PHASES:
            now = (self.time_s > since) & (self.time_s <= until)
            queue = self.series.queue_packets[now].astype(float)
            at = (self.packet_log.arrived_s >= since) & (self.packet_log.arrived_s < until)
            lost = float((self.packet_log.fate[at] != 0).mean() * 100)
            used = float(self.series.departed_bytes[now].sum()) * 8 / (until - since) / RATE_BPS
            numbers = f"{queue.mean():.0f} ± {queue.std():.0f}"
            waits = [self.sojourns_ms(call, since, until).mean() for call in (False, True)]
            when = f"{flows} flows, {since:.0f} to {until:.0f} s"
            lines.append(
                f"| {when} | {numbers} | {waits[0]:.1f} | {waits[1]:.1f} | {lost:.2f} | "
                f"{min(used, 1) * 100:.1f} |"
            )
        return lines


def play(specs: Sequence[Mapping[str, Any]]) -> dict[str, Step]:
    """Run the scenario with each discipline; return the runs by name."""
    found = sj.simulate_many([scenario(spec["name"]) for spec in specs])
    steps = [Step(s["name"], s["about"], result) for s, result in zip(specs, found, strict=True)]
    return {step.name: step for step in steps}


def given(name: str) -> str:
    """Return the parameters of the discipline, and the class of the first flows, as text."""
    settings = SETTINGS.get(name, {})
    text = ", ".join(f"{k} {v}" for k, v in settings.items()) or "defaults otherwise"
    return f"{text}; the first 20 flows have class {CLASSES[name]}" if name in CLASSES else text


def is_drawn(step: Step, path: Path) -> bool:
    """Return True if the figure at `path` shows this run."""
    return path.exists() and f"<!-- series {step.digest} -->" in path.read_text()


def draw(step: Step, path: Path) -> None:
    """Write the figure of a run with its digest, rounded to a tenth of a point."""
    path.parent.mkdir(parents=True, exist_ok=True)
    import matplotlib as mpl

    # Text as text halves the file size.
    fonts: dict[Any, Any] = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
    with styled(), mpl.rc_context(fonts):
        write(figure_of(step), path)
    text = path.read_text().rstrip().removesuffix("</svg>")
    text = re.sub(r' d="[^"]+"', lambda d: re.sub(r"(\.\d)\d+", r"\1", d[0]), text)
    text = text.replace(" \nL", "L")
    path.write_text(f"{text}<!-- series {step.digest} -->\n</svg>\n")


def figure_of(step: Step) -> "Figure":
    """Draw the figure of a run: the queue, and variables of the discipline or sojourn times."""
    shown = [Gauge(name, name) for name in step.gauges if name not in CLOCKS]
    gauges = DRAWN.get(step.name, shown[:2])
    rows = 1 + (len(gauges) or 1)
    figure = new_figure(6.6, 0.9 + 1.35 * rows)
    axes: list[Axes] = list(figure.subplots(rows, 1, sharex=True))
    _line(axes[0], step.time_s, step.series.queue_packets.astype(float), 0)
    axes[0].set_ylabel("queue, packets")
    for n, (ax, gauge) in enumerate(zip(axes[1:], gauges, strict=False), start=1):
        _line(ax, step.time_s, step.series[f"gauge_{gauge.name}"] * gauge.scale, n)
        ax.set_ylabel(gauge.axis)
    if not gauges:
        _sojourns(axes[1], step)
    for ax in axes:
        ax.set_xlim(0, 60)
        ax.set_ylim(bottom=0)
        for at in STEPS:
            ax.axvline(at, color="#777777", lw=0.8, ls=":")
    for at, words in ((10, "20 flows"), (30, "60 flows"), (50, "20 flows")):
        axes[0].annotate(
            words, (at, 1.0), xycoords=("data", "axes fraction"), ha="center",
            va="bottom", fontsize=8, color="#555555",
        )  # fmt: skip
    axes[-1].set_xlabel("time, s")
    figure.align_ylabels(axes)
    title = textwrap.fill(f"{step.name}: {step.about}", TITLE)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def _line(ax: "Axes", time_s: Array, values: Array, n: int) -> None:
    """Draw the mean of each bin, and a band from minimum to maximum."""
    rows = values[: len(values) // BIN * BIN].reshape(-1, BIN)
    at = time_s[: len(values) // BIN * BIN].reshape(-1, BIN).mean(axis=1)
    ax.fill_between(at, rows.min(axis=1), rows.max(axis=1), color=colour(n), alpha=0.25, lw=0)
    ax.plot(at, rows.mean(axis=1), color=colour(n))


def _sojourns(ax: "Axes", step: Step) -> None:
    """Draw the mean sojourn times of the long flows' packets and of the call's."""
    edges = np.arange(0, 60.2, 0.2)
    for n, (label, of_call) in enumerate({"long flows": False, "call": True}.items(), start=1):
        sent = (step.packet_log.fate == 0) & ((step.packet_log.flow == step.call) == of_call)
        wait = (step.packet_log.left_s - step.packet_log.arrived_s)[sent] * 1e3
        count, _ = np.histogram(step.packet_log.left_s[sent], edges)
        total, _ = np.histogram(step.packet_log.left_s[sent], edges, weights=wait)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        # Dashed, so that both are seen where they share a queue.
        ax.plot(edges[:-1] + 0.1, mean, color=colour(n), ls="--" if of_call else "-", label=label)
    ax.set_ylabel("sojourn time, ms")
    legend(ax)


def section(step: Step, figure: str) -> list[str]:
    """Return the lines of a page: figure, description and table."""
    return [
        f"![{step.name} under a step in load]({figure})",
        "",
        WORDS.format(tcp=TCPS.get(step.name, NEWRENO)[1], given=given(step.name)),
        "",
        "| | queue, packets | sojourn time, ms | sojourn time of the call, ms | dropped, % | "
        "utilisation, % |",
        "|---|---|---|---|---|---|",
        *step.rows(),
        "",
    ]
