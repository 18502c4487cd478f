"""The kernel as a program, user-mode Linux: what it does with packets, for comparisons."""

import json
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sojourn_lab.validation.linux import user_mode

SENDER = Path(__file__).parent / "tree_sender.py"

SEEDS = int(os.environ.get("SOJOURN_CASES", "1"))
"""Number of random cases of each kind: each takes seconds, since the kernel sends in real time."""


def require(*, module: bool = True) -> None:
    """Skip the module, or the test, if packages of Debian are missing; fail in CI."""
    if packages := user_mode.missing():
        reason = f"Debian's {', '.join(packages)} is not installed"
        if os.environ.get("CI") and platform.machine() == "x86_64":
            pytest.fail(reason)
        pytest.skip(reason, allow_module_level=module)


def sent(
    cases: Mapping[str, Mapping[str, Any]], folder: Path, before: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return which packets leave the device dum0 in each case, in which order and when.

    Parameters
    ----------
    cases : mapping
        Cases by name. Each has the commands `lines`, and `frames`, whose first three values are
        priority, DSCP and length.
    folder : Path
        Folder for the files.
    before : sequence of str
        Commands before the first case.

    Returns
    -------
    dict
        For each case `order` (numbers of the frames), `times` (ns), and `early`, the number of
        frames that left before all had arrived.
    """
    script = list(before)
    for name, case in cases.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps([row[:3] for row in case["frames"]]))
        script += [*case["lines"], f"echo CASE {name}"]
        script.append(f"{{python}} {SENDER} {shlex.quote(str(path))}")
        script += ["tc qdisc del dev dum0 root", "tc qdisc del dev dum0 clsact 2>/dev/null"]
    text = user_mode.run("\n".join(script), folder, vectors=True)
    lines = text.splitlines()
    starts = {line.split()[1]: i for i, line in enumerate(lines) if line.startswith("CASE ")}
    faults = [line for line in lines if not line.startswith(("CASE ", "{"))]
    assert starts.keys() == cases.keys(), text
    assert not faults, faults
    return {name: json.loads(lines[i + 1]) for name, i in starts.items()}
