"""The parts of a paper's reproduction: experiments, figures, tables, claims.

A paper is a package in `sojourn.papers`. Its `__init__.py` holds:

- a docstring: the source, the set-up, what the paper leaves open, what was chosen there and why;
- `TITLE` and `REFERENCE` (authors, venue, year);
- `scenarios(full)`: the experiments by name, each an Experiment; few seeds and points unless
  `full`;
- functions under `@figure` or `@table`, which turn the rows of experiments into axes or a table;
- `CLAIMS`: a list of Claim;
- if part of it can run on real packets, `live(full)`, the experiments under the names of their
  simulated counterparts, and `LIVE`, the notes of that report (see `sojourn.reproduction.live`).

`findings.md` beside it is the prose written after the runs, `live_findings.md` the same for real
packets. A long paper has more modules in its package.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from sojourn import _sojourn, papers
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.reproduction.claims import Claim, Part, Runs
from sojourn.scenario.overrides import set_seed
from sojourn.sweeps.runner import Labels, Made, Measure, Row, Run

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
class Live:
    """What is told of a paper's runs on real packets.

    `about` says what is played, and why so; `theirs` are the paper's runs, which lasted `paper_s`.
    `columns` are what is put beside a simulation: of what is kept of a run, how it is called and
    what it is multiplied with. `names` are those of labels.
    """

    about: str
    theirs: str
    paper_s: float
    columns: Mapping[str, tuple[str, float]]
    names: Mapping[str, str]


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
        return self._beside("findings.md")

    @property
    def live_prose(self) -> str:
        """What we found on real packets, likewise."""
        return self._beside("live_findings.md")

    @property
    def live(self) -> Live | None:
        """What is told of its runs on real packets, if it has such."""
        found: Live | None = getattr(self.module, "LIVE", None)
        return found

    def experiments(self, full: bool) -> dict[str, Experiment]:
        """Give the experiments by name."""
        return dict(self.module.scenarios(full))

    def live_experiments(self, full: bool) -> dict[str, Experiment]:
        """Give those on real packets, by the names of those that they stand for."""
        return dict(self.module.live(full))

    def _beside(self, name: str) -> str:
        path = Path(str(self.module.__file__)).with_name(name)
        return path.read_text(encoding="utf-8") if path.exists() else ""


@dataclass(frozen=True)
class Played:
    """What is told of runs on real packets, beside their rows.

    `simulated` has the rows of the same scenarios when they are simulated, `intro` what a report
    begins with, `numbers` the same as data.
    """

    simulated: Runs
    intro: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a paper's runs gave: rows by experiment, the judged claims, what it took.

    `engine` is the name of what made them, `played` is there if packets were real.
    """

    paper: Paper
    full: bool
    runs: Runs
    figures: list[Figure]
    claims: list[tuple[Claim, list[Part]]]
    made: Made
    engine: str = field(default_factory=_sojourn.engine)
    played: Played | None = None


def ids() -> list[str]:
    """Return the ids of all papers: the packages in `sojourn.papers`."""
    found = (module.name for module in pkgutil.iter_modules(papers.__path__))
    return sorted(name.replace("_", "-") for name in found)


def find(name: str) -> Paper:
    """Find a paper by its id. Raises InputError with the nearest right one."""
    wanted = name.lower().replace("_", "-")
    if wanted not in ids():
        raise InputError(f"paper: unknown paper {shown(name)}{near(name, ids())}")
    module = importlib.import_module(f"{papers.__name__}.{wanted.replace('-', '_')}")
    return Paper(wanted, module)


def by_experiment(
    runs: Mapping[str, Sequence[Run]], rows: Sequence[Row]
) -> dict[str, "pl.DataFrame"]:
    """Sort the rows of all runs of some experiments by experiment."""
    import polars as pl

    frames, place = {}, 0
    for name, group in runs.items():
        of_it = rows[place : place + len(group)]
        frames[name] = pl.DataFrame(of_it, infer_schema_length=None)
        place += len(group)
    return frames


def chosen(paper: Paper, there_are: Sequence[Figure], numbers: Sequence[str]) -> list[Figure]:
    """Choose figures by number, all if there is none. Raises InputError."""
    known = [one.number for one in there_are]
    for number in numbers:
        if number not in known:
            raise InputError(
                f"--figure: no figure {shown(number)} in {paper.id}{near(number, known)}"
            )
    return [one for one in there_are if not numbers or one.number in numbers]


def claims_about(paper: Paper, shown: Sequence[Figure]) -> list[Claim]:
    """Choose the claims about no other figures than these."""
    numbers = {one.number for one in shown}
    return [c for c in paper.claims if set(c.figure.split(", ")) <= numbers]
