"""Exceptions in classes of the user that would end a program: reported like any other."""

from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command

CLASSES = """\
import sys
import sojourn as sj


def fail():
    {statement}


class Queue(sj.Aqm):
    def on_enqueue(self, packet, queue):
        fail()


class Control(sj.CongestionControl):
    def on_ack(self, connection):
        fail()


class Traffic(sj.TrafficSource):
    def next_arrival(self, flow):
        fail()
"""

PLACES = {"up.qdisc": "Queue", "bulk.tcp": "Control", "call.source": "Traffic"}
"""Keys of the small scenario, and the class for each."""

METHODS = {"Queue": "on_enqueue", "Control": "on_ack", "Traffic": "next_arrival"}

EXCEPTIONS = [
    ("sys.exit()", "SystemExit", 1),
    ("sys.exit(3)", "SystemExit: 3", 1),
    ("raise SystemExit('text')", "SystemExit: text", 1),
    ("raise GeneratorExit", "GeneratorExit", 1),
    ("bytes(10**15)", "MemoryError", 1),
    ("raise BrokenPipeError(32, 'pipe')", "BrokenPipeError: [Errno 32] pipe", 2),
    ("open('/no/file')", "FileNotFoundError: [Errno 2] No such file or directory", 2),
    ("import typer; raise typer.Exit(0)", "typer.exceptions.Exit: 0", 2),
    ("import typer; raise typer.Abort", "typer.exceptions.Abort", 2),
    ("raise sj.InputError('mine')", "InputError: mine", 2),
    ("1 / 0", "ZeroDivisionError: division by zero", 2),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("statement", "message", "expected"), EXCEPTIONS)
def test_every_exception_is_reported(
    sojourn: Command,
    small: Path,
    tmp_path: Path,
    statement: str,
    message: str,
    expected: int,
    place: str,
) -> None:
    """The traceback has the frames of the user's file, and a note with the method."""
    file, name = tmp_path / "mine.py", PLACES[place]
    file.write_text(CLASSES.format(statement=statement))
    code, out, err = sojourn("run", small, "--set", f"{place}={file}:{name}")
    assert (code, out) == (expected, "")
    assert err.startswith("Traceback")
    assert f'mine.py", line 6, in fail\n    {statement}' in err
    assert message in err
    assert f"in {METHODS[name]} of {file}:{name}, at " in err
    assert "fault in sojourn" not in err
    assert str(Path(sj.__file__).parent) not in err


def test_a_comparison_reports_them_too(sojourn: Command, small: Path, tmp_path: Path) -> None:
    """Runs in threads, one of which fails; the others are shown."""
    file = tmp_path / "mine.py"
    file.write_text(CLASSES.format(statement="sys.exit(3)"))
    code, out, err = sojourn("compare", small, "--qdisc", f"codel,{file}:Queue")
    assert code == 1
    assert "utilisation" in out
    assert "SystemExit: 3" in err


def test_an_interrupt_stays_one(sojourn: Command, small: Path, tmp_path: Path) -> None:
    """KeyboardInterrupt is Ctrl-C, wherever it arrives."""
    file = tmp_path / "mine.py"
    file.write_text(CLASSES.format(statement="raise KeyboardInterrupt"))
    code, _, err = sojourn("run", small, "--qdisc", f"{file}:Queue")
    assert (code, err) == (130, "sojourn: interrupted\n")


def test_a_module_that_ends_the_program_is_bad_input(
    sojourn: Command, small: Path, tmp_path: Path
) -> None:
    """An exception while the file is loaded, or in `start`, is one line with its place."""
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit(5)\n")
    code, _, err = sojourn("run", small, "--qdisc", f"{file}:Queue")
    assert (code, err.count("\n")) == (2, 1)
    assert "SystemExit: 5" in err
    assert "mine.py" in err
