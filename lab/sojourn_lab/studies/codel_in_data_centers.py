"""Runs of "On the effectiveness of CoDel in data centers, 2026": scenarios and measures.

`make data-centre-study` runs them and writes reports/codel-in-data-centers.md. All seeds are fixed.
"""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sojourn as sj
from sojourn import metrics
from sojourn.result.statistics import Interval, interval, paired
from sojourn_lab import ROOT

Table = dict[str, Any]
Case = tuple[str, float, str, str]
"""Table of sizes, load, sender and discipline."""

SEEDS = 20
TRAFFIC_MS = {"hadoop_hpcc": 10, "web_search": 50, "storage_hpcc": 10}
"""Time in which flows start, by their sizes: web search has a mean of 1.71 MB and so fewer."""
DRAIN_MS = 30
"""Time after that in which most flows complete."""

BUFFER = "2MB"
"""Memory of a switch, shared by its ports; also the limit of each discipline."""

HOST = {"rto_min": "5ms", "tick": "10us", "delayed_ack_timeout": "1ms"}
SENDERS: dict[str, Table] = {
    "DCTCP": {"name": "dctcp", **HOST},
    "CUBIC": {"name": "cubic", "ecn": True, **HOST},
    "Swift": {"name": "swift", "target": "30us", **HOST},
    "HPCC": {"name": "hpcc", **HOST},
}
"""Senders of all flows of a run; CUBIC and DCTCP use ECN. HPCC's `min_rate` is 100 Mbit/s, a
hundredth of the line rate."""
HPCC_BOUNDS: dict[str, Table] = {
    f"HPCC, {rate} Mbit/s": {"name": "hpcc", "min_rate": f"{rate}mbit", **HOST}
    for rate in (10, 400)
}
"""HPCC with other values of `min_rate`."""

SCALED = {"target": "50us", "interval": "500us"}
DISCIPLINES: dict[str, Table] = {
    "droptail": {"name": "droptail"},
    "step marking": {"name": "step_mark", "k": "65p"},
    "RED": {"name": "red", "min_th": "30p", "max_th": "90p", "packet": "1500B", "ecn": True},
    "CoDel, RFC": {"name": "codel", "ecn": True},
    "CoDel, scaled": {"name": "codel", "ecn": True, **SCALED},
    "PIE, RFC": {"name": "pie", "ecn": True},
    "PIE, scaled": {
        "name": "pie",
        "ecn": True,
        "target": "50us",
        "t_update": "50us",
        "max_burst": "500us",
        "alpha": 37.5,
        "beta": 375,
        "mark_ecnth": 1,
    },
    "FQ-CoDel, RFC": {"name": "fq_codel"},
    "FQ-CoDel, scaled": {"name": "fq_codel", **SCALED},
    "DualPI2, RFC": {"name": "dualpi2"},
    "DualPI2, scaled": {
        "name": "dualpi2",
        "max_rtt": "300us",
        "min_th": "50us",
        "range": "50us",
    },
    "EWFQ": {
        "name": "ewfq",
        "by": "hash",
        "q_target": "78kB",
        "sample": "10us",
        "interval": "1ms",
        "rtt": "500us",
        "expected": 8,
    },
}
"""Disciplines of every port, with the limit `BUFFER`; `any_ect` of DualPI2 is true for DCTCP, so
that its packets join the queue L."""

SHORT = ("droptail", "step marking", "CoDel, RFC", "CoDel, scaled", "FQ-CoDel, scaled")
"""Disciplines at a load of 30 %."""

MAIN = ("hadoop_hpcc", 0.6)
OTHERS = (("web_search", 0.6), ("storage_hpcc", 0.6))
"""Sizes and loads with which every sender meets every discipline."""

HALF = (("hadoop_hpcc", 0.3), ("web_search", 0.3), ("storage_hpcc", 0.3))
"""Sizes at half of the load, with DCTCP."""


def cases() -> Iterator[Case]:
    """Yield all cases of the page."""
    for size, load in (MAIN, *OTHERS):
        for sender in SENDERS:
            for queue in DISCIPLINES:
                yield (size, load, sender, queue)
    for sender in HPCC_BOUNDS:
        yield (*MAIN, sender, "droptail")
    for size, load in HALF:
        for queue in SHORT:
            yield (size, load, "DCTCP", queue)


def port(sender: str, queue: str) -> Table:
    """Return the discipline of a port."""
    spec = {**DISCIPLINES[queue], "limit": BUFFER}
    return {**spec, "any_ect": True} if "DualPI2" in queue and sender == "DCTCP" else spec


def scenario(case: Case, seed: int, traffic_ms: int | None = None) -> sj.Scenario:
    """Return one run: 32 hosts at 10 Gbit/s, four leaves and four spines."""
    size, load, sender, queue = case
    traffic_ms = traffic_ms or TRAFFIC_MS[size]
    tcp = (SENDERS | HPCC_BOUNDS)[sender]
    fabric = sj.leaf_spine(
        4,
        4,
        8,
        pairs=[(0, 8)],
        rate="10gbit",
        delay="1us",
        qdisc=port(sender, queue),
        buffer=BUFFER,
        tcp=tcp,
        duration=f"{traffic_ms + DRAIN_MS}ms",
        seed=seed,
    )
    stop = f"{traffic_ms}ms"
    background = {"load": load, "size": size, "stop": stop}
    incast = {"load": 0.02, "pattern": "incast", "senders": 24, "size": "40kB", "stop": stop}
    common = {"tcp": tcp, "spread": "connection"}
    flows = [
        {"name": "background", "traffic": background, **common},
        {"name": "incast", "traffic": incast, **common},
    ]
    return fabric.replace(flows=flows)


