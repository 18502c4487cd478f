"""The runs of a paper, simulated or on real packets, and the verdicts that follow from them."""

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Literal

from sojourn.sweeps.runner import campaign
from sojourn_lab.reproduction import live
from sojourn_lab.reproduction.claims import judge
from sojourn_lab.reproduction.paper import Outcome, Paper, by_experiment, chosen, claims_about


def run(
    paper: Paper,
    *,
    full: bool,
    store: Path,
    figures: Sequence[str] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    engine: Literal["sim", "live"] = "sim",
) -> Outcome:
    """Run the scenarios missing in `store`, and judge the claims.

    With `figures`, only the runs that those figures (by number) and the claims about no others
    need. The `engine` is the simulator or, with "live", the kernel's TCP and UDP. Live runs take
    their duration in real time; `jobs` of them (default: 6) run at once, each in its own process.
    """
    if engine == "live":
        assert executor is None, "runs on real packets take place on this machine"
        return live.run(
            paper, full=full, store=store, figures=figures, jobs=jobs, progress=progress
        )
    shown = chosen(paper, paper.figures, figures)
    about = claims_about(paper, shown) if figures else paper.claims
    needed = {name for one in shown for name in one.needs}
    needed |= {name for one in about for name in one.every_need}
    experiments = paper.experiments(full)
    assert needed <= set(experiments), needed - set(experiments)
    runs = {name: one.runs() for name, one in experiments.items() if name in needed}
    every = [one for group in runs.values() for one in group]
    result = campaign(
        every, store=store, jobs=jobs, executor=executor, progress=progress
    ).complete()
    frames = by_experiment(runs, result.rows)
    return Outcome(paper, full, frames, shown, [judge(one, frames) for one in about], result)
