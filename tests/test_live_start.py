"""Start of a link, signals, and exit codes.

One test sends Ctrl-C at random moments of the start: ten times, or `SOJOURN_ROUNDS` times ten.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conftest import Command
from live_link import ENVIRONMENT, arguments, link, python, traces, without_waiting
from sojourn.live.signals import held_back

pytestmark = pytest.mark.live

ROUNDS = 10 * int(os.environ.get("SOJOURN_ROUNDS", "1"))

BEGIN = "from sojourn.cli.main import entry; print('begun', flush=True); entry()"
"""Program that prints "begun" when the interpreter has started, then runs the command."""


def wait_until(there: Path) -> None:
    """Wait up to a minute for a file."""
    deadline = time.monotonic() + 60
    while not there.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert there.exists()


def nothing_left(token: str, before: dict[str, set[str]]) -> None:
    """Wait until everything that a link created is removed."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        after = traces(token)
        if not any(after[what] - before[what] for what in before):
            return
        time.sleep(0.02)
    raise AssertionError(str({what: after[what] - before[what] for what in before}))


@pytest.mark.parametrize("number", range(ROUNDS))
def test_ctrl_c_at_any_moment_of_the_start_ends_it_cleanly(number: int) -> None:
    """Code 130, no traceback, nothing left. The whole process group gets the signal."""
    rng = random.Random(number)
    token = f"1000{os.getpid()}{number}"
    before = traces(token)
    options = ["link", "--rate", "10mbit", "--", "sleep", token]
    with subprocess.Popen(
        [sys.executable, "-c", BEGIN, *options],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(rng.uniform(0, 1.2))
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "Error" not in errors
    # Either the command was interrupted, or it had not started yet.
    assert without_waiting(errors) == "sojourn: interrupted\n" or "hidden queues" in errors
    nothing_left(token, before)


EARLY = """
import os, signal, socket, sys
import sojourn.live.netns_init as inside
start = inside._spawn
def spawn(*words, **more):
    os.kill(os.getpid(), signal.SIGINT)
    return start(*words, **more)
inside._spawn = spawn
ours, theirs = socket.socketpair()
early = inside._early_signals()
print(inside._run(theirs, ["sleep", "60"], {}, early, terminal=False, watched=False))
"""
"""Runs a command inside as a link does; Ctrl-C comes just before the command exists."""


def test_ctrl_c_just_before_the_command_starts_reaches_it() -> None:
    """The link has already left it to the command."""
    line = [sys.executable, "-c", EARLY]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.stdout == f"{128 + signal.SIGINT}\n", done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)]
)
def test_sigterm_and_sighup_are_passed_on_to_the_command(
    number: int, code: int, tmp_path: Path
) -> None:
    """It can finish, and the report is printed. Other signals end the link at once."""
    ready, done = tmp_path / "ready", tmp_path / "done"
    script = f"trap 'touch {done}; exit 5' TERM HUP; touch {ready}; while :; do sleep 0.1; done"
    line = arguments(["--rate", "10mbit"], ["sh", "-c", script])
    with subprocess.Popen(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        wait_until(ready)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    if number == signal.SIGUSR1:
        assert process.returncode == -number
    else:
        assert process.returncode == 5, code
        assert "the processor kept up" in errors or "not to be trusted" in errors
        assert done.exists()


def test_a_second_sigterm_ends_a_command_that_ignores_the_first(tmp_path: Path) -> None:
    """With the code of the signal."""
    ready = tmp_path / "ready"
    script = f"trap '' TERM; touch {ready}; while :; do sleep 0.1; done"
    line = arguments(["--rate", "10mbit"], ["sh", "-c", script])
    with subprocess.Popen(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        wait_until(ready)
        process.terminate()
        time.sleep(0.3)
        assert process.poll() is None
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 143


def test_ctrl_c_goes_to_the_command(tmp_path: Path) -> None:
    """The link continues if the command handles the signal."""
    ready, got = tmp_path / "ready", tmp_path / "got"
    script = f"trap 'touch {got}' INT; touch {ready}; while ! [ -e {got} ]; do sleep 0.1; done"
    line = arguments(["--rate", "10mbit"], ["sh", "-c", f"{script}; exit 3"])
    with subprocess.Popen(
        line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_until(ready)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 3, errors


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    """As nohup and background jobs of shells require."""
    ready = tmp_path / "ready"
    line = arguments(["--rate", "10mbit"], ["sh", "-c", "kill -INT $$; kill -HUP $$; exit 4"])
    ignoring = ["sh", "-c", f'trap "" INT HUP; touch {ready}; exec "$@"', "sh", *line]
    with subprocess.Popen(ignoring, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        wait_until(ready)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 4, errors


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 128, 200, 255])
def test_exit_codes_are_those_of_the_command(code: int) -> None:
    """Including 125 to 128, which shells use for failures."""
    assert link(["--rate", "1gbit"], ["sh", "-c", f"exit {code}"]).returncode == code


@pytest.mark.parametrize("number", [1, 2, 3, 6, 9, 11, 13, 14, 15])
def test_a_command_that_a_signal_ends_has_the_code_of_the_shell(number: int) -> None:
    """128 plus the number of the signal."""
    assert link(["--rate", "1gbit"], ["sh", "-c", f"kill -{number} $$"]).returncode == 128 + number


def test_standard_input_and_output_belong_to_the_command() -> None:
    """Binary data, end of input, and closed input."""
    data = bytes(range(256)) * 2000
    line = arguments(["--rate", "1gbit"], ["cat"])
    done = subprocess.run(line, env=ENVIRONMENT, input=data, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, data)
    line = arguments(["--rate", "1gbit"], ["sh", "-c", "read x; echo $?"])
    closed = ["sh", "-c", '"$@" <&-', "sh", *line]
    nothing = subprocess.run(closed, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert nothing.returncode == 0, nothing.stderr
    assert nothing.stdout.strip() in ("1", "2")


def test_odd_names_of_commands(tmp_path: Path) -> None:
    """Spaces, a leading dash, invalid UTF-8, no `#!` line: everything that a shell can run."""
    for name in ("with space", "-dash", "new\nline", "ünïcode", os.fsdecode(b"\xff\xfe"), "*"):
        script = tmp_path / name
        script.write_text('echo "ran $1"\n')  # without a #! line
        script.chmod(0o755)
        done = link(["--rate", "1gbit", "--json"], [str(script), "this"])
        assert done.returncode == 0, (name, done.stderr)
        assert done.stdout.startswith("ran this\n{")


def test_modules_of_the_current_directory_are_not_imported(tmp_path: Path) -> None:
    """Such as a json.py or a sojourn.py."""
    for name in ("json", "socket", "sojourn", "subprocess", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the directory')\n")
    command = [str(Path(sys.executable).with_name("sojourn"))]
    line = [*command, "link", "--rate", "1gbit", "--", "echo", "fine"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("directory", "is a directory", 126),
        ("plain", "is not executable (chmod +x makes it so)", 126),
        ("missing", "command not found", 127),
    ],
)
def test_a_command_that_cannot_be_executed_is_refused(
    kind: str, message: str, expected: int, tmp_path: Path, sojourn: Command
) -> None:
    """With the reason and the exit code of a shell, before anything is created."""
    path = tmp_path / "it"
    if kind == "directory":
        path.mkdir()
    elif kind == "plain":
        path.write_text("echo\n")
    code, _, err = sojourn("link", "--rate", "1mbit", "--", path)
    assert code == expected
    assert err.endswith(f"{message}\n")
    code, _, err = sojourn("link", "--rate", "1mbit", "--", "")
    assert (code, err) == (127, 'sojourn: "": command not found\n')


def test_a_slow_step_of_the_start_is_named(tmp_path: Path) -> None:
    """Here a slow `ip`."""
    slow = tmp_path / "ip"
    slow.write_text('#!/bin/sh\nsleep 2.5\nPATH=${PATH#*:} exec ip "$@"\n')
    slow.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    line = arguments(["--rate", "1gbit"], ["true"])
    done = subprocess.run(
        line, env={**ENVIRONMENT, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "sojourn: waiting for addresses and routes outside (ip)\n" in done.stderr


def test_the_command_leaves_no_process_behind() -> None:
    """Its background processes end with the link."""
    token = f"2000{os.getpid()}"
    before = traces(token)
    assert link(["--rate", "1gbit"], ["sh", "-c", f"sleep {token} & exit 0"]).returncode == 0
    nothing_left(token, before)
    assert python("") == [sys.executable, "-c", ""]


def test_a_signal_that_another_thread_receives_is_held_back_too() -> None:
    """Python handles a signal in the main thread, whichever thread the kernel gave it to."""
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    over = threading.Event()
    other = threading.Thread(target=over.wait)  # does not block the signal
    other.start()
    try:
        with held_back():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            during = list(caught)
        assert (during, caught) == ([], [signal.SIGINT])
    finally:
        over.set()
        other.join()
        signal.signal(signal.SIGINT, before)
