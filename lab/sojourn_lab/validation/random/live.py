"""Live runs: scenarios with the kernel's TCP, several at once, repeated if packets were late."""

import concurrent.futures
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sojourn_lab import ROOT
from sojourn_lab.validation.random.draw import Scenario
from sojourn_lab.validation.random.measure import measure

LATE_SHARE = 0.01
"""Largest share of packets that may be more than 1 ms late."""

APPLICATION_S = 0.02
"""Largest 99th percentile of the lateness of applications."""

TRIES = 3
"""Runs of a scenario until one is punctual."""

TIMEOUT_S = 120

CHILD = """
import json, sys, warnings
import sojourn as sj
warnings.simplefilter("ignore")
print(json.dumps(sj.emulate(json.load(sys.stdin)).summary))
"""
"""A process per run: each has network namespaces of its own.

Each has a session of its own, too: Linux shares the processor among sessions (autogroup), and a
sender's thread that waits for the processor holds its socket, so that ACKs wait and data leave in
bursts.
"""


def punctual(live: Mapping[str, Any]) -> bool:
    """Return true if the lateness of a run cannot have changed its numbers."""
    return (
        live["late_share"] < LATE_SHARE
        and (live["application_p99_s"] or 0) < APPLICATION_S
        and not live["kernel_dropped_packets"]
        and not live["refused_packets"]
        and not live["failed"]
    )


def run(scenario: Scenario, seed: int, python: str = sys.executable) -> dict[str, Any]:
    """Run a scenario until it is punctual, and return its record."""
    record: dict[str, Any] = {"scenario": scenario, "seed": seed}
    for attempt in range(TRIES):
        done = subprocess.run(
            [python, "-c", CHILD],
            input=json.dumps({**scenario, "seed": seed}),
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
        if done.returncode:
            return {**record, "error": (done.stderr or done.stdout)[-300:]}
        summary = json.loads(done.stdout)
        live = summary["live"]
        record |= {
            "numbers": measure(summary),
            "punctual": punctual(live),
            "repeats": attempt,
            "late_share": live["late_share"],
            "application_p99_s": live["application_p99_s"],
        }
        if record["punctual"]:
            break
    return record


def run_all(
    wanted: Sequence[tuple[Scenario, int]], jobs: int, python: str = sys.executable
) -> Iterator[dict[str, Any]]:
    """Iterate over the records of live runs, in the order in which they end."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(run, scenario, seed, python) for scenario, seed in wanted]
        try:
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
