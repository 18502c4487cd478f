"""Run the suite: `sojourn evaluate` and `sojourn.evaluate`."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, of_link, shown
from sojourn._util.public import public
from sojourn._util.units import bps_of, seconds
from sojourn.evaluation.cases import CASES, Case
from sojourn.evaluation.lines import lines_of
from sojourn.evaluation.measure import Suite
from sojourn.evaluation.result import REFERENCE, Evaluation
from sojourn.evaluation.scorecard import begin, write
from sojourn.evaluation.setup import LINK, Plan, Table
from sojourn.scenario import variants
from sojourn.scenario.draft import Draft, canonical
from sojourn.scenario.variants import Variants
from sojourn.sweeps.rows import arranged
from sojourn.sweeps.runner import Run, campaign
from sojourn.sweeps.store import Store

PACKET_S, RUN_S, PAGE_S = 0.16e-6, 0.003, 3.0
"""CPU time of a packet, of a run without packets, and of the scorecard, in seconds.

Fitted to the 9,500 runs of reports/scorecards; a packet is one that the link can send.
"""

PARALLEL = 0.85
"""Share of the cores that the runs use: rows are written by one thread at a time."""

RATE_MIN_BPS, RATE_MAX_BPS = 500e3, 1e9
"""Range of rates: below it no flow fits a share, above it a run takes minutes."""

TARGETS = (0.5, 2.0, 4.0)
"""Multiples of a delay target for the curves of the trade-off graphs (4.3)."""

TARGET_CASES = ("A1", "E2")
"""Cases in which the target varies."""


@dataclass(frozen=True)
class Asked:
    """Validated evaluation: its runs, and what they are compared by."""

    runs: list[Run]
    qdiscs: dict[str, Table]
    rates: list[str]
    quick: bool

    def predicted_s(self, workers: int) -> float:
        """Return the expected wall-clock time of all runs on idle cores, in seconds."""
        total = sum(_cost_s(run.scenario) for run in self.runs)
        return PAGE_S + total / max(1.0, PARALLEL * workers)


def _cost_s(scenario: Any) -> float:
    link = scenario["links"][LINK]
    rates = link["trace"]["rate_bps"] if "trace" in link else [bps_of(link["rate"])]
    return seconds(scenario["duration"]) * sum(rates) / len(rates) / 12_000 * PACKET_S + RUN_S


def prepare(
    qdiscs: Variants,
    rates: str | Sequence[str] = "10mbit",
    *,
    quick: bool = False,
    only: Sequence[str] = (),
) -> Asked:
    """Return the runs of an evaluation. `evaluate` has the same parameters.

    Raises InputError if a discipline or rate is invalid, or a case is unknown.
    """
    labelled = _qdiscs(qdiscs)
    listed = [rates] if isinstance(rates, str) else list(rates)
    if not listed:
        raise InputError("--rate: give at least one, like 10mbit")
    if len({_rate_of(one) for one in listed}) < len(listed):
        raise InputError(f"--rate: {shown(','.join(listed))} has a rate twice")
    chosen = _chosen(only)
    runs: list[Run] = []
    for text in listed:
        plan = Plan(_rate_of(text), quick)
        for case in chosen:
            for variant, tree in case.build(plan).items():
                runs += _runs(case, variant, tree, text, plan, labelled)
    if only and len(labelled) > 1 and all(run.labels["qdisc"] == REFERENCE for run in runs):
        names = " and ".join(label for label in labelled if label != REFERENCE)
        raise InputError(f"--only: no case is left for {names}, which cannot mark")
    return Asked(runs, labelled, listed, quick)


def _chosen(only: Sequence[str]) -> list[Case]:
    known = {case.id: case for case in CASES}
    for name in only:
        if name not in known:
            raise InputError(f"--only: unknown case {shown(name)}{near(name, known)}")
    return [case for name, case in known.items() if not only or name in only]


def _rate_of(text: str) -> float:
    value = bps_of(of_link("--rate", "rate", text))
    if not RATE_MIN_BPS <= value <= RATE_MAX_BPS:
        raise InputError(f"--rate: {shown(text)} is out of range, allowed: 500kbit to 1gbit")
    return value


def _qdiscs(choice: Variants) -> dict[str, Table]:
    """Return the disciplines by label, drop-tail first."""
    try:
        named = variants.variants(choice)
        tables = [_canonical(table) for _, table in named]
    except InputError as error:
        raise InputError(f"--qdisc: {error}") from None
    names = [
        {**table, "name": full["name"]} for (_, table), full in zip(named, tables, strict=True)
    ]
    usual = variants.labels(names)
    by_label: dict[str, Table] = {REFERENCE: {"name": REFERENCE}}
    for (label, _), name, automatic in zip(named, names, usual, strict=True):
        key = label or automatic
        if key == REFERENCE and name == {"name": REFERENCE}:
            continue
        if key in by_label:
            raise InputError(f"--qdisc: {shown(key)} is given twice")
        by_label[key] = name
    return by_label


def _canonical(table: Table) -> Table:
    tree = {"duration": "1s", "links": {LINK: {"rate": "10mbit", "qdisc": table}},
            "flows": [{"name": "f", "path": [LINK]}]}  # fmt: skip
    try:
        whole: Table = canonical(tree)["links"][LINK]["qdisc"]
    except InputError as error:
        text = str(error).removeprefix(f"links.{LINK}.qdisc")
        raise InputError(text.lstrip(".: ")) from None
    return whole


def _runs(
    case: Case, variant: str, tree: Table, rate: str, plan: Plan, qdiscs: Mapping[str, Table]
) -> list[Run]:
    """Return the runs of a scenario: all disciplines, targets and seeds."""
    measure = Suite(_changes_of(tree), case.varying)
    runs = []
    for label, qdisc in qdiscs.items():
        full = _canonical(qdisc)
        if case.ecn and label != REFERENCE and "ecn" not in full:
            continue
        own = {**qdisc, "ecn": True} if case.ecn and label != REFERENCE else qdisc
        multiples: tuple[float, ...] = (1.0,)
        if case.id in TARGET_CASES and not plan.quick and _target(full) is not None:
            multiples = (1.0, *TARGETS)
        for multiple in multiples:
            one = {**own, "target": _times(_target(full), multiple)} if multiple != 1 else own
            links = [LINK] if variant == "drop-tail behind it" else list(tree["links"])
            draft = Draft(tree).with_qdisc(one, *links)
            labels: dict[str, str | int | float | bool] = {
                "case": case.id, "variant": variant, "rate": rate, "qdisc": label,
                "target": multiple,
            }  # fmt: skip
            runs += [
                Run(labels, draft.with_keys(seed=seed).tree, measure)
                for seed in range(1, plan.seeds + 1)
            ]
    return runs


def _target(full: Table) -> str | None:
    """Return the delay target of a canonical discipline, if it has one."""
    target = full.get("target")
    return target if isinstance(target, str) and target.endswith("s") else None


def _times(target: str | None, multiple: float) -> str:
    assert target is not None
    return f"{round(seconds(target) * multiple * 1e9)}ns"


def _changes_of(tree: Table) -> tuple[float, ...]:
    """Return the times of the changes of load or rate, of phases of a second or longer."""
    end_s = seconds(tree["duration"])
    if "changes" in tree:
        return tuple(dict.fromkeys(seconds(one["at"]) for one in tree["changes"]))
    trace = tree["links"][LINK].get("trace")
    if trace is None:
        return ()
    starts = [t / 1e9 for t in trace["t_ns"]]
    if "repeat" in trace:
        period = seconds(trace["repeat"])
        if period < 2:
            return ()
        starts = [k * period + t for k in range(int(end_s / period) + 1) for t in starts]
    return tuple(t for t in starts if 0 < t < end_s)


@public
def evaluate(
    qdiscs: Variants,
    rate: str | Sequence[str] = "10mbit",
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    out: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Evaluation:
    """Run the test suite of RFC 7928 for disciplines, and compare them with drop-tail.

    Parameters
    ----------
    qdiscs : str, Qdisc, sequence or mapping
        The disciplines, as for `compare`. Drop-tail is added as the reference.
    rate : str or sequence of str, optional
        Rate of the bottleneck, or several rates; 500kbit to 1gbit.
    quick : bool, optional
        True shortens the runs and omits variants.
    only : sequence of str, optional
        Names of cases, like ``["A1", "E5"]``. The default is all.
    out : str or Path, optional
        Directory for the runs (`runs`) and the scorecard. Runs that are there are not repeated.
    executor : concurrent.futures.Executor, optional
        Executor for the runs. The default is threads of this process.
    jobs : int, optional
        Number of threads. The default is the number of cores.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.

    Returns
    -------
    Evaluation
        Rows, scorecard, and the means to write them.

    Raises
    ------
    InputError
        If a discipline or a rate is invalid, a case is unknown, or `out` holds other files.
    """
    plan = prepare(qdiscs, rate, quick=quick, only=only)
    return run(plan, out=out, executor=executor, jobs=jobs, progress=progress)


def run(
    plan: Asked,
    *,
    out: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Evaluation:
    """Run a validated evaluation. `evaluate` has the same parameters."""
    store = None
    if out is not None:
        begin(Path(out))
        store = Store(Path(out) / "runs")
    results = campaign(
        plan.runs, store=store, executor=executor, jobs=jobs, progress=progress
    ).complete()
    rows = arranged(results.rows)
    order = {label: n for n, label in enumerate(plan.qdiscs)}
    evaluation = Evaluation(
        rows, lines_of(rows, list(order)), plan.qdiscs, plan.rates, plan.quick, results.executed,
        results.wall_s,
    )  # fmt: skip
    if out is not None:
        write(evaluation, Path(out))
    return evaluation


def workers(jobs: int | None) -> int:
    """Return the number of runs in parallel."""
    return jobs or os.cpu_count() or 1
