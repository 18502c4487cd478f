"""Measure the overhead of a sweep: 1,000 short runs on one core, on two, and the engine alone.

`make bench-sweep` prints the ratios, in under a minute; reports/performance.md quotes them. The
overhead is measured again with runs of about 1 ms, in processor time, without and with a store.
"""

import json
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn.scenario.draft import Draft
from sojourn.sweeps.spec import sweep

LAWS = ("droptail", "codel", "red", "pie", "hred")
COUNTS = (1, 2, 4, 8)
SEEDS = 50
BASE: dict[str, Any] = {
    "duration": "200s",
    "warmup": "5s",
    "links": {"up": {"rate": "10mbit", "delay": "5ms", "qdisc": "codel"}},
    "flows": [{"name": "bulk", "count": 3, "path": ["up"], "rtt": "30ms", "tcp": "newreno"}],
}


def swept(jobs: int) -> float:
    """Return the wall time of the sweep in seconds."""
    axes = {"up.qdisc": list(LAWS), "n": {"set": "bulk.count", "values": list(COUNTS)}}
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        table = sweep(BASE, axes, seeds=SEEDS, out=Path(directory) / "store", jobs=jobs)
        took = time.perf_counter() - start
    assert table.height == len(LAWS) * len(COUNTS) * SEEDS
    return took


def engine() -> float:
    """Return the wall time in seconds of the same runs in the engine alone, one after the other."""
    start = time.perf_counter()
    for law, count in product(LAWS, COUNTS):
        tree = json.loads(json.dumps(BASE))
        tree["links"]["up"]["qdisc"], tree["flows"][0]["count"] = law, count
        texts = [Draft.read({**tree, "seed": seed}).to_json() for seed in range(1, SEEDS + 1)]
        for text in texts:
            simulate(text)
    return time.perf_counter() - start


def simulate(text: str) -> None:
    """Simulate a scenario, given as JSON, in the engine alone."""
    _sojourn.ParsedScenario(text).simulate()


def timed(work: Callable[[], None]) -> float:
    """Return the processor time of a call in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def shortest() -> tuple[float, float, float]:
    """Return the processor time in seconds of 1,000 runs of about 1 ms: the best of three.

    The three times are for the engine alone, a sweep without a store, and a sweep with one. The
    simulated time is chosen so that a run takes 1 ms on this machine.
    """
    tree = {**BASE, "duration": "10s", "warmup": "0s"}
    tree["flows"] = [{**BASE["flows"][0], "count": 1}]
    ten_s = min(timed(lambda: simulate(Draft.read(tree).to_json())) for _ in range(100))
    tree["duration"] = f"{round(10 * 1e-3 / ten_s)}s"
    texts = [Draft.read({**tree, "seed": seed}).to_json() for seed in range(1, 1001)]
    axes = {"up.qdisc": ["codel"]}
    best = [float("inf")] * 3
    for _ in range(3):
        times = [time.process_time()]
        for text in texts:
            simulate(text)
        times.append(time.process_time())
        sweep(tree, axes, seeds=1000, jobs=1)
        times.append(time.process_time())
        with tempfile.TemporaryDirectory() as directory:
            sweep(tree, axes, seeds=1000, out=Path(directory) / "store", jobs=1)
        times.append(time.process_time())
        best = [min(old, b - a) for old, a, b in zip(best, times, times[1:], strict=False)]
    return best[0], best[1], best[2]


def main() -> None:
    """Measure and print."""
    runs = len(LAWS) * len(COUNTS) * SEEDS
    alone, one, two = engine(), swept(1), swept(2)
    print(f"{runs} runs: engine alone {alone:.2f} s, {alone / runs * 1e3:.1f} ms each")
    print(f"a sweep on one core {one:.2f} s: {(one - alone) / runs * 1e3:.2f} ms more per run")
    print(f"on two cores {two:.2f} s: {one / two:.2f} times as fast, {one / two / 2:.0%} of twice")
    engine_s, plain_s, stored_s = shortest()
    print(
        f"1000 runs of {engine_s:.2f} ms: a sweep takes {plain_s / engine_s:.2f} times the engine,"
    )
    print(f"{stored_s / engine_s:.2f} times with a store (processor time)")


if __name__ == "__main__":
    main()
