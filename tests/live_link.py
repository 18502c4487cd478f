"""Shared by the tests of live links: checks of rights and tools, and running the command.

The far end of the link is the network of the test process, where the servers run. The near end is
the namespace of the command, where the clients run.

Tests that open real links have the mark `live`. If a tool or right is missing, they are skipped
with the reason. In CI (`CI` is set) that is an error if the process is root and `/dev/net/tun`
exists.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FAR, FAR6 = "198.18.0.1", "fd00:736f:6a6f::198.18.0.1"
NEAR, NEAR6 = "198.18.0.2", "fd00:736f:6a6f::198.18.0.2"

REFUSALS = ("sojourn: link: ", "sojourn: real packets")
"""First words of messages about missing tools and rights."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@cache
def lacking(*tools: str) -> str:
    """Return what is missing for a live link here, or an empty string if nothing is."""
    return _checked(_lacking(*tools))


def _checked(reason: str) -> str:
    """Return `reason` to skip a live test, unless the test must run on this machine."""
    rights = hasattr(os, "geteuid") and os.geteuid() == 0 and Path("/dev/net/tun").exists()
    if reason and rights and os.environ.get("CI"):
        raise AssertionError(f"live tests must run in CI as root with /dev/net/tun: {reason}")
    return reason


def _lacking(*tools: str) -> str:
    if not sys.platform.startswith("linux"):
        return "real packets require Linux"
    for tool in ("ip", "ss", "unshare", *tools):
        if shutil.which(tool) is None:
            return f"the program {tool} is not installed"
    tried = link(["--rate", "1mbit"], ["true"])
    if tried.returncode == 2 and tried.stderr.startswith(REFUSALS):
        return tried.stderr.strip()
    # Any other failure is a fault of sojourn, which the tests must show.
    return "no right to this network" if "empty: no right" in tried.stderr else ""


@cache
def lacking_tun() -> str:
    """Return what is missing for scenarios on real packets, or an empty string."""
    there = os.access("/dev/net/tun", os.R_OK | os.W_OK)
    return lacking() or _checked("" if there else "no access to /dev/net/tun")


def require(*tools: str, tun: bool = False) -> None:
    """Skip the running test if a live link, one of `tools`, or with `tun` a TUN device is missing.

    If nothing is, close the connections of earlier links. The mark `live` has the
    same arguments.
    """
    if reason := lacking(*tools) or (lacking_tun() if tun else ""):
        pytest.skip(f"no live link here: {reason}")
    close_earlier_connections()


def close_earlier_connections() -> None:
    """Close the connections that an earlier link left outside.

    The last ACK of a client can be queued when its link ends. The server's socket then repeats its
    last segment for minutes. A later link has the same addresses: the segment crosses it, is
    answered with a reset, and both are packets that no test has sent. Without effect if the kernel
    does not let `ss` close sockets (`CONFIG_INET_DIAG_DESTROY`).
    """
    line = ["ss", "-K", "--tcp", "--all", f"dst {NEAR} or dst [{NEAR6}]"]
    subprocess.run(line, capture_output=True, check=False)


HIDE = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh"]
"""Prefix of a command line that hides the TUN devices."""


def arguments(options: Sequence[str], command: Sequence[str], ends: str = "tun") -> list[str]:
    """Return the command line of a link whose `ends` are "tun" or "veth" devices."""
    line = [sys.executable, "-m", "sojourn", "link", *options, "--", *command]
    return line if ends == "tun" else [*HIDE, *line]


def link(
    options: Sequence[str], command: Sequence[str], ends: str = "tun"
) -> subprocess.CompletedProcess[str]:
    """Run `command` behind a link and wait for its end."""
    line = arguments(options, command, ends)
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    done.stderr = without_waiting(done.stderr)
    return done


def without_waiting(errors: str) -> str:
    """Remove the lines that name slow steps of the start, which a busy machine adds."""
    return re.sub(r"^sojourn: waiting for .*\n", "", errors, flags=re.MULTILINE)


def summary_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the JSON object that a link prints after the output of its command."""
    assert done.returncode == 0, done.stderr
    tree: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return tree


def python(code: str, *words: object) -> list[str]:
    """Return the command line of a client in Python."""
    return [sys.executable, "-c", code, *map(str, words)]


def packets(path: Path) -> list[tuple[int, bytes, str]]:
    """Return time (ns since 1970), bytes and comment of each packet in a pcapng file."""
    data, at, records = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = (int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4))
        body = data[at + 8 : at + length - 4]
        assert data[at + length - 4 : at + length] == data[at + 4 : at + 8]
        at += length
        if kind != 6:
            continue
        words = [int.from_bytes(body[i : i + 4], "little") for i in range(0, 20, 4)]
        options = body[20 + -(-words[3] // 4) * 4 :]
        comment = ""
        while options:
            code, size = (int.from_bytes(options[i : i + 2], "little") for i in (0, 2))
            comment += options[4 : 4 + size].decode() if code == 1 else ""
            options = options[4 + -(-size // 4) * 4 :]
        records.append((words[1] << 32 | words[2], body[20 : 20 + words[3]], comment))
    return records


Found = dict[str, set[str]]


def traces(token: str) -> Found:
    """Return everything that a link could leave: devices, routes, namespaces, processes.

    Processes are those with `token` on their command line, and the init processes of links.
    """
    ip = {what: _ip(what) for what in ("link", "route", "-6 route")}
    namespaces, processes = set(), set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            namespace = (process / "ns/net").readlink()
        except OSError:
            continue
        if token.encode() in words or b"sojourn.live.netns_init" in words:
            processes.add(process.name)
            namespaces.add(str(namespace))
    own = str(Path("/proc/self/ns/net").readlink())
    return {**ip, "namespaces": namespaces - {own}, "processes": processes}


def _ip(what: str) -> set[str]:
    line = ["ip", "-o", *what.split(), "show"]
    lines = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line for line in lines if "sj-" in line}
