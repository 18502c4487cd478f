"""The notebooks of the docs run, and their outputs are current: `make notebooks` if not."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

import notebooks

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore:.*:FutureWarning"
)

ROOT = Path(__file__).parent.parent

NAMES = ("first-steps", "your-own-aqm", "figure-of-a-paper")


def test_there_are_no_others() -> None:
    """Every notebook is executed below, and linked from the README and the page of notebooks."""
    assert {path.stem for path in notebooks.FOLDER.glob("*.ipynb")} == set(NAMES)
    readme = (ROOT / "README.md").read_text()
    assert all(f"(docs/notebooks/{name}.ipynb)" in readme for name in NAMES)
    assert "(../notebooks/your-own-aqm.ipynb)" in (ROOT / "docs/how-to/your-own-aqm.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_is_stored(name: str) -> None:
    """Every table and number, to the last digit; images are there."""
    path = notebooks.FOLDER / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    executed = notebooks.executed(path)
    kept, shown = notebooks.outputs(stored), notebooks.outputs(executed)
    assert len(kept) == len(shown) > 4
    for number, (old, new) in enumerate(zip(kept, shown, strict=True), start=1):
        assert old == new, f"{name}, cell {number}: make notebooks"
    assert sum(map(len, kept)) > 4
    assert notebooks.images(stored) == notebooks.images(executed) > 0


BUSY = """
import sojourn as sj
from sojourn._util import progress
progress.PATIENCE_S = progress.NOTEBOOK_S = 0.0
runs = sj.compare(sj.named("tcp_nup"), ["codel", "pie"], link="up", progress=True)
"""


def test_a_kernel_shows_the_progress_bar_and_removes_it() -> None:
    """An output of the cell, updated by the threads that run; empty at the end."""
    manager, client = start_new_kernel(kernel_name="python3")
    shown: list[tuple[str, str]] = []

    def keep(message: Any) -> None:
        content = message["content"]
        if message["msg_type"] not in ("status", "execute_input"):
            text = content.get("data", {}).get("text/html", content.get("evalue", ""))
            shown.append((message["msg_type"], text))

    try:
        client.execute_interactive(BUSY, output_hook=keep, timeout=notebooks.CELL_S)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    first, *bars, last = shown
    assert first == ("display_data", "")
    assert last == ("update_display_data", "")
    assert {kind for kind, _ in bars} == {"update_display_data"}
    assert any('<progress value="' in text and "simulated" in text for _, text in bars)
