"""Experiments of the paper on HRED."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from sojourn._util.units import seconds
from sojourn_lab.papers.hred.checks import BUFFERS, RESPONDING, RULES, STATED_SHARES
from sojourn_lab.papers.hred.common import (
    PAPER,
    TESTBED,
    SetUp,
    dumbbell,
    gateway,
    scheme,
    step,
    two_groups,
    web,
)
from sojourn_lab.papers.hred.measures import over_time, response, shares, steady
from sojourn_lab.reproduction.paper import Experiment, Point

WITH_WEB = ("red", "blue", "pi", "avq", "hred")
"""Disciplines of figure 8."""

FEW = (100, 300, 600)
"""Traffic T of the tables and of quick mode."""


def points(of: Callable[..., dict[str, Any]], **axes: Iterable[Any]) -> list[Point]:
    """Return the points of a grid: `of` is called with the axes' values, in their order."""
    grid = product(*axes.values())
    return [(dict(zip(axes, one, strict=True)), of(*one)) for one in grid]


@dataclass(frozen=True)
class Plan:
    """Scenarios of the paper by their axes, for the full or the quick mode and a set-up."""

    full: bool
    set_up: SetUp = PAPER

    @property
    def traffic(self) -> Iterable[int]:
        """Traffic T of the sweep."""
        return range(100, 601, 100) if self.full else FEW

    @property
    def rates(self) -> Iterable[int]:
        """Web sessions per second of figure 8."""
        return (0, 10, 25, 50) if self.full else (0, 50)

    @property
    def sizes(self) -> Iterable[int]:
        """Sizes of the step of the load, in per cent."""
        return (10, 20, 30, 40, 50) if self.full else (30, 50)

    @property
    def long_flows(self) -> Iterable[int]:
        """Long flows of the testbed."""
        return (50, 60, 80, 100, 120) if self.full else (50, 80, 120)

    @property
    def span(self) -> dict[str, Any]:
        """Duration and warm-up in seconds."""
        warmup, measured = seconds(self.set_up.warmup), seconds(self.set_up.measured)
        if not self.full:
            warmup, measured = 0.12 * warmup, 0.24 * measured
        return {"end": warmup + measured, "warmup": warmup}

    @property
    def brief(self) -> dict[str, Any]:
        """The same for tables without claims: a shorter warm-up."""
        return {"end": 100, "warmup": 50} if self.full else {"end": 30, "warmup": 15}

    @property
    def times(self) -> tuple[float, float, float]:
        """Times of the two changes of the load, and of the end, in seconds."""
        up = seconds(self.set_up.step_up) * (1 if self.full else 0.4)
        return up, 1.5 * up, 2 * up

    def qdisc(self, name: str, kb: int, **other: Any) -> dict[str, Any]:
        """Return a discipline."""
        return scheme(name, kb, self.set_up, **other)

    def sweep(self, name: str, kb: int, t: int, **other: Any) -> dict[str, Any]:
        """Return traffic T over a buffer of `kb` kB."""
        sessions = web(t / 12, set_up=self.set_up)
        qdisc = self.qdisc(name, kb, **other)
        return dumbbell(qdisc, t, sessions, set_up=self.set_up, **self.span)

    def with_web(self, name: str, rate: float, **other: Any) -> dict[str, Any]:
        """Return FTPs and `rate` web sessions per second."""
        sessions = web(rate, set_up=self.set_up) if rate else None
        qdisc = self.qdisc(name, self.set_up.kb, **other)
        return dumbbell(qdisc, self.set_up.ftps, sessions, set_up=self.set_up, **self.span)

    def web_on(self, name: str, source: dict[str, Any], **other: Any) -> dict[str, Any]:
        """Return FTPs, and web sessions from the time of the step on."""
        up, _, end = self.times
        own = self.set_up
        sessions = web(own.web_rate, start=f"{up:g}s", set_up=own, **source)
        qdisc = self.qdisc(name, own.kb, **other)
        when: dict[str, Any] = {"end": end, "warmup": up, "sample": "50ms"}
        return dumbbell(qdisc, own.ftps, sessions, set_up=own, **when)

    def rem(self, t: int, **other: Any) -> dict[str, Any]:
        """Return REM with 500 kB, sampled."""
        return {**self.sweep("rem", 500, t, **other), "sample": "50ms"}

    def step(self, name: str, size: int, **other: Any) -> dict[str, Any]:
        """Return a step of the load."""
        return step(self.qdisc(name, self.set_up.kb, **other), size, *self.times, self.set_up)

    def two(self, name: str, kb: int = 0, **other: Any) -> dict[str, Any]:
        """Return the two groups of table 2."""
        qdisc = self.qdisc(name, kb or self.set_up.kb, **other)
        return two_groups(qdisc, set_up=self.set_up, **self.span)

    def bed(self, name: str, x: int, **other: Any) -> dict[str, Any]:
        """Return the testbed with `x` long flows; `tcp` in `other` replaces the senders."""
        tcp = other.pop("tcp", None)
        qdisc = self.qdisc(name, self.set_up.bed_kb, **{**TESTBED.get(name, {}), **other})
        return gateway(qdisc, x, **self.span, tcp=tcp, set_up=self.set_up)


def of_the_paper(plan: Plan, seeds: int = 3) -> dict[str, Experiment]:
    """Return the paper's experiments."""
    sweep = points(plan.sweep, qdisc=RULES, buffer=BUFFERS, T=plan.traffic)
    sweep += points(plan.sweep, qdisc=["hred"], buffer=(200, 1000), T=plan.traffic)
    sweep += points(plan.sweep, qdisc=["droptail"], buffer=[300], T=FEW)
    return {
        "sweep": Experiment(sweep, steady, seeds),
        "rem": Experiment(points(plan.rem, T=FEW), over_time, seeds),
        "web_on": Experiment(
            points(lambda q: plan.web_on(q, {}), qdisc=RESPONDING), over_time, seeds
        ),
        "web": Experiment(
            points(plan.with_web, qdisc=WITH_WEB, web=plan.rates),
            steady,
            seeds,
        ),
        "shares": Experiment(points(plan.two, qdisc=STATED_SHARES), shares, seeds),
        "step": Experiment(points(plan.step, qdisc=RESPONDING, size=plan.sizes), response, seeds),
        "testbed": Experiment(points(plan.bed, qdisc=RULES, flows=plan.long_flows), steady, seeds),
    }
