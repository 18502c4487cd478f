"""Measure how often 95 % intervals contain the truth, over 1,000 seeds (`make coverage`).

Batches of seeds are drawn at random from the runs of 1,000 seeds under two disciplines. The truth
is the estimate from all of them. `lab/tests/test_coverage.py` does the same with stored runs.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sojourn as sj
from sojourn.result.estimate import Estimate
from sojourn.result.statistics import percentile, runs_for_interval
from sojourn.result.steady_state import steady
from sojourn.scenario.draft import Draft
from sojourn.sweeps import estimates
from sojourn.sweeps.rounds import LEAST, Until, narrow
from sojourn_lab import ROOT

SEEDS, BATCHES = 1000, 1000
QDISCS = ["droptail", "codel"]
SIZES = (5, 20)

LOWEST = 0.93 - 2 * (0.95 * 0.05 / BATCHES) ** 0.5
"""Smallest coverage: 0.93, less two standard errors of `BATCHES` batches."""

HALF = 0.5
"""Smallest share of batches with an interval whose coverage counts."""

MEANS = (
    "utilisation", "loss_rate", "sojourn_mean_s", "queue_mean_bytes", "dropped_packets",
    "bulk.goodput_bps", "bulk.timeouts", "bulk.retransmitted_packets", "short.fct_mean_s",
    "short.completed", "short.unfinished", "short.timeouts", "call.loss_rate", "call.goodput_bps",
)  # fmt: skip
"""Columns that are means over runs."""

PERCENTILES = (
    "sojourn_p50_s", "sojourn_p95_s", "sojourn_p99_s", "short.fct_p50_s", "short.fct_p99_s",
    "call.delay_p99_s",
)  # fmt: skip
"""Columns that are percentiles over the values of all runs."""

NO_INTERVAL = ("sojourn_max_s", "bulk.jain", "short.jain")
"""Columns without an interval."""

UNTIL = ("sojourn_mean_s", "loss_rate", "short.fct_mean_s", "sojourn_p99_s", "short.fct_p50_s")
"""Columns for the stopping rule."""


def base() -> dict[str, Any]:
    """Return the scenario of examples/sweep.toml, with CUBIC in the profile rfc.

    The coverage that docs/reference/metrics.md states was measured with it.
    """
    tree: dict[str, Any] = Draft.read(ROOT / "examples/sweep-base.toml").tree
    tcp = {"name": "cubic", "profile": "rfc"}
    return {**tree, "flows": [{**flow, "tcp": tcp} for flow in tree["flows"]]}


def scenario() -> dict[str, Any]:
    """Return the scenario of `base` with a call."""
    tree = base()
    source = {"name": "cbr", "rate": "64kbit", "packet": "200B"}
    call = {"name": "call", "source": source, "path": ["bottleneck"], "rtt": "uniform(30ms, 80ms)"}
    return {**tree, "flows": [*tree["flows"], call]}


def runs(seeds: int) -> pl.DataFrame:
    """Simulate `seeds` seeds under each discipline."""
    axes = {"qdisc": {"set": "bottleneck.qdisc", "values": QDISCS}}
    return sj.sweep(scenario(), axes, seeds=seeds)


def hit(estimate: Estimate, truth: float) -> bool | None:
    """Return True if the interval of `estimate` contains the truth; None without an interval.

    An interval without width is shown as a value alone.
    """
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return None
    return estimate.low <= truth <= estimate.high


def batches(rows: pl.DataFrame, size: int, count: int) -> Iterator[pl.DataFrame]:
    """Yield random batches of rows, always the same ones."""
    rng = np.random.default_rng(size)
    for _ in range(count):
        yield rows[rng.integers(0, len(rows), size).tolist()]


def of_columns(
    rows: pl.DataFrame, names: Sequence[str], size: int, count: int
) -> dict[str, tuple[float, float]]:
    """Return the coverage of each column in batches of `size`, and the share with an interval."""
    truths = {name: estimates.of(rows, name).value for name in names}
    hits: dict[str, list[bool]] = {name: [] for name in names}
    for batch in batches(rows, size, count):
        for name, truth in truths.items():
            inside = None if truth is None else hit(estimates.of(batch, name), truth)
            if inside is not None:
                hits[name].append(inside)
    return {
        name: (float(np.mean(some)) if some else float("nan"), len(some) / count)
        for name, some in hits.items()
    }


def of_differences(
    rows: Mapping[str, pl.DataFrame], names: Sequence[str], size: int, count: int
) -> dict[str, float]:
    """Return the coverage of differences of codel from droptail, paired by seed."""
    ours, theirs = (rows[name] for name in ("codel", "droptail"))
    joined = ours.join(theirs, on="seed", suffix="//")
    truths = {
        name: (estimates.of(ours, name).value or 0) - (estimates.of(theirs, name).value or 0)
        for name in names
    }
    hits: dict[str, list[bool]] = {name: [] for name in names}
    for batch in batches(joined, size, count):
        for name, truth in truths.items():
            inside = hit(estimates.difference(batch, name, "//"), truth)
            hits[name] += [] if inside is None else [inside]
    return {name: float(np.mean(some)) if some else float("nan") for name, some in hits.items()}


def of_until(rows: pl.DataFrame, name: str, relative: float, count: int) -> tuple[float, float]:
    """Return the coverage of a column after the stopping rule, and the mean number of seeds."""
    truth, rule = estimates.of(rows, name).value, Until((name,), relative, LEAST, 200)
    hits, sizes = [], []
    for whole in batches(rows, rule.most, count):
        size = rule.least
        while size < rule.most and not narrow(whole[:size].to_dicts(), rule):
            size = min(rule.most, size + size // 2)
        inside = None if truth is None else hit(estimates.of(whole[:size], name), truth)
        hits += [] if inside is None else [inside]
        sizes.append(size)
    return float(np.mean(hits)), float(np.mean(sizes))


def of_percentiles(percent: float, size: int, count: int) -> float:
    """Return the coverage of `--percentile`: of exponential values, in samples of `size`."""
    truth, rng = -np.log1p(-percent / 100), np.random.default_rng(size)
    intervals = (percentile(rng.exponential(size=size), percent) for _ in range(count))
    return float(np.mean([low <= truth <= high for _, low, high in intervals]))


def of_steady(seeds: int) -> dict[str, float]:
    """Return the coverage of `--steady`: single runs of 60 s, against the mean over all seeds."""
    tree = base()
    flows = [{**flow, "rtt": "50ms"} for flow in tree["flows"]]  # one system for all seeds
    tree |= {"duration": "60s", "warmup": "0s", "sample": "20ms", "sample_flows": False}
    shares: dict[str, float] = {}
    for qdisc in QDISCS:
        link = {**tree["links"]["bottleneck"], "qdisc": {"name": qdisc, "limit": "250kB"}}
        case = {**tree, "flows": flows, "links": {"bottleneck": link}}
        means: dict[str, list[float]] = {"queue": [], "throughput": []}
        estimated: dict[str, list[Any]] = {"queue": [], "throughput": []}
        for seed in range(1, seeds + 1):
            result = sj.simulate({**case, "seed": seed})
            series = result.links["bottleneck"].series
            later = len(result.time_s) // 4
            means["queue"].append(series.queue_bytes[later:].mean())
            means["throughput"].append(series.departed_bytes[later:].mean() * 8e-6 / 0.02)
            for one in steady(result):
                estimated[one.what].append(one.mean)
        for what, all_of in estimated.items():
            truth = np.mean(means[what])
            hits = [one.low <= truth <= one.high for one in all_of]
            shares[f"{qdisc} {what}"] = float(np.mean(hits))
    return shares


def main() -> int:
    """Print the coverage of all intervals; return 1 if one is below `LOWEST`."""
    every = runs(SEEDS)
    rows = {name: every.filter(pl.col("qdisc") == name) for name in QDISCS}
    low: list[str] = []

    def report(what: str, coverage: float, note: str = "", share: float = 1.0) -> None:
        print(f"{what:58} {coverage:.3f} {note}", flush=True)
        # An interval of rare events that is shown in few batches is one of the largest counts.
        if coverage < LOWEST and share > HALF:
            low.append(what)

    for size in SIZES:
        for qdisc, some in rows.items():
            for name, (covered, share) in of_columns(
                some, [*MEANS, *PERCENTILES], size, BATCHES
            ).items():
                report(f"{qdisc}, {size} seeds: {name}", covered, f"shown in {share:.2f}", share)
        differences = of_differences(
            rows, [*MEANS[:4], "short.fct_mean_s", *PERCENTILES], size, BATCHES
        )
        for name, covered in differences.items():
            report(f"codel - droptail, {size} seeds: {name}", covered)
    for qdisc, some in rows.items():
        for name in UNTIL:
            for relative in (0.05, 0.1):
                covered, seeds = of_until(some, name, relative, BATCHES // 4)
                report(f"{qdisc}, until {relative}: {name}", covered, f"{seeds:.0f} seeds")
    for percent in (50, 90, 95):
        size = runs_for_interval(percent) or 0
        report(f"--percentile {percent}, {size} runs", of_percentiles(percent, size, 10 * BATCHES))
    for what, covered in of_steady(SEEDS // 2).items():
        report(f"--steady: {what}", covered)
    print(f"below {LOWEST:.3f}: {', '.join(low) or 'none'}")
    return 1 if low else 0


def store(path: Path, seeds: int) -> None:
    """Write the runs of `lab/tests/test_coverage.py`."""
    columns = [*MEANS, *PERCENTILES, *NO_INTERVAL, "call.lost_packets"]
    columns += ["sojourn_values", "short.fct_values", "call.delay_values"]
    kept = list(dict.fromkeys(["qdisc", "seed", *columns]))
    runs(seeds).select(kept).write_parquet(path, compression_level=19)


if __name__ == "__main__":
    if sys.argv[1:2] == ["store"]:
        store(Path(sys.argv[2]), int(sys.argv[3]))
        sys.exit()
    sys.exit(main())
