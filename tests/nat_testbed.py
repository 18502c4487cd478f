"""Shared by the tests of address translation: running commands in the testbed `nat_world`."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from live_link import ENVIRONMENT, require

WORLD = [sys.executable, str(Path(__file__).with_name("nat_world.py"))]

ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as s:
    print(s.recv(100).decode())
"""


def without(tool: str, directory: Path) -> dict[str, str]:
    """Return an environment whose PATH has all programs but `tool`, as links below `directory`."""
    programs = directory / "programs"  # apart from other files: a link must not be opened as one
    programs.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            here = programs / program.name
            if program.name != tool and not here.exists() and program.name[:1] != "[":
                here.symlink_to(program)
    return {**ENVIRONMENT, "PATH": str(programs)}


def in_world(
    command: Sequence[str], environment: dict[str, str] | None = None, before: str = ":"
) -> dict[str, Any]:
    """Run a command in the testbed (`nat_world`), after the shell command `before`.

    Return its exit code, its output, and the state of the network before and after.
    """
    line = ["unshare", "--net", "--mount", "sh", "-c", f'{before}; exec "$@"', "sh", *WORLD]
    done = subprocess.run(
        [*line, *command],
        env=environment or ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def other(tool: str) -> str:
    """Return the name of the program to hide."""
    require(tool)
    return {"nft": "iptables", "iptables": "nft"}[tool]
