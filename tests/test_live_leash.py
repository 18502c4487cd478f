"""The socket between the two processes of a link: the command does not get it.

Its messages are checked all the same.
"""

import json
import os
import random
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from live_link import ENVIRONMENT, HIDE, arguments, python, require
from sojourn import InputError
from sojourn.live import leash

OPEN = """
import os
found = {}
for fd in range(4096):
    try:
        found[fd] = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        pass
print(found)
"""
"""Prints the open descriptors of the process."""

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def run(line: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command line with stdin from /dev/null and with two more descriptors, 7 and 30."""
    passing = ["sh", "-c", 'exec "$@" 7</dev/null', "sh", *line]
    read, write = os.pipe()
    os.dup2(write, 30, inheritable=True)
    done = subprocess.run(
        passing,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        pass_fds=[30],
    )
    for fd in (read, write, 30):
        os.close(fd)
    return done


def descriptors(line: Sequence[str]) -> set[int]:
    """Return the open descriptors that the command of a link prints."""
    done = run(line)
    assert done.returncode == 0, done.stderr
    targets: dict[int, str] = eval(done.stdout.splitlines()[0])
    return set(targets)


@pytest.mark.live("setpriv")
@pytest.mark.parametrize("ends", ["tun", "veth"])
@pytest.mark.parametrize("start", ["root", "other user", "own network"])
def test_the_command_has_the_standard_streams_only(start: str, ends: str, tmp_path: Path) -> None:
    """For every user that starts the link, every kind of device, and every user of the command."""
    outputs = tmp_path / "out"
    outputs.mkdir()
    outputs.chmod(0o777)
    options = ["--rate", "10mbit", "--log", f"{outputs}/log.jsonl", "--pcap", f"{outputs}/c.pcapng"]
    options += ["--watch-to", f"{outputs}/watch", "--packet-log", f"{outputs}/packets"]
    command = python(OPEN)
    if start == "other user":
        command = [*NOBODY, *command]
    line = arguments(options, command)
    if start == "own network":
        if os.geteuid() == 0:
            no_right = ["--bounding-set=-net_admin,-sys_admin", "--inh-caps=-all"]
            line = ["setpriv", *no_right, *line]
        done = run(line)
        if "not allow" in done.stderr:
            pytest.skip("no user namespaces here")
        assert "outside is a new, empty network" in done.stderr
    if ends == "veth":
        require("mount")
        line = [*HIDE, *line]
    assert descriptors(line) == {0, 1, 2}


@pytest.mark.live
def test_a_script_without_an_interpreter_has_the_standard_streams_only(tmp_path: Path) -> None:
    """It is started by a shell."""
    script = tmp_path / "script"
    script.write_text(f"exec {shlex.join(python(OPEN))}\n")
    script.chmod(0o755)
    assert descriptors(arguments(["--rate", "10mbit"], [str(script)])) == {0, 1, 2}


@pytest.mark.live("nft")
def test_a_command_with_nat_has_the_standard_streams_only() -> None:
    """Locks of the firewall rules stay outside."""
    line = arguments(["--rate", "10mbit", "--nat"], python(OPEN))
    assert descriptors(["unshare", "--net", *line]) == {0, 1, 2}


@pytest.mark.live
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_standard_streams_are_not_taken_by_files_of_the_link(closed: str) -> None:
    """They are /dev/null for the command: a device or socket could have their number."""
    line = ["sh", "-c", f'exec "$@" {closed}', "sh", *arguments(["--rate", "10mbit"], python(OPEN))]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    targets = eval(done.stdout.splitlines()[0])
    assert targets.keys() == {0, 1, 2}
    for number, redirection in ((0, "<&-"), (2, "2>&-")):
        if redirection in closed.split():
            assert targets[number] == "/dev/null"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_with_closed_streams_does_not_fail(closed: str) -> None:
    """Its output goes nowhere, and not into the next file that it opens."""
    line = [sys.executable, "-m", "sojourn", "list"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *line],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"{}",
        b"[]",
        b"7",
        b"null",
        b"\xff",
        b"[" * 4000,
        b'{"code": 0}',
        b'{"code": "0", "dropped": 0}',
        b'{"code": true, "dropped": 0}',
        b'{"code": 0.0, "dropped": 0}',
        b'{"code": NaN, "dropped": 0}',
        b'{"code": 256, "dropped": 0}',
        b'{"code": -1, "dropped": 0}',
        b'{"code": 0, "dropped": -1}',
        b'{"code": 0, "dropped": "x"}',
        b'{"code": 0, "dropped": 9223372036854775808}',
        b'{"code": 0, "dropped": ' + b"9" * 4000 + b"}",
        b'{"code": 0, "dropped": 0, "more": 0}',
        b'{"error": "text"}',
    ],
)
def test_a_malformed_end_is_refused_in_a_line(data: bytes) -> None:
    """The message shows its beginning."""
    with pytest.raises(InputError) as caught:
        leash.parse_ended(data)
    message = str(caught.value)
    assert message.startswith("link: the process inside sent a malformed message: ")
    assert message.isprintable()
    assert len(message) < 300


def test_what_one_side_writes_the_other_reads() -> None:
    """The end of the command, and errors of any length."""
    end = leash.Ended(77, 5)
    assert leash.parse_ended(leash.ended(end)) == end
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.send(leash.ready())
        assert leash.receive(ours) == []
        for error in ("no device", "\U0001f600" * 100_000, ""):
            theirs.send(leash.failed(error))
            with pytest.raises(InputError, match="link: cannot set up the inside: "):
                leash.receive(ours)


@pytest.mark.parametrize(
    ("data", "sent", "expected"),
    [
        (b"{}", 0, 1),
        (b"{}", 1, 0),
        (b"{}", 2, 1),
        (b'{"error": 5}', 0, 0),
        (b'{"error": null}', 0, 0),
        (b'{"error": "a", "more": 1}', 0, 0),
        (b'{"code": 0, "dropped": 0}', 0, 0),
        (b"[]", 1, 1),
        (b"what", 0, 0),
    ],
)
def test_a_malformed_answer_of_the_setup_is_refused(data: bytes, sent: int, expected: int) -> None:
    """Also if it has more or fewer descriptors than it should. None of them stays open."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        socket.send_fds(theirs, [data], [0] * sent)
        before = len([*Path("/proc/self/fd").iterdir()])
        with pytest.raises(InputError, match="sent a malformed message"):
            leash.receive(ours, expected)
        assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_mutated_messages_are_read_or_refused() -> None:
    """10,000 mutations: an end of the command, or InputError."""
    rng = random.Random(1)
    good = json.dumps({"code": 7, "dropped": 12}).encode()
    for _ in range(10_000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 2)] = rng.choice(
                [b"", b'"', b"-", b"[", b"}", b"e9", b"1e400", rng.randbytes(1)]
            )
            data = data or bytearray(b"{")
        try:
            end = leash.parse_ended(bytes(data))
        except InputError:
            continue
        assert 0 <= end.code <= 255
        assert end.dropped_packets >= 0
