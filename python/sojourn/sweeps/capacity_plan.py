"""Question of `sojourn.capacity`: its scenarios, needs, and the range of values."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from sojourn._sojourn import InputError, ParsedScenario, WarmState
from sojourn._util.inputs import brief, near, shown
from sojourn._util.paths import compared_link
from sojourn.engines.warm import WarmFrom, warm_state
from sojourn.scenario import named, variants
from sojourn.scenario.draft import Described, Draft, Table, canonical, set_at, value_at
from sojourn.scenario.parsing import split_setting
from sojourn.sweeps.bisection import Find
from sojourn.sweeps.capacity_result import Value
from sojourn.sweeps.columns import Standard
from sojourn.sweeps.grid import Grid, kind_of
from sojourn.sweeps.needs import Need, read_needs

SEEDS_MAX = 1000
"""Largest number of seeds of a value."""

FACTOR = 100
"""Default range: from the value of the scenario divided by this factor to the value times it."""

DIGITS_MAX = 4
"""Largest number of significant digits of an answer."""


@dataclass(frozen=True)
class Variant:
    """Scenario of one answer, with the labels of its runs."""

    qdisc: str | None
    over: str | None
    draft: Draft
    state: WarmState | None = None

    def at(self, key: str, value: Value) -> ParsedScenario:
        """Return the scenario of a run. Raises InputError if it is invalid.

        If the run starts from a warm state, the varied value is in the change that is made there.
        """
        parsed = self.cold_at(key, value)
        try:
            return parsed if self.state is None else parsed.warm_from(self.state)
        except InputError as error:
            raise InputError(f"{error} (at {brief(key)} = {value})") from None

    def cold_at(self, key: str, value: Value) -> ParsedScenario:
        """Return the scenario with the varied value, without the warm state."""
        tree = copy.deepcopy(self.draft.tree)
        try:
            set_at(tree, key, value)
            return Draft(tree, None).parse()
        except InputError as error:
            raise InputError(f"{error} (at {brief(key)} = {value})") from None


@dataclass(frozen=True)
class Plan:
    """Validated question of `capacity`."""

    key: str
    over_key: str | None
    base: Table
    variants: Sequence[Variant]
    needs: Sequence[Need]
    measure: Standard
    grid: Grid
    first: int
    last: int
    start: int
    guess: Find
    is_stated: bool
    seeds: Sequence[int]


def make_plan(
    scenario: Described,
    vary: str,
    needs: str | Sequence[str],
    *,
    qdiscs: variants.Variants | None = None,
    link: str | None = None,
    between: tuple[Value, Value] | None = None,
    over: tuple[str, Sequence[Value]] | None = None,
    find: str | None = None,
    seeds: int = 5,
    digits: int = 2,
    trust: bool = False,
    warm_from: WarmFrom | None = None,
) -> Plan:
    """Return a validated question. `capacity` has the same parameters."""
    for name, number, most in (("seeds", seeds, SEEDS_MAX), ("digits", digits, DIGITS_MAX)):
        if type(number) is not int or not 1 <= number <= most:
            raise InputError(f"--{name}: {shown(number)} is out of range, allowed: 1 to {most}")
    directions = {one.name.lower(): one for one in Find}
    if find is not None and find not in directions:
        raise InputError(f"--find: unknown direction {shown(find)}{near(find, directions)}")
    draft = Draft.read(scenario, trust=trust)
    base = canonical(draft)
    texts = [needs] if isinstance(needs, str) else list(needs)
    parsed, measure = read_needs(texts, base, link)
    every = _variants(draft, base, qdiscs, link, over, vary)
    if warm_from is not None:
        state = warm_state(warm_from, trust=trust, base=draft.parse())
        every = [replace(one, state=state) for one in every]
        base |= {"warm_from": {"at": state.at, "seed": state.seed}}
    grid, first, last, start = _range(every, vary, between, digits)
    seed = int(base["seed"])
    return Plan(
        vary, over[0] if over else None, base, every, parsed, measure, grid, first, last, start,
        directions[find] if find else _guess(base, vary), find is not None,
        range(seed, seed + seeds),
    )  # fmt: skip


def _guess(base: Table, key: str) -> Find:
    """Return the direction that is tried first: the rate of a link has a smallest value."""
    *owner, last = key.split(".")
    is_link = bool(owner) and owner[-1] in base["links"]
    return Find.SMALLEST if last == "rate" and is_link else Find.LARGEST


def _variants(
    draft: Draft,
    base: Table,
    qdiscs: variants.Variants | None,
    link: str | None,
    over: tuple[str, Sequence[Value]] | None,
    vary: str,
) -> list[Variant]:
    """Return the scenarios of all answers: each discipline with each value of the second key."""
    choices: list[tuple[str | None, Draft]] = [(None, draft)]
    if qdiscs is not None:
        try:
            tables = variants.variants(qdiscs)
        except InputError as error:
            raise InputError(f"--qdisc: {error}") from None
        links = [compared_link(base, link)] if link else named.links_of(draft.path)
        usual = variants.labels([table for _, table in tables])
        names = [label or name for (label, _), name in zip(tables, usual, strict=True)]
        if len(set(names)) < len(names):
            raise InputError("--qdisc: a discipline is given twice")
        choices = [
            (name, draft.with_qdisc(table, *links))
            for name, (_, table) in zip(names, tables, strict=True)
        ]
    key = None if over is None else over[0]
    values: Sequence[Value | None] = [None] if over is None else over[1]
    if key is not None and (key == vary or not values or len(set(values)) < len(values)):
        raise InputError(f"--over: {shown(key)} needs a key other than --vary, and distinct values")
    every = []
    for (name, one), value in product(choices, values):
        varied = one if key is None else one.set([f"{key}={value}"])
        varied.parse()
        every.append(Variant(name, None if key is None else f"{key}={value}", varied))
    return every


def _range(
    every: Sequence[Variant], key: str, between: tuple[Value, Value] | None, digits: int
) -> tuple[Grid, int, int, int]:
    """Return the grid, and the first, last and starting place of the search."""
    variant = every[0]

    def read(value: Value) -> tuple[str, float]:
        """Return kind and number of a value, as Rust reads it."""
        tree = canonical(variant.cold_at(key, value))
        try:
            return kind_of(value_at(tree, key))
        except InputError:  # a group of 0 flows is not in the canonical scenario
            return kind_of(value)

    try:
        own = _present(variant, key, has_range=between is not None)
    except InputError as error:
        raise InputError(f"--vary {brief(key)}: {error}") from None
    own = own or ("", 0.0)
    ends = [own[1] / FACTOR, own[1] * FACTOR]
    if between is not None:
        both = [read(one) for one in between]
        if both[0][0] != both[1][0]:
            raise InputError(f"--between: the ends have different units, {both[0][0]} and "
                             f"{both[1][0]}")  # fmt: skip
        if own[0] != both[0][0]:
            own = both[0][0], math.sqrt(max(1.0, both[0][1]) * both[1][1])
        ends = [one[1] for one in both]
        if not ends[0] < ends[1]:
            raise InputError(f"--between: {between[0]} to {between[1]} is not an ascending range")
    grid = Grid(own[0], digits)
    first, last = (grid.place(max(1, end)) for end in ends)
    start = min(last, max(first, grid.place(own[1])))
    if between is None:
        if variant.state is not None:  # else a key that cannot change leaves a range of one value
            variant.at(key, grid.value(start + 1))
        first = _valid_end(variant, key, grid, start, first)
        last = _valid_end(variant, key, grid, start, last)
    for one in every:
        for place in (first, last):
            one.at(key, grid.value(place))
    return grid, first, last, start


def _present(variant: Variant, key: str, *, has_range: bool) -> tuple[str, float] | None:
    """Return kind and number of the value that the scenario has.

    The result is None if it has none that can be varied, which requires a range.
    """
    value = value_at(canonical(variant.draft), key)
    if value is None:  # a key without a default, or no key at all
        tree = copy.deepcopy(variant.draft.tree)
        set_at(tree, key, 1)
        try:
            Draft(tree).parse()
        except InputError as error:
            if "unknown key" in str(error):
                raise
    try:
        return kind_of(value)
    except InputError as error:
        if isinstance(value, dict | list):
            raise
        if not has_range:
            raise InputError(f"{error}; give the range, like --between 1..100") from None
    return None


def _valid_end(variant: Variant, key: str, grid: Grid, start: int, end: int) -> int:
    """Return the last place from `start` towards `end` at which the scenario is valid."""

    def valid(place: int) -> bool:
        try:
            variant.at(key, grid.value(place))
        except InputError:
            return False
        return True

    if valid(end):
        return end
    good, bad = start, end
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if valid(middle) else (good, middle)
    return good


def read_over(text: str) -> tuple[str, list[Value]]:
    """Return the second key and its values from `KEY=A,B,...`."""
    key, _ = split_setting(text, "--over", "bottleneck.rate=5mbit,10mbit")
    return key, [*variants.split(text.partition("=")[2])]


def read_between(text: str) -> tuple[str, str]:
    """Return both ends of a range like `1..100`."""
    first, dots, last = text.partition("..")
    if not dots or not first.strip() or not last.strip():
        raise InputError(f"--between: {shown(text)} is not a range like 1..100 or 1mbit..50mbit")
    return first.strip(), last.strip()
