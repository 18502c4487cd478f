"""Effect of simultaneous arrivals and reused agents behind a switch, in ns-2 and sojourn."""

import csv

import numpy as np

from sojourn_lab.validation import sessions
from sojourn_lab.validation.cases import ROWS
from sojourn_lab.validation.files import AGAIN
from sojourn_lab.validation.report import mean, table
from sojourn_lab.validation.simulate import simulate
from sojourn_lab.validation.statistics import Array, half_width

WORDS = """### Effect of ties and reset agents in `codel_dc_incast`

Forty answers of 10 or 50 kB. *spread*: propagation times grow by 137 ns from server to server, so
that no two packets arrive at the same instant. *new*: ns-2 creates new agents for every query;
otherwise it resets existing ones, as in the recorded runs. From the second connection on, sojourn
behaves like ns-2 after a reset.

"""
CASES = [("DropTail", "10", "-1"), ("DropTail", "50", "-1"), ("RED", "50", "0.002")]
"""Discipline, kB and weight."""

METRICS = [m for m in AGAIN.metrics if m.column in ("afct_ms", "loss", "util")]


def switch(seeds: int | None = None) -> tuple[str, dict[str, str]]:
    """Return recorded runs, reruns of ns-2 and sojourn, with and without ties."""
    lines, numbers = [], dict[str, str]()
    for q, kb, wq in CASES:
        chosen = {"q": q, "skb": kb, "n": "40", "wq": wq}
        columns: dict[str, Array | None] = {
            "recorded": _rows("codel_dc_incast", chosen),
            "again": _rows("reruns/switch_told", chosen),
            "again_new": _rows("reruns/switch_new", chosen),
            "ours": _ours(chosen, 0, seeds),
            "again_spread": _rows("reruns/switch", chosen),
            "ours_spread": _ours(chosen, 137, seeds),
        }
        for i, m in enumerate(METRICS):
            cells = []
            for name, values in columns.items():
                cells.append(_cell(values, i, m.form))
                if values is not None:
                    key = f"switch_{q}_{kb}_{name}_{m.column}"
                    numbers[key] = f"{values[:, i].mean():{m.form}}"
            lines.append([f"{q} skb {kb} wq {wq}" if i == 0 else "", m.label, *cells])
    head = ["case", "metric", "recorded", "rerun of ns-2", "rerun, new", "sojourn"]
    return WORDS + table([*head, "rerun, spread", "sojourn, spread"], lines), numbers


def _rows(name: str, chosen: dict[str, str]) -> Array | None:
    """Read recorded runs; None if this case has none."""
    with (ROWS / f"{name}.csv").open(newline="") as text:
        rows = [row for row in csv.DictReader(text) if chosen.items() <= row.items()]
    return np.array([[float(row[m.column]) for m in METRICS] for row in rows]) if rows else None


def _ours(chosen: dict[str, str], spread_ns: int, seeds: int | None) -> Array:
    q, kb, n, wq = chosen.values()
    scenarios = [
        sessions.queries(seed, q, float(kb), int(n), float(wq), spread_ns)
        for seed in range(seeds or 10)
    ]
    return simulate(scenarios, [m.ours for m in METRICS])


def _cell(values: Array | None, i: int, form: str) -> str:
    if values is None:
        return ""
    return mean(float(values[:, i].mean()), half_width(values[:, i]), form)
