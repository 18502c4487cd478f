"""Status display of a link while its command runs: the command's output stays whole."""

import os
import pty
import re
import signal
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

from conftest import Command
from live_link import ENVIRONMENT, link
from live_terminal import terminal
from sojourn.live import watch
from sojourn.live.link import Rows

UPDATE = re.compile(rb"\x1b7.*?\x1b8", re.DOTALL)
"""An update: from saving the cursor to restoring it."""

ROOM = b"\r\n\r\n\r\n\x1b[3A"
"""Sequence that makes room for the status lines, written once."""


def rows(times_s: list[float], **changes: float) -> Rows:
    """Return rows at these times, the same for both directions."""
    n = len(times_s)
    columns = {
        "time_s": np.array(times_s),
        "departed_bytes": np.full(n, 125_000, dtype=np.uint64),
        "dropped_packets": np.full(n, 2, dtype=np.uint64),
        "marked_packets": np.zeros(n, dtype=np.uint64),
        "queue_packets": np.full(n, 45, dtype=np.uint64),
        "queue_bytes": np.full(n, 67_400, dtype=np.uint64),
        "sojourn_p50_s": np.full(n, 0.0067),
        "sojourn_p99_s": np.full(n, np.nan),
        "gauge/count": np.full(n, 3.0),
        "gauge/probability": np.full(n, 0.012345),
    }
    columns |= {key: np.full(n, value) for key, value in changes.items()}
    return {"up": columns, "down": columns}


