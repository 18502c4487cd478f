"""Runs with the TCP of a kernel in user mode, in virtual time: neither root nor an idle machine.

The clock of the kernel stands still while it computes (`validation/linux/fresh/kernel.py`), so no
packet is late and a run depends on the scenario and its seed alone. The bottleneck is the link of a
live run.
"""

import concurrent.futures
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sojourn_lab import ROOT
from sojourn_lab.validation.linux import user_mode
from sojourn_lab.validation.random.draw import Scenario
from sojourn_lab.validation.random.live import CHILD, punctual
from sojourn_lab.validation.random.measure import measure

LIMIT_S = 1200
"""Longest run of a kernel; a minute of 40 Mbit/s takes about 90 s on an idle core."""

OPTIONS = ("time-travel=inf-cpu",)

ENVIRONMENT = {
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
"""Variables of the process: no vector registers that the kernel might not keep."""


def run(kernel: Path, scenario: Scenario, seed: int) -> dict[str, Any]:
    """Run a scenario under the kernel, and return its record."""
    record: dict[str, Any] = {"scenario": scenario, "seed": seed}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scenario.json").write_text(json.dumps({**scenario, "seed": seed}))
        (folder / "child.py").write_text(CHILD)
        variables = " ".join(f"{key}='{value}'" for key, value in ENVIRONMENT.items())
        files = f"< {folder}/scenario.json > {folder}/summary.json 2> {folder}/error"
        python = f"PYTHONPATH={ROOT}/python {sys.executable}"
        script = f"cd {ROOT}\n{variables} {python} {folder}/child.py {files}"
        try:
            user_mode.run(script, folder, str(kernel), OPTIONS, vectors=True, limit_s=LIMIT_S)
            summary = json.loads((folder / "summary.json").read_text())
        except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
            message = (folder / "error").read_text() if (folder / "error").exists() else ""
            return {**record, "error": (message or str(error))[-300:]}
    live = summary["live"]
    return {
        **record,
        "numbers": measure(summary),
        "punctual": punctual(live),
        "late_share": live["late_share"],
        "application_p99_s": live["application_p99_s"],
    }


def run_all(
    kernel: Path, wanted: Sequence[tuple[Scenario, int]], jobs: int
) -> Iterator[dict[str, Any]]:
    """Iterate over the records of runs, in the order in which they end."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        one = functools.partial(run, kernel)
        futures = [pool.submit(one, scenario, seed) for scenario, seed in wanted]
        for future in concurrent.futures.as_completed(futures):
            yield future.result()
