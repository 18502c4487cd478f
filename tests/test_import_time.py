"""Start-up time: heavy libraries are imported late."""

import os
import subprocess
import sys
from pathlib import Path

HEAVY = ("matplotlib", "numpy", "polars", "rich", "typer")


def imported(code: str) -> set[str]:
    """Return the heavy libraries that `code` imports."""
    script = f"{code}\nimport sys\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    return set(done.stdout.split("\n")[-2].split())


def test_version_takes_under_300_ms_of_processor_time() -> None:
    """The best of five. Other work on the machine counts less than in wall-clock time."""
    command = [str(Path(sys.executable).with_name("sojourn")), "--version"]
    times = []
    for _ in range(5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        times.append(usage.ru_utime + usage.ru_stime)
    assert min(times) < 0.3


def test_version_imports_nothing_heavy() -> None:
    """`--version` imports no heavy library."""
    assert imported("from sojourn.cli.main import main; main(['--version'])") == set()
    assert imported("import sojourn") == set()


def test_bad_input_imports_neither_polars_nor_matplotlib() -> None:
    """A refusal is as fast as `--version`."""
    assert imported("from sojourn.cli.main import main; main(['run', 'no.toml'])") <= {"typer"}


def test_listing_imports_no_figures() -> None:
    """Commands without a figure do not import matplotlib."""
    assert not imported("from sojourn.cli.main import main; main(['list', 'codel'])") & {
        "matplotlib",
        "polars",
    }
