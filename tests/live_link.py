"""What the tests of live links share: whether there are the rights for them, and the command run.

The far end is this process's own network, so that servers run here; the near end, where clients
run, is made by the link and goes with it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

FAR, FAR6 = "198.18.0.1", "fd00:736f:6a6f::198.18.0.1"

REFUSALS = ("sojourn: link: ", "sojourn: real packets")
"""How the line begins that says what is missing."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@cache
def lacking(*tools: str) -> str:
    """Say what is missing for a live link here; nothing if all is there."""
    if not sys.platform.startswith("linux"):
        return "real packets take Linux"
    for tool in ("ip", "unshare", *tools):
        if shutil.which(tool) is None:
            return f"the program {tool} is not installed"
    tried = link(["--rate", "1mbit"], ["true"])
    if tried.returncode == 2 and tried.stderr.startswith(REFUSALS):
        return tried.stderr.strip()
    # Any other failure is one of ours, and the tests are to show it.
    return "no right to this network" if "empty: no right" in tried.stderr else ""


@cache
def lacking_tun() -> str:
    """Say what is missing for hosts of ours, which take TUN devices; nothing if all is there."""
    there = os.access("/dev/net/tun", os.R_OK | os.W_OK)
    return lacking() or ("" if there else "no access to /dev/net/tun")


HIDE = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh"]
"""Leads a command line that is to find no TUN devices."""


def arguments(options: Sequence[str], command: Sequence[str], ends: str = "tun") -> list[str]:
    """Give the command line of a link whose ends are of `tun` or of `veth`."""
    line = [sys.executable, "-m", "sojourn", "link", *options, "--", *command]
    return line if ends == "tun" else [*HIDE, *line]


def link(
    options: Sequence[str], command: Sequence[str], ends: str = "tun"
) -> subprocess.CompletedProcess[str]:
    """Run `command` behind a link, to its end."""
    line = arguments(options, command, ends)
    return subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Give the JSON object that a link prints after what its command printed."""
    assert done.returncode == 0, done.stderr
    tree: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return tree


def python(code: str, *words: object) -> list[str]:
    """Give the command line of a client in Python."""
    return [sys.executable, "-c", code, *map(str, words)]


Found = dict[str, set[str]]


def traces(token: str) -> Found:
    """Say what a link might leave behind: devices, routes, network namespaces, processes.

    Processes are those with `token` on their command line, or that are a link's room.
    """
    ip = {what: _ip(what) for what in ("link", "route", "-6 route")}
    namespaces, processes = set(), set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            namespace = (process / "ns/net").readlink()
        except OSError:
            continue
        if token.encode() in words or b"sojourn.room" in words:
            processes.add(process.name)
            namespaces.add(str(namespace))
    own = str(Path("/proc/self/ns/net").readlink())
    return {**ip, "namespaces": namespaces - {own}, "processes": processes}


def _ip(what: str) -> set[str]:
    line = ["ip", "-o", *what.split(), "show"]
    lines = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line for line in lines if "sj-" in line}
