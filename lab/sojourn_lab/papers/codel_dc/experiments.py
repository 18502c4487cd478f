"""Experiments of `codel_dc`."""

from sojourn_lab.papers.codel_dc.changed import SAMPLED, SCHEMES, sensitivities, varied
from sojourn_lab.papers.codel_dc.runs import (
    CODEL,
    LAWS,
    Table,
    long_flows,
    of_answers,
    of_flows,
    of_port,
    over_time,
    poisson,
    queries,
    switch,
)
from sojourn_lab.reproduction.paper import Experiment, Point

SIZES = (10, 50, 100)
COUNTS = (8, 16, 32, 64, 128)
TARGETS = (0.01, 0.03, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
INTERVALS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 10.0)
LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90)

NAMES = ("droptail", "red", "codel", "red-auto")


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the paper's experiments and the sensitivities."""
    seeds, end = (5, "2600ms") if full else (3, "600ms")
    targets = TARGETS if full else (0.01, 0.1, 0.15, 0.3, 0.4, 1.0)
    spans = INTERVALS if full else (0.1, 0.3, 0.75, 2.0, 10.0)
    counts, loads = (COUNTS, LOADS) if full else (COUNTS[::2], LOADS[::4])
    one = queries(100, number=1)
    burst = {"sample": "1ms", "sample_flows": False}
    fine = {**burst, "sample": "50us"}
    busy: list[Point] = [
        ({"scheme": s, "load": x}, switch(LAWS[s], 40, poisson(x), "3100ms" if full else "1100ms"))
        for s in SCHEMES
        for x in loads
    ]
    return {
        "targets": Experiment(
            [
                ({"target": t, "flows": n}, long_flows(t, n, 3 if full else 2))
                for n in (1, 4)
                for t in targets
            ],
            of_port,
            3 if full else 2,
        ),
        "intervals": Experiment(
            [
                ({"interval": t}, switch(_every(t), 40, queries(50), "1100ms" if full else end))
                for t in spans
            ],
            of_answers,
            seeds,
        ),
        "first drops": Experiment(
            [
                ({"interval": t}, switch(_every(t), 40, queries(50, number=1), "200ms") | fine)
                for t in spans
            ],
            over_time,
            seeds,
        ),
        "incast": Experiment(
            [
                ({"scheme": s, "kB": kb}, switch(LAWS[s], 40, queries(kb), end) | SAMPLED)
                for s in NAMES
                for kb in SIZES
            ],
            of_answers,
            seeds,
        ),
        "burst": Experiment(
            [({"scheme": s}, switch(LAWS[s], 40, one, "300ms") | burst) for s in NAMES],
            over_time,
            2 * seeds,
        ),
        "servers": Experiment(
            [
                (
                    {"scheme": s, "servers": n},
                    switch(LAWS[s], n, queries(1000 / n), end) | SAMPLED,
                )
                for s in SCHEMES
                for n in counts
            ],
            of_answers,
            seeds,
        ),
        "caption": Experiment(
            [
                ({"scheme": s, "servers": n}, switch(LAWS[s], n, queries(1000), end))
                for s in SCHEMES
                for n in (8, 16)
            ],
            of_answers,
            2,
        ),
        "loads": Experiment(busy, of_flows, seeds),
        "half load": Experiment(
            [
                (labels, {**tree, "sample": "20ms", "sample_flows": False})
                for labels, tree in busy
                if labels["load"] == 50
            ],
            over_time,
            seeds,
        ),
        **varied(full, SIZES, counts),
        **sensitivities(full),
    }


def _every(interval_ms: float) -> Table:
    return {**CODEL, "interval": f"{interval_ms * 1000:.0f}us"}