SMALL, LARGE = 10_000, 1_000_000
"""Payloads up to which a flow is small and from which it is large, in bytes."""


def measures(result: sj.Result) -> dict[str, float]:
    """Return the measures of a run."""
    table = sj.fct_table(result, definition="hpcc")
    size, group = table["bytes"].to_numpy(), table["group"].to_numpy()
    slow, fct = table["slowdown"].to_numpy(), table["fct_s"].to_numpy()
    ours = group == "background"
    bins = {
        "small": ours & (size <= SMALL),
        "medium": ours & (size > SMALL) & (size < LARGE),
        "large": ours & (size >= LARGE),
    }
    numbers: dict[str, float] = {}
    for name, some in bins.items():
        for percent in (50, 99):
            numbers[f"{name}_p{percent}"] = _percentile(slow[some], percent)
    big = bins["large"]
    numbers["large_gbit"] = float(np.mean(size[big] * 8 / fct[big]) / 1e9) if big.any() else np.nan
    queries = metrics.query_completion_s(result, "incast") * 1e3
    numbers["query_p50_ms"] = _percentile(queries, 50)
    numbers["query_p99_ms"] = _percentile(queries, 99)
    links = result.frame("links")
    ports = links.filter(links["name"].str.contains("^l[0-9]+-h"))
    packets = ports["departed_packets"].to_numpy()
    delay = np.nan_to_num(ports["sojourn_mean_s"].to_numpy().astype(float))
    numbers["queue_us"] = float((delay * packets).sum() / max(packets.sum(), 1) * 1e6)
    numbers["queue_max_kb"] = float(ports["queue_max_bytes"].to_numpy().max(initial=0)) / 1e3
    numbers["dropped"] = (
        float(links["dropped_packets"].sum()) / float(max(links["arrived_packets"].sum(), 1)) * 100
    )
    groups = result.frame("groups")
    numbers["timeouts"] = float(groups["timeouts"].sum())
    numbers["unfinished"] = float(metrics.unfinished_transfers(result))
    return numbers


def _percentile(values: np.ndarray[Any, Any], percent: float) -> float:
    return float(np.percentile(values, percent)) if len(values) else float("nan")


@dataclass(frozen=True)
class Campaign:
    """Measures of all runs, one row per seed and case."""

    runs: Mapping[Case, Sequence[Mapping[str, float]]]

    def values(self, case: Case, what: str) -> np.ndarray[Any, Any]:
        """Return a measure of a case, one value per seed."""
        return np.array([run[what] for run in self.runs[case]])

    def mean(self, case: Case, what: str) -> Interval:
        """Return the mean over seeds, with its 95 % interval."""
        return interval(self.values(case, what))

    def gap(self, ours: Case, theirs: Case, what: str) -> Interval:
        """Return the mean difference of two cases, paired by seed."""
        return paired(self.values(ours, what), self.values(theirs, what))


def run(seeds: int, some: Sequence[Case], store: Path | None = None) -> Campaign:
    """Run `some` cases; with `store`, skip cases that the file has, and add the new ones to it."""
    kept = json.loads(store.read_text()) if store and store.exists() else {}
    keys = {case: json.dumps([*case, seeds, TRAFFIC_MS[case[0]]]) for case in some}
    for case, key in keys.items():
        if key in kept:
            continue
        print(*case, file=sys.stderr, flush=True)
        trees = [scenario(case, seed) for seed in range(1, seeds + 1)]
        with warnings.catch_warnings():
            # Drop-tail and EWFQ do not mark, and DCTCP is run with them on purpose.
            warnings.simplefilter("ignore", sj.ScenarioWarning)
            kept[key] = [measures(one) for one in sj.simulate_many(trees)]
        if store:
            store.parent.mkdir(exist_ok=True)
            store.write_text(json.dumps(kept))
    return Campaign({case: kept[key] for case, key in keys.items()})


def first_reactions(traffic_ms: int = 250) -> dict[str, float]:
    """Return the share of marked and dropped packets of a longer run, in per cent.

    The runs of the tables are shorter than the interval of CoDel (100 ms) and the burst allowance
    of PIE (150 ms).
    """
    shares = {}
    for queue in ("CoDel, RFC", "PIE, RFC"):
        tree = scenario((*MAIN, "DCTCP", queue), 1, traffic_ms)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sj.ScenarioWarning)
            links = sj.simulate(tree.replace(duration=f"{traffic_ms}ms")).frame("links")
        arrived = float(links["arrived_packets"].sum())
        shares[f"{queue}: marked"] = 100 * float(links["marked_packets"].sum()) / arrived
        shares[f"{queue}: full"] = 100 * float(links["dropped_buffer_packets"].sum()) / arrived
    return shares


STORE = ROOT / "out" / "data-centre-study.json"
