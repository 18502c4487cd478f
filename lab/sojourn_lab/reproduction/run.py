"""The runs of a paper, simulated or on real packets, and the verdicts that follow from them."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Literal

from sojourn._sojourn import InputError
from sojourn.scenario.draft import parse
from sojourn.sweeps.runner import Run, campaign
from sojourn_lab.reproduction import checksums, costs, live
from sojourn_lab.reproduction.constants import Constants
from sojourn_lab.reproduction.judging import judge
from sojourn_lab.reproduction.paper import (
    Outcome,
    Paper,
    by_experiment,
    chosen,
    claims_about,
    claims_in_part,
)


def run(
    paper: Paper,
    *,
    full: bool,
    store: Path | None = None,
    figures: Sequence[str] = (),
    claims: Sequence[str] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    engine: Literal["sim", "live"] = "sim",
    set_up: Constants | None = None,
) -> Outcome:
    """Run the scenarios missing in `store`, if there is one, and judge the claims.

    `set_up` has other constants (see `Paper.set_up`), for the simulator only. With `figures`, only
    the runs that those figures (by number) and the claims about no others need; with `claims`,
    only the runs that these (by id) need. The `engine` is the simulator or, with "live", the
    kernel's TCP and UDP. Live runs take their duration in real time; `jobs` of them (default: 6)
    run at once, each in its own process.
    """
    if engine == "live":
        assert executor is None, "runs on real packets take place on this machine"
        assert store is not None, "runs on real packets are stored"
        if set_up is not None:
            raise InputError("--set: runs on real packets have no constants that can be changed")
        return live.run(
            paper, full=full, store=store, figures=figures, jobs=jobs, progress=progress
        )
    shown = [] if claims and not figures else chosen(paper, paper.figures, figures)
    about = claims_about(paper, shown) if figures else paper.claims
    about = [one for one in about if not claims or one.id in claims]
    needed = {name for one in shown for name in one.needs}
    needed |= {name for one in about for name in one.every_need}
    runs = _runs(paper, full, needed, set_up)
    every = costs.timed([one for group in runs.values() for one in group])
    result = campaign(
        every, store=store, jobs=jobs, executor=executor, progress=progress
    ).complete()
    times = costs.by_key(store, every, result.rows)
    frames = by_experiment(runs, result.rows)
    judged = [judge(one, frames, quick=not full) for one in about]
    changed = set_up if set_up is not None and set_up.changed else None
    return Outcome(
        paper,
        full,
        frames,
        shown,
        judged,
        result,
        requested=tuple(figures),
        in_part=claims_in_part(paper, shown) if figures else (),
        set_up=changed,
        core_s=costs.by_experiment(runs, result.rows, times),
        checksums=checksums.as_text(runs, result.rows),
    )


def _runs(
    paper: Paper, full: bool, needed: Collection[str], set_up: Constants | None
) -> dict[str, list[Run]]:
    """Return the runs of the needed experiments.

    Raises InputError if a changed constant makes a scenario invalid, or changes none.
    """
    if set_up is None or not set_up.changed:
        return _of_experiments(paper, full, needed, None)
    try:
        runs = _of_experiments(paper, full, needed, set_up)
        texts = _canonical(runs)
    except (InputError, ArithmeticError, ValueError) as error:
        raise InputError(f"{', '.join(set_up.options)}: {error}") from None
    for name, option in zip(set_up.changed, set_up.options, strict=True):
        others = {key: value for key, value in set_up.changed.items() if key != name}
        without = _of_experiments(paper, full, needed, type(set_up).of(others))
        if _canonical(without) == texts:
            raise InputError(f"{option}: no run of these figures and claims depends on it")
    return runs


def _of_experiments(
    paper: Paper, full: bool, needed: Collection[str], set_up: Constants | None
) -> dict[str, list[Run]]:
    experiments = paper.experiments(full, set_up)
    assert set(needed) <= set(experiments), set(needed) - set(experiments)
    return {name: one.runs() for name, one in experiments.items() if name in needed}


def _canonical(runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """Return the scenarios of runs in canonical form. Raises InputError."""
    return [parse(one.scenario).canonical() for group in runs.values() for one in group]
