"""Claims of a paper, and the settings that the paper leaves open.

Both are fixed before the runs. `parts` has the rules of a claim's parts, `judging` the rules of the
verdicts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn_lab.reproduction.parts import Part

if TYPE_CHECKING:
    import polars as pl

Runs: TypeAlias = Mapping[str, "pl.DataFrame"]
"""Rows of each experiment, by its name: labels, seed, measured values."""

Change: TypeAlias = Callable[["pl.DataFrame"], "pl.DataFrame"]
"""A function of the rows of one experiment."""


class NoRunsError(KeyError):
    """Runs that a claim or a figure needs do not exist."""


@dataclass(frozen=True)
class Overlay:
    """Rows of the experiment `varied` with these labels, in place of another experiment's.

    They replace the rows that have the same labels otherwise; what a setting does not affect is
    taken from the base. Only seeds that both have remain, so that all comparisons stay paired, and
    only those values of the axes `only` that ran with the setting. `prepare` is applied to the rows
    of `varied` first.
    """

    varied: str
    labels: Mapping[str, Any]
    only: Sequence[str] = ()
    prepare: Change | None = None

    def replace_rows(self, base: str, runs: Runs) -> "pl.DataFrame":
        """Return the rows of the experiment `base`. Raises NoRunsError if no rows match."""
        import json

        import polars as pl

        whole, rows = runs[base], runs[self.varied]
        if self.prepare:
            rows = self.prepare(rows)
        for name, value in self.labels.items():
            rows = rows.filter(pl.col(name) == value)
        if not len(rows):
            raise NoRunsError(f"no runs with {self.labels}")
        axes = json.loads(whole["axes"][0])
        for axis in self.only:
            whole = whole.filter(pl.col(axis).is_in(rows[axis].unique().to_list()))
        kept = whole.join(rows.select(axes), on=axes, how="anti")
        both = set(rows["seed"]) & (set(kept["seed"]) or set(rows["seed"]))
        columns = [name for name in whole.columns if name in rows.columns]
        merged = pl.concat([kept.select(columns), rows.select(columns)], how="diagonal_relaxed")
        return merged.filter(pl.col("seed").is_in(sorted(both)))


def overlay(
    varied: str, *, only: Sequence[str] = (), prepare: Change | None = None, **labels: Any
) -> Overlay:
    """Return the overlay of the rows of `varied` with these labels."""
    return Overlay(varied, labels, tuple(only), prepare)


@dataclass(frozen=True)
class Setting:
    """A value, other than ours, of something that the paper does not state.

    `replaces` maps the name of an experiment to an overlay of its rows, or to a function of them,
    such as one that reads a measure differently. Every claim that needs one of these experiments is
    judged with the setting, or only `claims` (by id) if there are any.
    """

    name: str
    replaces: Mapping[str, Overlay | Change]
    claims: Sequence[str] = ()

    def concerns(self, claim: "Claim") -> bool:
        """Return True if the claim is judged with this setting."""
        listed = not self.claims or claim.id in self.claims
        return listed and bool(set(claim.needs) & set(self.replaces))

    def needs(self, claim: "Claim") -> tuple[str, ...]:
        """Return the names of the experiments that judging this claim with the setting reads."""
        replaced = [self.replaces[name] for name in claim.needs if name in self.replaces]
        return tuple(one.varied for one in replaced if isinstance(one, Overlay))

    def apply(self, runs: Runs, claim: "Claim") -> Runs:
        """Return the runs that the claim needs, with this setting."""
        changed = dict(runs)
        for name, one in self.replaces.items():
            if name in claim.needs:
                if isinstance(one, Overlay):
                    changed[name] = one.replace_rows(name, runs)
                else:
                    changed[name] = one(runs[name])
        return changed


@dataclass(frozen=True)
class Claim:
    """A claim: its id, its content in our words, and the figure that it is about.

    `stated` is the number or relation of the paper. `how` describes the measurement and its
    tolerance. `check` measures it, from the experiments in `needs`. Without `check` the claim is
    not testable, and `how` gives the reason. `settings` are the settings that concern the claim
    (see `Paper.claims`); `why` says in at most ten words why the claim does not hold wholly.
    """

    id: str
    says: str
    figure: str
    stated: str
    how: str
    check: Callable[[Runs], Sequence[Part]] | None = None
    needs: Sequence[str] = ()
    settings: Sequence[Setting] = ()
    why: str = ""

    @property
    def every_need(self) -> tuple[str, ...]:
        """Names of all experiments that judging this claim reads."""
        return (*self.needs, *(name for one in self.settings for name in one.needs(self)))


def values(frame: "pl.DataFrame", column: str, **labels: Any) -> npt.NDArray[Any]:
    """Return a column of the runs with these labels, in the order of their seeds.

    Raises NoRunsError if there are none: a claim that measures nothing is an error.
    """
    import polars as pl

    chosen = frame
    for name, value in labels.items():
        chosen = chosen.filter(pl.col(name) == value)
    if not len(chosen):
        raise NoRunsError(f"no runs with {labels}")
    column_values: npt.NDArray[Any] = chosen.sort("seed")[column].to_numpy()
    return column_values


def mean(frame: "pl.DataFrame", column: str, **labels: Any) -> float:
    """Return the mean over seeds of a column of the runs with these labels."""
    return float(np.mean(values(frame, column, **labels)))
