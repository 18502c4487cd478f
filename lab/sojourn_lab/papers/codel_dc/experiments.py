"""Experiments of `codel_dc`."""

from sojourn_lab.papers.codel_dc import model, open_question
from sojourn_lab.papers.codel_dc.changed import sensitivities
from sojourn_lab.papers.codel_dc.runs import (
    FINE,
    HALF_SAMPLED,
    SAMPLED,
    long_flows,
    of_answers,
    of_flows,
    of_port,
    over_time,
    poisson,
    queries,
    switch,
)
from sojourn_lab.papers.codel_dc.set_up import BASE, NAMES, SCHEMES, SetUp, Table
from sojourn_lab.papers.codel_dc.settings import varied
from sojourn_lab.reproduction.paper import Experiment, Point

SIZES = (10, 50, 100)
COUNTS = (8, 16, 32, 64, 128)
TARGETS = (0.01, 0.03, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
INTERVALS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 10.0)
LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


def scenarios(full: bool, set_up: SetUp = BASE) -> dict[str, Experiment]:
    """Return the paper's experiments, its open question, the settings and sensitivities."""
    counts, loads = (COUNTS, LOADS) if full else (COUNTS[::2], LOADS[::4])
    return {
        **model.experiments(full, set_up),
        **of_model(full, set_up),
        **of_queries(full, set_up, counts),
        **of_short_flows(full, set_up, loads),
        **open_question.experiments(full, set_up),
        **varied(full, set_up, SIZES, counts, loads),
        **sensitivities(full, set_up),
    }


def of_model(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the experiments of figures 3 and 4: CoDel's target and interval."""
    targets = TARGETS if full else (0.01, 0.1, 0.15, 0.3, 0.4, 1.0)
    spans = INTERVALS if full else (0.1, 0.3, 0.75, 2.0, 10.0)
    seeds, end = (5, "1100ms") if full else (3, "600ms")

    def every(interval_ms: float, number: int | None, until: str) -> Table:
        law = {**set_up.codel, "interval": f"{interval_ms * 1000:.0f}us"}
        source = queries(50, set_up, **({} if number is None else {"number": number}))
        return switch(law, set_up.servers, source, until, set_up=set_up)

    return {
        "targets": Experiment(
            [
                (
                    {"target": t, "flows": n},
                    long_flows(f"{1000 * t:.0f}us", n, "3s" if full else "2s", set_up),
                )
                for n in (1, 4)
                for t in targets
            ],
            of_port,
            3 if full else 2,
        ),
        "intervals": Experiment(
            [({"interval": t}, every(t, None, end)) for t in spans], of_answers, seeds
        ),
        "first drops": Experiment(
            [({"interval": t}, every(t, 1, "200ms") | FINE) for t in spans], over_time, seeds
        ),
    }


def of_queries(full: bool, set_up: SetUp, counts: tuple[int, ...]) -> dict[str, Experiment]:
    """Return the experiments of figures 5, 6, 7, 8a, 9 and 10: queries."""
    seeds, end = (5, "2600ms") if full else (3, "600ms")

    def tree(s: str, servers: int, kb: float, until: str, number: int | None = None) -> Table:
        source = queries(kb, set_up, **({} if number is None else {"number": number}))
        return switch(set_up.laws[s], servers, source, until, set_up=set_up) | SAMPLED

    n = set_up.servers
    return {
        "incast": Experiment(
            [({"scheme": s, "kB": kb}, tree(s, n, kb, end)) for s in NAMES for kb in SIZES],
            of_answers,
            seeds,
        ),
        "burst": Experiment(
            [({"scheme": s}, tree(s, n, 100, "300ms", 1)) for s in NAMES], over_time, 2 * seeds
        ),
        "servers": Experiment(
            [
                ({"scheme": s, "servers": n}, tree(s, n, 1000 / n, end))
                for s in SCHEMES
                for n in counts
            ],
            of_answers,
            seeds,
        ),
        "caption": Experiment(
            [
                ({"scheme": s, "servers": n}, tree(s, n, 1000, end))
                for s in SCHEMES
                for n in (8, 16)
            ],
            of_answers,
            2,
        ),
    }


def of_short_flows(full: bool, set_up: SetUp, loads: tuple[int, ...]) -> dict[str, Experiment]:
    """Return the experiments of figures 8b and 11: short flows."""
    seeds, end = (5, "3100ms") if full else (3, "1100ms")
    busy: list[Point] = [
        (
            {"scheme": s, "load": x},
            switch(set_up.laws[s], set_up.servers, poisson(x, set_up), end, set_up=set_up),
        )
        for s in SCHEMES
        for x in loads
    ]
    half = [(labels, {**tree, **HALF_SAMPLED}) for labels, tree in busy if labels["load"] == 50]
    busy = [(labels, {**tree, **SAMPLED}) for labels, tree in busy]
    return {
        "loads": Experiment(busy, of_flows, seeds),
        "half load": Experiment(half, over_time, seeds),
    }
