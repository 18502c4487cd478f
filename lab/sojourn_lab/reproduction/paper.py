"""The parts of a paper's reproduction: experiments, figures, tables, claims.

A paper is a package in `sojourn_lab.papers`. Its `__init__.py` holds:

- a docstring: the source, the set-up, what the paper does not state, our choices and their reasons;
- `TITLE` and `REFERENCE` (authors, venue, year);
- `scenarios(full)`: the experiments by name, each an Experiment; few seeds and points unless
  `full`;
- functions decorated with `@figure` or `@table`, which draw or tabulate the rows of experiments;
- `CLAIMS`: a list of Claim;
- `SETTINGS` (optional): a list of Setting, other values of what the paper leaves open;
- `SetUp` (optional): the constants of the set-up, which `--set KEY=VALUE` changes (see
  `reproduction/constants.py`). `scenarios(full, set_up=SetUp())` then takes them;
- `FACTS` (optional): functions of the runs that return a text, for numbers of the findings that
  are not parts of claims;
- `LEFT_OUT` (optional): figures of the paper that are not reproduced, with the reason;
- if part of it can run on real packets: `live(full)`, the experiments under the names of their
  simulated counterparts, and `LIVE`, the notes of that report (see `reproduction/live.py`).

`findings.md` in the same folder has the findings, written after the runs; `live_findings.md` has
the findings on real packets. A long paper has more modules in its package.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.sweeps.runner import CampaignResult, Labels, Measure, Row, Run
from sojourn_lab.reproduction.claims import Claim, Runs, Setting
from sojourn_lab.reproduction.constants import Constants
from sojourn_lab.reproduction.judging import Judged

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

Point: TypeAlias = tuple[Labels, Mapping[str, Any]]
"""A scenario without a seed, and its labels."""

Draw: TypeAlias = Callable[[Runs, "Axes"], None]
Tabulate: TypeAlias = Callable[[Runs], "pl.DataFrame"]


@dataclass(frozen=True)
class Experiment:
    """Labelled scenarios without seeds; each is run with the seeds 1 to `seeds`.

    The same seed draws the same random numbers in all of them, so differences are paired.
    """

    points: Sequence[Point]
    measure: Measure
    seeds: int

    def runs(self) -> list[Run]:
        """Return all runs."""
        return [
            Run(labels, {**tree, "seed": seed}, self.measure)
            for labels, tree in self.points
            for seed in range(1, self.seeds + 1)
        ]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: its number there, its title, the experiments that it needs.

    A table with `front` is at the top of the page, the others are on the page with the data.
    """

    number: str
    title: str
    needs: tuple[str, ...]
    draw: Draw | None = None
    tabulate: Tabulate | None = None
    size: tuple[float, float] = (5.6, 3.4)
    front: bool = False


def figure(
    number: str, title: str, *, needs: Sequence[str], size: tuple[float, float] = (5.6, 3.4)
) -> Callable[[Draw], Draw]:
    """Mark a function as the one that draws this figure on given axes."""

    def note(draw: Draw) -> Draw:
        draw.sojourn_figure = Figure(number, title, tuple(needs), draw=draw, size=size)  # type: ignore[attr-defined]
        return draw

    return note


def table(
    number: str, title: str, *, needs: Sequence[str], front: bool = False
) -> Callable[[Tabulate], Tabulate]:
    """Mark a function as the one that returns this table; its cells are printed unchanged."""

    def note(tabulate: Tabulate) -> Tabulate:
        marked = Figure(number, title, tuple(needs), tabulate=tabulate, front=front)
        tabulate.sojourn_figure = marked  # type: ignore[attr-defined]
        return tabulate

    return note


@dataclass(frozen=True)
class Live:
    """Notes for the report of a paper's runs on real packets.

    `about` describes the set-up and its reasons. `theirs` names the paper's runs, which lasted
    `paper_s`. `columns` are the measured values compared with the simulation: name in the rows to
    name in the table and factor. `names` are the printed names of labels. `why` says in at most
    ten words why a claim does not hold wholly, where the reason differs from the simulated runs'.
    """

    about: str
    theirs: str
    paper_s: float
    columns: Mapping[str, tuple[str, float]]
    names: Mapping[str, str]
    why: Mapping[str, str] = field(default_factory=dict)


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
        """Authors, venue and year."""
        return str(self.module.REFERENCE)

    @property
    def about(self) -> str:
        """The set-up, and our choices where the paper states nothing."""
        return str(self.module.__doc__)

    @property
    def claims(self) -> list[Claim]:
        """The claims of the paper, each with the settings that concern it."""
        return [
            replace(claim, settings=[one for one in self.settings if one.concerns(claim)])
            for claim in self.module.CLAIMS
        ]

    @property
    def settings(self) -> list[Setting]:
        """Other values of what the paper leaves open."""
        return list(getattr(self.module, "SETTINGS", ()))

    @property
    def figures(self) -> list[Figure]:
        """Its figures and tables, in the order of the module."""
        every = vars(self.module).values()
        return [one.sojourn_figure for one in every if hasattr(one, "sojourn_figure")]

    @property
    def findings(self) -> str:
        """The findings; names in braces stand for measured texts (see `contents.filled`)."""
        return self._page("findings.md")

    @property
    def live_findings(self) -> str:
        """The findings on real packets, likewise."""
        return self._page("live_findings.md")

    @property
    def live(self) -> Live | None:
        """The notes on its runs on real packets, if it has such runs."""
        live: Live | None = getattr(self.module, "LIVE", None)
        return live

    @property
    def facts(self) -> Mapping[str, Callable[[Runs], str]]:
        """Functions that return a measured text, by the name that stands for it in the findings."""
        facts: Mapping[str, Callable[[Runs], str]] = getattr(self.module, "FACTS", {})
        return facts

    @property
    def left_out(self) -> Mapping[str, str]:
        """Figures of the paper that are not reproduced, with the reason."""
        omitted: Mapping[str, str] = getattr(self.module, "LEFT_OUT", {})
        return omitted

    @property
    def constants(self) -> type[Constants] | None:
        """The class of its constants, if it has constants that can be changed."""
        constants: type[Constants] | None = getattr(self.module, "SetUp", None)
        return constants

    def set_up(self, **changes: Any) -> Constants:
        """Return its constants with some changed, for `run` and `experiments`.

        Raises InputError for an unknown name or a value that is not allowed.
        """
        return self._constants().of(changes)

    def changed(self, settings: Sequence[str]) -> Constants | None:
        """Return its constants with the changes of settings KEY=VALUE; None without settings.

        Raises InputError, which names the option `--set`.
        """
        return self._constants().replaced(settings) if settings else None

    def _constants(self) -> type[Constants]:
        if self.constants is None:
            raise InputError(f"--set: {self.id} has no constants that can be changed")
        return self.constants

    def experiments(self, full: bool, set_up: Constants | None = None) -> dict[str, Experiment]:
        """Return the experiments by name, with other constants if `set_up` is given."""
        return dict(self.module.scenarios(full, *([] if set_up is None else [set_up])))

    def live_experiments(self, full: bool) -> dict[str, Experiment]:
        """Return the experiments on real packets, by the names of their simulated counterparts."""
        return dict(self.module.live(full))

    def _page(self, name: str) -> str:
        path = Path(str(self.module.__file__)).with_name(name)
        return path.read_text(encoding="utf-8") if path.exists() else ""


