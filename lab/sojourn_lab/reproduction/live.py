"""Reproduction of a paper on real packets: the kernel's TCP and UDP over emulated links.

The same code draws the figures and judges the claims, as far as the runs on real packets suffice.
The same scenarios are also simulated, into the same store under other keys; `side_by_side` compares
the two.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.units import seconds
from sojourn.live import runner
from sojourn.plotting.run import new_figure, styled
from sojourn.scenario.draft import canonical
from sojourn.sweeps.runner import CampaignResult, Run, campaign
from sojourn_lab.reproduction import paper, side_by_side
from sojourn_lab.reproduction.claims import Claim, NoRunsError, Runs
from sojourn_lab.reproduction.judging import Judged, judge
from sojourn_lab.reproduction.paper import Emulated, Figure, Outcome, Paper

_LATE = re.compile(r"more than [\d.]+ ms")
"""Lateness in a warning. The report has one text for all runs: the worst value is listed apart."""


SHORT_S = 10.0
"""Runs that take less are not announced."""


def run(
    one: Paper,
    *,
    full: bool,
    store: Path,
    figures: Sequence[str] = (),
    jobs: int | None = None,
    progress: bool = False,
) -> Outcome:
    """Run the scenarios missing in `store` on real packets, simulate the same, judge the claims.

    Figures and claims that need runs that the quick mode omits are left out. Raises InputError,
    also if the paper has no runs on real packets or the kernel cannot run a scenario.
    """
    notes = one.live
    if notes is None:
        raise InputError(f"--engine: {one.id} has no runs on real packets")
    experiments = one.live_experiments(full)
    shown = [_named(it) for it in one.figures if _enough(it.needs, experiments)]
    shown.insert(0, side_by_side.comparison(notes, tuple(experiments)))
    shown = paper.chosen(one, shown, figures)
    about = paper.claims_about(one, shown) if figures else one.claims
    about = [claim for claim in about if _enough(claim.needs, experiments)]
    needed = {name for it in shown for name in it.needs}
    needed |= {name for it in about for name in it.needs}
    runs = {name: it.runs() for name, it in experiments.items() if name in needed}
    every = [it for group in runs.values() for it in group]
    runner.check(every)
    if progress:
        _announce(one.id, runner.expected_s(every, store=store, jobs=jobs))
    # Simulate first: emulation in real time needs idle processors.
    twins = campaign(every, store=store, progress=progress).complete()
    result = runner.emulate_all(every, store=store, jobs=jobs, progress=progress).complete()
    frames: dict[str, Any] = paper.by_experiment(runs, result.rows)
    simulated = paper.by_experiment(runs, twins.rows)
    frames |= {side_by_side.name(name): frame for name, frame in simulated.items()}
    about = [replace(c, settings=(), why=notes.why.get(c.id, c.why)) for c in about]
    judged = [done for c in about if (done := _judged(c, frames, full)) is not None]
    drawn = [it for it in shown if full or _can_be_shown(it, frames)]
    kept = {done.claim.id for done in judged} | {it.number for it in drawn}
    requested = [*(claim.id for claim in about), *(it.number for it in shown)]
    numbers = _numbers(every, result) | {"left_out": [it for it in requested if it not in kept]}
    emulated = Emulated(simulated, side_by_side.intro(notes, numbers), numbers)
    return Outcome(one, full, frames, drawn, judged, result, runner.live().name, emulated)


def expected_s(one: Paper, *, full: bool, store: Path) -> float:
    """Return the time that the runs on real packets missing in `store` need, in seconds."""
    every = [run for it in one.live_experiments(full).values() for run in it.runs()]
    return runner.expected_s(every, store=store)


def _announce(name: str, expected_s: float) -> None:
    """Print how long runs in real time take, if that is more than a few seconds."""
    if expected_s >= SHORT_S:
        minutes = f"{expected_s / 60:.0f} minutes" if expected_s >= 120 else f"{expected_s:.0f} s"
        print(
            f"sojourn: {name}: runs on real packets take {minutes}, after their simulated "
            "counterparts",
            file=sys.stderr,
        )


def _enough(needs: Sequence[str], experiments: Mapping[str, Any]) -> bool:
    return bool(needs) and set(needs) <= set(experiments)


def _named(figure: Figure) -> Figure:
    """Remove "(simulated)" from the title of a figure."""
    return replace(figure, title=figure.title.replace(" (simulated)", ""))


def _judged(claim: Claim, runs: Runs, full: bool) -> Judged | None:
    """Judge a claim; None if it needs runs that the quick mode omits."""
    try:
        return judge(claim, runs, quick=not full)
    except NoRunsError:
        if full:
            raise
        return None


def _can_be_shown(figure: Figure, runs: Runs) -> bool:
    """Return True if all runs that a figure or table needs exist."""
    try:
        if figure.tabulate is not None:
            figure.tabulate(runs)
        if figure.draw is not None:
            with styled():
                figure.draw(runs, new_figure(*figure.size).subplots())
    except NoRunsError:
        return False
    return True


def _numbers(runs: Sequence[Run], result: CampaignResult) -> dict[str, Any]:
    """Return the kernel, the lengths of the runs, their lateness, and their warnings."""
    trees = [canonical(it.scenario) for it in runs]
    warned = [row["warned"] for row in result.rows if row["warnings"]]
    lateness = {
        key: max((row[key] for row in result.rows if row[key] is not None), default=None)
        for key in runner.LATENESS
    }
    return {
        "kernel": runner.kernel(),
        "runs": len(result.rows),
        "seeds": len({row["seed"] for row in result.rows}),
        "run_s": max(seconds(tree["duration"]) for tree in trees),
        "cut_s": max(seconds(tree["warmup"]) for tree in trees),
        **{f"worst_{key}": value for key, value in lateness.items()},
        "runs_with_warnings": len(warned),
        "warnings": sorted(
            {_LATE.sub("more than 1 ms", one) for one in "; ".join(warned).split("; ")} - {""}
        ),
    }