@pytest.mark.parametrize("width", [20, 79, 99, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    """Variables that do not fit are omitted; numbers are aligned with their headers."""
    latest = watch.Latest()
    assert latest.take(rows([0.1, 0.2, 0.3]))
    header, up, _ = latest.lines(width)
    assert max(map(len, latest.lines(width))) <= width
    if width >= 79:
        assert up.split()[:8] == "up 10.0 mbit 45 p, 67 kB 6.70".split()
        assert header.rstrip().endswith("drops/s  marks/s")
        assert up.index("10.0 mbit") + len("10.0 mbit") == header.index("sent") + len("sent")
    assert ("count 3" in up) == (width >= 99)
    assert ("probability 0.0123" in up) == (width >= 200)


def test_rates_are_of_the_last_second() -> None:
    """For every interval of the rows; older rows are dropped."""
    latest = watch.Latest()
    latest.take(rows([0.1 * i for i in range(1, 31)], departed_bytes=0))
    latest.take(rows([0.1 * i for i in range(31, 36)]))
    assert "5.00 mbit" in latest.lines(200)[1], "half of the second"
    assert " 20 " in latest.lines(200)[1]
    rare = watch.Latest()
    rare.take(rows([5.0, 10.0], departed_bytes=6_250_000))
    assert "10.0 mbit" in rare.lines(200)[1]
    assert not watch.Latest().take(rows([]))


OUTPUT = (
    "for i in $(seq 200); do echo line $i; done; sleep 1; printf 'the\\033[1mend\\033[0m'; exit 3"
)


@pytest.mark.live
@pytest.mark.parametrize("columns", [80, 100])
def test_the_output_of_the_command_stays_whole(columns: int) -> None:
    """The terminal receives that output, updates that restore the cursor, and the report."""
    line = [sys.executable, "-m", "sojourn", "link", "--rate", "10mbit", "--watch", "--", "sh"]
    environment = ENVIRONMENT | {"TERM": "xterm"}
    with terminal([*line, "-c", OUTPUT], environment, columns) as screen:
        assert screen.end() == 3
    updates = UPDATE.findall(screen.written)
    # Reserve rows, show the state at least once, clear the rows, reset the scroll region.
    assert len(updates) >= 4
    assert any(b"marks/s" in update for update in updates)
    for update in updates:
        assert b"\n" not in update
        for text in re.split(rb"\x1b\[[0-9;]*[A-Za-z]|\x1b[78]", update):
            assert len(text.decode()) < columns
    # The last update resets the scroll region.
    assert updates[-1] == b"\x1b7\x1b[r\x1b8"
    assert all(b"\x1b[1;21r" in update for update in updates[:-2])
    rest = UPDATE.sub(b"", screen.written)
    assert rest.count(ROOM) == 1
    before, _, after = rest.partition(ROOM)
    assert before.split().count(b"hidden") == 2
    output = b"".join(b"line %d\r\n" % i for i in range(1, 201)) + b"the\x1b[1mend\x1b[0m"
    assert after.startswith(output)
    assert b"malformed" in after[len(output) :]


@pytest.mark.live
def test_a_terminal_that_changes_its_size_keeps_the_output() -> None:
    """Room is reserved again; only the part below the cursor is cleared."""
    line = [sys.executable, "-m", "sojourn", "link", "--rate", "10mbit", "--watch", "--", "sh"]
    script = "echo first; read x; echo second; sleep 0.5"
    with terminal([*line, "-c", script], ENVIRONMENT | {"TERM": "xterm"}) as screen:
        screen.until("marks/s")
        screen.resize(120, 40)
        screen.until("\x1b[1;37r")
        screen.type("\n")
        assert screen.end() == 0
    text = UPDATE.sub(b"", screen.written)
    assert text.index(b"first") < text.index(b"\x1b[0J" + ROOM) < text.index(b"second")


@pytest.mark.live
def test_a_link_that_is_killed_gives_the_terminal_back() -> None:
    """The process inside outlives the link and resets the scroll region."""
    line = [sys.executable, "-m", "sojourn", "link", "--rate", "10mbit", "--watch", "--"]
    # The session leader is a shell, as usual: when it exits, the terminal is gone.
    leader = ["sh", "-c", '"$@"; echo ended; read x', "sh", *line, "sleep", "1000"]
    with terminal(leader, ENVIRONMENT | {"TERM": "xterm"}) as screen:
        screen.until("marks/s")
        pid = screen.process.pid
        [link_pid] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(link_pid), signal.SIGKILL)
        screen.until("ended\r\n")
        screen.until("\x1b7\x1b[r\x1b8\x1b[0m\x1b[0J")
        screen.type("\n")
        assert screen.end() == 0


@pytest.mark.live
def test_another_terminal_shows_the_state() -> None:
    """Each update overwrites the last; the command's own terminal receives none."""
    main, other = pty.openpty()
    name = os.ttyname(other)
    termios.tcsetwinsize(other, (24, 90))
    done = link(["--rate", "10mbit", "--watch-to", name], ["sleep", "1"])
    os.close(other)
    shown = os.read(main, 100_000).decode().replace("\r", "")
    os.close(main)
    assert done.returncode == 0
    assert "marks/s" not in done.stderr
    assert shown.startswith("\x1b[H\x1b[2J")
    assert shown.count("drops/s  marks/s") >= 1
    assert shown.endswith("the link has ended\x1b[K\n")


@pytest.mark.live
def test_a_file_gets_a_line_each_second(tmp_path: Path) -> None:
    """With all variables; a command shorter than a second also gets a line."""
    file = tmp_path / "watch"
    options = ["--rate", "10mbit", "--qdisc", "codel", "--watch-to", str(file)]
    assert link(options, ["sleep", "2.5"]).returncode == 0
    header, *lines = file.read_text().splitlines()
    assert header.split()[0] == "time"
    assert [line.split()[2] for line in lines[:4]] == ["up", "down", "up", "down"]
    # One second after the previous line, or more if the link's process was delayed.
    up, down, up_2, down_2 = (float(line.split()[0]) for line in lines[:4])
    assert 1 <= up == down <= up_2 - 1 == down_2 - 1
    assert all("count 0" in line for line in lines)
    assert float(lines[-1].split()[0]) >= up_2, "the last state"
    assert link(options, ["sleep", "0.4"]).returncode == 0
    lines = file.read_text().splitlines()
    # One update at the end; a process that was delayed also made one a second before.
    assert len(lines) >= 3
    assert len(lines) % 2 == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--watch"],
            "--watch: requires standard error to be a terminal; otherwise use ",
        ),
        (["--watch", "--watch-to", "x"], "--watch-to: cannot be combined with --watch"),
        (["--watch-to", "/nowhere/x"], "/nowhere/x: no such file or directory"),
        (["--watch-to", "."], ".: is a directory"),
        (["--watch-to", "/dev/tty"], "--watch-to: /dev/tty is the terminal of the command"),
        (["--watch-to", "a.jsonl", "--log", "a.jsonl"], "--watch-to: a.jsonl is a file of --log"),
    ],
)
def test_an_unusable_place_is_refused(sojourn: Command, options: list[str], message: str) -> None:
    """With the reason, before anything is created."""
    code, _, err = sojourn("link", "--rate", "1mbit", *options, "--", "true")
    assert code == 2
    assert err.startswith(f"sojourn: {message}"), err
    assert err.count("\n") == 1


@pytest.mark.live
@pytest.mark.parametrize(
    ("options", "term", "message"),
    [
        (["--watch", "--", "true"], "dumb", "--watch: requires a terminal with at least 10 rows"),
        (["--watch"], "xterm", "--watch: requires a COMMAND; for a shell, use --watch-to"),
        (["--watch-to", "/dev/fd/2", "--", "true"], "xterm", "--watch-to: /dev/fd/2 is the termi"),
    ],
)
def test_an_unusable_terminal_is_refused(options: list[str], term: str, message: str) -> None:
    """A shell uses the whole terminal; a dumb terminal cannot move the cursor."""
    line = [sys.executable, "-m", "sojourn", "link", "--rate", "1mbit", *options]
    with terminal(line, ENVIRONMENT | {"TERM": term}, 200) as screen:
        assert screen.end() == 2
    assert f"sojourn: {message}" in screen.written.decode()