@dataclass(frozen=True)
class Emulated:
    """The simulated counterpart and the summary of runs on real packets.

    `simulated` has the rows of the same scenarios, simulated. `intro` is the first paragraph of the
    report, `numbers` the same as data.
    """

    simulated: Runs
    intro: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """Result of a paper's runs: rows by experiment, judged claims, number and cost of the runs.

    `engine` is the name of the engine that made them; `emulated` is set for runs on real packets.
    `in_part` are the claims that were not judged, because they are about further figures.
    `requested` are the figures requested by number; none means all. `set_up` has the
    constants, unless they are the paper's. `core_s` is the processor time of each experiment, as
    far as it was measured, and `checksums` the contents of `checksums.txt`.
    """

    paper: Paper
    full: bool
    runs: Runs
    figures: list[Figure]
    claims: list[Judged]
    campaign: CampaignResult
    engine: str = field(default_factory=_sojourn.engine)
    emulated: Emulated | None = None
    requested: Sequence[str] = ()
    in_part: Sequence[Claim] = ()
    set_up: Constants | None = None
    core_s: Mapping[str, float] = field(default_factory=dict)
    checksums: str = ""


def by_experiment(
    runs: Mapping[str, Sequence[Run]], rows: Sequence[Row]
) -> dict[str, "pl.DataFrame"]:
    """Return one frame per experiment from the rows of all runs, which are in their order."""
    import polars as pl

    frames, place = {}, 0
    for name, group in runs.items():
        of_it = rows[place : place + len(group)]
        frames[name] = pl.DataFrame(of_it, infer_schema_length=None)
        place += len(group)
    return frames


def chosen(paper: Paper, there_are: Sequence[Figure], numbers: Sequence[str]) -> list[Figure]:
    """Return the figures with these numbers, or all without numbers. Raises InputError.

    A number without letter stands for all panels: "7" for 7a to 7d, "4" for 4.1 to 4.4.
    """
    known = [one.number for one in there_are]
    wanted: set[str] = set()
    for number in numbers:
        panels = {one for one in known if panel_of(one, number)}
        if not panels:
            raise InputError(
                f"--figure: no figure {shown(number)} in {paper.id}{near(number, known)}"
            )
        wanted |= {number} if number in known else panels
    return [one for one in there_are if not numbers or one.number in wanted]


def panel_of(figure: str, number: str) -> bool:
    """Return True for the figure itself, and for its panels: 7a and "7 goodput" for 7, not 70."""
    rest = figure.removeprefix(number)
    is_panel = number[-1:].isdigit() and rest != figure and not rest[:1].isdigit()
    return figure == number or is_panel


def claims_about(paper: Paper, shown: Sequence[Figure]) -> list[Claim]:
    """Return the claims that are about no other figures than these."""
    return [c for c in paper.claims if not missing_figures(c, shown)]


def claims_in_part(paper: Paper, shown: Sequence[Figure]) -> list[Claim]:
    """Return the claims that are about some of these figures and about others."""
    numbers = {one.number for one in shown}
    each = ((c, missing_figures(c, shown)) for c in paper.claims)
    return [c for c, lacks in each if lacks and numbers & set(figures_of(c))]


def figures_of(claim: Claim) -> list[str]:
    """Return the numbers of the figures that a claim is about."""
    return claim.figure.split(", ")


def missing_figures(claim: Claim, shown: Sequence[Figure]) -> list[str]:
    """Return the numbers of the claim's figures that are not among these."""
    numbers = {one.number for one in shown}
    return [one for one in figures_of(claim) if one not in numbers]


def needs_figures(claim: Claim) -> str:
    """Return the text of a claim that was not judged, because not all its figures were chosen."""
    return f"needs figures {claim.figure}"
