"""A paper is one module in `sojourn.papers`; this finds it, makes its runs and judges its claims.

The module holds, and nothing else:

- a docstring: the source, the set-up, what the paper leaves out and what was chosen, and why;
- `TITLE`, and `REFERENCE` (who, where, when);
- `scenarios(full)`: the experiments by name, each an Experiment; few seeds and points unless
  `full`;
- functions under `@figure` or `@table`: from the rows of experiments to axes or to a table;
- `CLAIMS`: a list of Claim.

Prose that was written after the runs is in a file of the same name that ends in .md.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from sojourn import papers
from sojourn._sojourn import InputError
from sojourn.campaign import Labels, Made, Measure, Run, campaign
from sojourn.claims import Claim, Part, Runs
from sojourn.settings import near, set_seed

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

Point: TypeAlias = tuple[Labels, Mapping[str, Any]]
"""A scenario without a seed, and its labels."""

Draw: TypeAlias = Callable[[Runs, "Axes"], None]
Tabulate: TypeAlias = Callable[[Runs], "pl.DataFrame"]


@dataclass(frozen=True)
class Experiment:
    """Scenarios without seeds, each with its labels; every one is run with `seeds` seeds, 1 up.

    The same seed draws the same numbers in all of them, so differences are paired.
    """

    points: Sequence[Point]
    measure: Measure
    seeds: int

    def runs(self) -> list[Run]:
        """Give every run."""
        return [
            Run(labels, set_seed(dict(tree), seed), self.measure)
            for labels, tree in self.points
            for seed in range(1, self.seeds + 1)
        ]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: its number there, what it shows, the experiments it needs."""

    number: str
    title: str
    needs: tuple[str, ...]
    draw: Draw | None = None
    tabulate: Tabulate | None = None
    size: tuple[float, float] = (5.6, 3.4)


def figure(
    number: str, title: str, *, needs: Sequence[str], size: tuple[float, float] = (5.6, 3.4)
) -> Callable[[Draw], Draw]:
    """Say which figure the function below draws on the axes that it is given."""

    def note(draw: Draw) -> Draw:
        draw.sojourn_figure = Figure(number, title, tuple(needs), draw=draw, size=size)  # type: ignore[attr-defined]
        return draw

    return note


def table(number: str, title: str, *, needs: Sequence[str]) -> Callable[[Tabulate], Tabulate]:
    """Say which table the function below gives; its cells are written as they are."""

    def note(tabulate: Tabulate) -> Tabulate:
        told = Figure(number, title, tuple(needs), tabulate=tabulate)
        tabulate.sojourn_figure = told  # type: ignore[attr-defined]
        return tabulate

    return note


@dataclass(frozen=True)
class Paper:
    """A paper that can be run: `id` is its name on the command line."""

    id: str
    module: ModuleType = field(repr=False)

    @property
    def title(self) -> str:
        """The title of the paper."""
        return str(self.module.TITLE)

    @property
    def reference(self) -> str:
        """Who wrote it, where and when."""
        return str(self.module.REFERENCE)

    @property
    def about(self) -> str:
        """The set-up, and what was chosen where the paper is silent."""
        return str(self.module.__doc__)

    @property
    def claims(self) -> list[Claim]:
        """What the paper claims."""
        return list(self.module.CLAIMS)

    @property
    def figures(self) -> list[Figure]:
        """Its figures and tables, in the order in which they stand in the module."""
        every = vars(self.module).values()
        return [one.sojourn_figure for one in every if hasattr(one, "sojourn_figure")]

    @property
    def prose(self) -> str:
        """What we found, in plain words; {ID.n} stands for what part n of a claim measured."""
        path = Path(str(self.module.__file__)).with_suffix(".md")
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def experiments(self, full: bool) -> dict[str, Experiment]:
        """Give the experiments by name."""
        return dict(self.module.scenarios(full))


@dataclass(frozen=True)
class Outcome:
    """What a paper's runs gave: rows by experiment, the judged claims, what it took."""

    paper: Paper
    full: bool
    runs: Runs
    figures: list[Figure]
    claims: list[tuple[Claim, list[Part]]]
    made: Made


def ids() -> list[str]:
    """Give the papers that there are; a name that begins with _ is a part of one."""
    found = (module.name for module in pkgutil.iter_modules(papers.__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def find(name: str) -> Paper:
    """Find a paper by its id. Raises InputError with the nearest right one."""
    wanted = name.lower().replace("_", "-")
    if wanted not in ids():
        raise InputError(f'paper: unknown paper "{name}"{near(name, ids())}')
    module = importlib.import_module(f"{papers.__name__}.{wanted.replace('-', '_')}")
    return Paper(wanted, module)


def run(
    paper: Paper,
    *,
    full: bool,
    store: Path,
    figures: Sequence[str] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
) -> Outcome:
    """Make the runs that `store` lacks, and judge the claims.

    With `figures`, only what those figures (by number) and the claims about them need.
    """
    import polars as pl

    shown = _chosen(paper, figures)
    numbers = {one.number for one in shown}
    about = [c for c in paper.claims if not figures or numbers & set(c.figure.split(", "))]
    needed = {name for one in shown for name in one.needs}
    needed |= {name for one in about for name in one.needs}
    experiments = paper.experiments(full)
    assert needed <= set(experiments), needed - set(experiments)
    chosen = {name: one for name, one in experiments.items() if name in needed}
    runs = {name: one.runs() for name, one in chosen.items()}
    every = [one for group in runs.values() for one in group]
    made = campaign(every, store=store, jobs=jobs, executor=executor, progress=progress)
    frames, place = {}, 0
    for name, group in runs.items():
        rows = made.rows[place : place + len(group)]
        frames[name] = pl.DataFrame(rows, infer_schema_length=None)
        place += len(group)
    judged = [(c, list(c.check(frames)) if c.check else []) for c in about]
    return Outcome(paper, full, frames, shown, judged, made)


def _chosen(paper: Paper, numbers: Sequence[str]) -> list[Figure]:
    known = [one.number for one in paper.figures]
    for number in numbers:
        if number not in known:
            raise InputError(f'--figure: no figure "{number}" in {paper.id}{near(number, known)}')
    return [one for one in paper.figures if not numbers or one.number in numbers]
