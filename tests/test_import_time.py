"""Start-up time: heavy libraries are imported late."""

import subprocess
import sys
import time
from pathlib import Path

HEAVY = ("matplotlib", "numpy", "polars", "rich", "typer")


def imported(code: str) -> set[str]:
    """Return the heavy libraries that `code` imports."""
    script = f"{code}\nimport sys\nprint(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    return set(done.stdout.split("\n")[-2].split())


def test_version_answers_in_under_300_ms() -> None:
    """The best of five, since the machine may be busy."""
    command = [str(Path(sys.executable).with_name("sojourn")), "--version"]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
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
