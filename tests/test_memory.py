"""Memory of a scenario: refused before the run if it would be too large, and right if it fits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Command

PROGRAM = """\
import json, sys
from pathlib import Path
import sojourn as sj
from sojourn.engines.simulate import simulate
from sojourn.result.result import Result

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1000 for line in lines if line.startswith("VmHWM"))

small = {"duration": "1s", "links": {"a": {"rate": "1mbit"}}, "sample": "10ms", "packet_log": True}
small["flows"] = [{"name": "f", "path": ["a"]}]
simulate(small).save(sys.argv[2] + "/small")  # loads the libraries
before = peak()
result = simulate(json.loads(sys.argv[1]))
print(peak() - before)
"""

LOG_BYTES, VALUE_BYTES = 90, 12
"""Prediction for a row of a packet log and a value of a series, as in memory.rs."""


def case(**more: Any) -> dict[str, Any]:
    """Return a scenario of one link with a constant rate of packets."""
    source = {"name": "cbr", "rate": "400mbit", "packet": "40B"}
    flows = [{"name": "f", "path": ["a"], "source": source}]
    return {"duration": "1s", "links": {"a": {"rate": "1gbit"}}, "flows": flows, **more}


BULK = [{"name": "f", "count": 2000, "path": ["a"], "rtt": "9ms"}]

GROWTH: dict[str, tuple[dict[str, Any], int]] = {
    "packet log": (case(packet_log=True), 1_250_000 * LOG_BYTES),
    "series of links": (
        {**case(sample="10us", sample_flows=False), "flows": BULK[:1]},
        100_000 * (1 + 12 + 5) * VALUE_BYTES,
    ),
    "series of flows": (
        {**case(sample="2500us"), "links": {"a": {"rate": "9mbit"}}, "flows": BULK},
        400 * (3 * 2000 + 18) * VALUE_BYTES,
    ),
}
"""Scenarios with their prediction of the part that dominates, in bytes."""


@pytest.mark.parametrize("name", GROWTH)
def test_a_run_takes_no_more_than_predicted(name: str, tmp_path: Path) -> None:
    """The growth of the process; tables that are written are not predicted."""
    tree, predicted = GROWTH[name]
    arguments = [sys.executable, "-c", PROGRAM, json.dumps(tree), str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    others = 2000 * 2500 + 20_000_000  # flows, and what the allocator keeps
    assert predicted / 4 < int(done.stdout) < predicted + others


def test_logs_and_series_are_refused_before_the_run(sojourn: Command, tmp_path: Path) -> None:
    """A log of 312 million packets, with and without time series."""
    source = {"name": "cbr", "rate": "100gbit", "packet": "40B"}
    flows = [{"name": "f", "path": ["a"], "source": source}]
    file = tmp_path / "case.json"
    for more, message in (
        ({"packet_log": True}, "(312500001 packets in logs: 28"),
        ({"packet_log": True, "sample": "100us"}, "values in time series: 3 MB"),
    ):
        tree = {"duration": "1s", "links": {"a": {"rate": "100gbit"}}, "flows": flows, **more}
        file.write_text(json.dumps(tree))
        code, out, err = sojourn("run", file)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "MB of memory, allowed: 4000 MB" in err
        assert message in err
