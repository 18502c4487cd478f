"""Rewrite the outputs of commands in pages of docs/how-to by running the commands.

The pages are those in `PAGES`. `--check` only compares. For a sweep the page shows as many of the
last lines as before, and keeps the time in the very last one.
"""

import contextlib
import io
import itertools
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sojourn.cli.main import main as sojourn

ROOT = Path(__file__).parent.parent
PAGES = {"sweeps": {"load.png": "sweep.png"}, "capacity": {"capacity.png": "capacity.png"}}
"""Pages of docs/how-to, with the figures that their commands draw and their names there."""

FOLDER = ROOT / "docs/how-to"
PROMPT = "$ sojourn "


def output(command: str) -> list[str]:
    """Run a command line and return its output."""
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        code = sojourn(shlex.split(command)[2:])
    assert code == 0, f"{command}: exit code {code}"
    return [line.rstrip() for line in buffer.getvalue().splitlines()]


def renewed(text: str) -> Iterator[str]:
    """Return the lines of the page with current outputs; run where `examples` is."""
    lines = text.splitlines()
    n = 0
    while n < len(lines):
        line = lines[n]
        yield line
        n += 1
        if not line.startswith(PROMPT):
            continue
        old = list(itertools.takewhile(lambda one: one[:3] not in ("```", "$ s"), lines[n:]))
        now = output(line)
        if line.startswith(f"{PROMPT}sweep"):
            # The same count of lines; what it took is the machine's, and stays.
            now = [*now[-len(old) : -1], old[-1]]
        yield from now
        n += len(old)


def main(check: bool, room: Path) -> int:
    """Rewrite the pages, or check that they would not change; the commands run in `room`."""
    (room / "examples").symlink_to(ROOT / "examples")
    stale = 0
    for name, figures in PAGES.items():
        page = FOLDER / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        with contextlib.chdir(room):
            new = "\n".join(renewed(text)) + "\n"
        if not check:
            page.write_text(new, encoding="utf-8")
            for drawn, kept in figures.items():
                (FOLDER / kept).write_bytes((room / drawn).read_bytes())
        if check and new != text:
            print(f"docs/how-to/{name}.md is not up to date: run make gen")
            stale = 1
    return stale


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main("--check" in sys.argv[1:], Path(folder)))
