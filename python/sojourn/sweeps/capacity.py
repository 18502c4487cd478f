"""Capacity: the largest or smallest value of a key at which a scenario meets requirements."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn._util.units import counted
from sojourn.engines.warm import WarmFrom
from sojourn.result import folders
from sojourn.scenario import describe, variants
from sojourn.scenario.advice import warn
from sojourn.scenario.draft import Described, canonical
from sojourn.sweeps import estimates
from sojourn.sweeps.bisection import Find, Limits, Search, search
from sojourn.sweeps.capacity_plan import Plan, make_plan
from sojourn.sweeps.capacity_result import CapacityAnswer, CapacityResult, Probe, Value
from sojourn.sweeps.needs import together
from sojourn.sweeps.notes import write_note
from sojourn.sweeps.runner import Run, campaign
from sojourn.sweeps.store import Store

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")


@public
def capacity(
    scenario: Described,
    vary: str,
    needs: str | Sequence[str],
    *,
    qdiscs: variants.Variants | None = None,
    link: str | None = None,
    between: tuple[Value, Value] | None = None,
    over: tuple[str, Sequence[Value]] | None = None,
    find: Literal["largest", "smallest"] | None = None,
    seeds: int = 5,
    digits: int = 2,
    out: str | Path | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: bool = False,
    trust: bool = False,
    warm_from: WarmFrom | None = None,
) -> CapacityResult:
    """Find the largest or smallest value of a key at which a scenario meets requirements.

    The value is found by doubling and bisection, with several seeds at each value. A value meets a
    need if the estimate over its seeds does: a percentile over the values of all runs together, or
    the mean over the runs, as in the tables of sweeps.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario, the path of a .toml or .json file, or a name like "rrul".
    vary : str
        Key to vary, with a whole number or a quantity as its value, like "upload.count",
        "bottleneck.rate" or "bottleneck.qdisc.limit".
    needs : str or sequence of str
        Requirements, like "call.delay_p99 < 30ms" or "jain_index(group=web) > 0.9": a column of
        `sojourn.sweep` with or without its unit, or a metric with arguments. All must be met.
    qdiscs : list, mapping or str, optional
        Disciplines of `link`, as in `sojourn.compare`. The default is the scenario's.
    link : str, optional
        The link whose columns have no prefix, and whose discipline `qdiscs` replaces.
    between : tuple, optional
        First and last value of the search. The default is a hundredth of the scenario's value to a
        hundred times as much.
    over : tuple of str and sequence, optional
        A second key and its values: there is an answer for each of them, which together are a
        frontier.
    find : {"largest", "smallest"}, optional
        The answer is the largest value that meets the needs, or the smallest. The default is found:
        the rate of a link has a smallest value, and other keys a largest one, unless the runs show
        the opposite.
    seeds : int, optional
        Number of runs of each value, from the scenario's seed up.
    digits : int, optional
        Number of significant digits of the values that are tried, 1 to 4.
    out : str or Path, optional
        Directory in which each run is stored, as by `sojourn.sweep`. Runs that are there are not
        repeated, so an interrupted search continues.
    force : bool, optional
        True replaces the runs of another scenario in `out`.
    jobs : int, optional
        Number of threads. The default is the number of cores.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.
    trust : bool, optional
        True if Python code that the file of the scenario names may run. The default refuses it.
    warm_from : str, Path or Simulation, optional
        Warm state from which all runs start, as in `sweep`. `vary` and `over` can then be rates,
        delays, impairments and parameters of disciplines, and not the number of flows. Intervals
        have the variation after the state only.

    Returns
    -------
    CapacityResult
        The answers with their intervals, and all simulated values.

    Raises
    ------
    InputError
        If an argument is invalid, or the scenario is invalid at an end of `between`.
    RunError
        If runs failed.

    Examples
    --------
    >>> import sojourn as sj
    >>> uplink = {
    ...     "duration": "3s",
    ...     "links": {"up": {"rate": "10mbit", "qdisc": "codel"}},
    ...     "flows": [{"name": "bulk", "path": ["up"], "rtt": "40ms"}],
    ... }
    >>> str(sj.capacity(uplink, "bulk.count", "sojourn_mean < 20ms", between=(1, 16), seeds=1))
    '2'
    """
    plan = make_plan(
        scenario, vary, needs, qdiscs=qdiscs, link=link, between=between, over=over, find=find,
        seeds=seeds, digits=digits, trust=trust, warm_from=warm_from,
    )  # fmt: skip
    return run_capacity(plan, out=out, force=force, jobs=jobs, progress=progress)


def run_capacity(
    plan: Plan,
    *,
    out: str | Path | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: bool = False,
) -> CapacityResult:
    """Answer a validated question. `capacity` has the same parameters."""
    warn([canonical(one.draft) for one in plan.variants])
    if out is None:
        return _Searching(plan, None, jobs, progress).run()
    is_other = folders.claim(Path(out), "sweep", folders.identity_of(plan.base), force=force)
    if is_other:
        store = Store(out)
        with store.writing():
            store.clear()
    _note(Path(out), plan)
    return _Searching(plan, Path(out), jobs, progress).run()


def _note(directory: Path, plan: Plan) -> None:
    """Write the scenario and the key to a file in the store, as a sweep does."""
    places = (plan.first, plan.last)
    ends = [canonical(one.cold_at(plan.key, plan.grid.value(n))) for one in plan.variants
            for n in places]  # fmt: skip
    axes: dict[str, list[str]] = {plan.key: []}
    axes |= {plan.over_key: []} if plan.over_key else {}
    names = list(dict.fromkeys(one.qdisc for one in plan.variants if one.qdisc))
    axes |= {"qdisc": names} if names else {}
    write_note(
        directory,
        scenario=plan.base,
        axes=axes,
        varied=describe.varied(plan.base, ends),
        seeds=[min(plan.seeds), max(plan.seeds)],
        until=None,
        measured=plan.measure.identity,
    )


class _Searching:
    """Searches of all answers, in steps: each step runs the next value of every search."""

    def __init__(self, plan: Plan, out: Path | None, jobs: int | None, progress: bool) -> None:
        self._plan, self._out, self._jobs, self._progress = plan, out, jobs, progress
        self._probes: list[dict[int, Probe]] = [{} for _ in plan.variants]
        self._runs = self._executed = 0

    def run(self) -> CapacityResult:
        """Run all searches to their end."""
        plan = self._plan
        searches: dict[int, Search] = {
            n: search(
                plan.grid, plan.first, plan.last, plan.start, plan.guess, is_stated=plan.is_stated
            )
            for n in range(len(plan.variants))
        }
        limits: dict[int, Limits] = {}
        due = {n: next(one) for n, one in searches.items()}
        while due:
            self._simulate(due)
            following: dict[int, int] = {}
            for n, place in due.items():
                try:
                    following[n] = searches[n].send(self._probes[n][place].verdict)
                except StopIteration as end:
                    limits[n] = end.value
            due = following
        answers = [self._answer(n, limits[n]) for n in range(len(plan.variants))]
        return CapacityResult(
            plan.key, plan.over_key, plan.needs, answers, len(plan.seeds), self._runs,
            self._executed, plan.base, plan.measure.link,
        )  # fmt: skip

    def _simulate(self, due: Mapping[int, int]) -> None:
        """Run all seeds of the next place of each search."""
        import polars as pl

        plan, runs = self._plan, []
        for n, place in due.items():
            variant, value = plan.variants[n], plan.grid.value(place)
            labels: dict[str, Value] = {plan.key: value}
            if variant.over is not None and plan.over_key is not None:
                labels[plan.over_key] = variant.over.partition("=")[2]
            if variant.qdisc is not None:
                labels["qdisc"] = variant.qdisc
            parsed = variant.at(plan.key, value)
            runs += [Run(labels, parsed.with_seed(seed), plan.measure) for seed in plan.seeds]
        done = campaign(runs, store=self._out, jobs=self._jobs, progress=self._progress).complete()
        self._runs += len(runs)
        self._executed += done.executed
        count = len(plan.seeds)
        for k, (n, place) in enumerate(due.items()):
            rows = pl.DataFrame(done.rows[k * count : (k + 1) * count], infer_schema_length=None)
            results = tuple(need.estimate(rows) for need in plan.needs)
            verdicts = [need.verdict(one) for need, one in zip(plan.needs, results, strict=True)]
            value = plan.grid.value(place)
            probe = Probe(value, plan.grid.number(place), results, together(verdicts))
            self._probes[n][place] = probe

    def _answer(self, n: int, limits: Limits) -> CapacityAnswer:
        """Return the answer of a search that ended."""
        plan, probes = self._plan, self._probes[n]

        def value(place: int | None) -> Value | None:
            return None if place is None else plan.grid.value(place)

        is_bounded = limits.beyond is not None
        ends = sorted(place for place in (limits.sure, limits.possible) if place is not None)
        low, high = ends if len(ends) == 2 and is_bounded else (None, None)
        beyond = probes.get(limits.beyond) if limits.beyond is not None else None
        limited = [
            str(need)
            for need, one in zip(plan.needs, beyond.estimates if beyond else (), strict=False)
            if not need.verdict(one).is_met
        ]
        remarks = []
        if limits.odd:
            met, failed = map(value, limits.odd)
            remarks.append(f"not monotone: met at {met}, although not at {failed}")
        if not any(one.verdict.has_interval for one in probes.values()):
            remarks.append(f"no interval: {self._lacking(next(iter(probes.values())))}")
        empty = [
            str(need)
            for k, need in enumerate(plan.needs)
            if any(one.estimates[k].value is None for one in probes.values())
        ]
        remarks += [f"no value of {need} at some values, which counts as not met" for need in empty]
        variant, answer = plan.variants[n], value(limits.value)
        if answer is None and plan.grid.kind == "count" and limits.find is Find.LARGEST:
            answer = 0 if plan.first == 1 else None
        return CapacityAnswer(
            variant.qdisc, variant.over, limits.find.name.lower(), answer, value(low),
            value(high), is_bounded, limited, remarks,
            [probes[place] for place in sorted(probes)],
            None if limits.value is None else probes[limits.value], beyond,
        )  # fmt: skip

    def _lacking(self, probe: Probe) -> str:
        """Return why the estimates of a value have no interval."""
        for need, one in zip(self._plan.needs, probe.estimates, strict=True):
            if one.low is None and not estimates.may_have_interval(need.column):
                return f"{need.name} has none"
            if one.low is None and one.notes:
                return f"{need.name} has {', '.join(one.notes)}, give more seeds or a longer run"
        return f"{counted(len(self._plan.seeds), 'seed')} or the column has none, give more seeds"
