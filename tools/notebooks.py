"""Execute the notebooks of docs/notebooks, and write their outputs: notebooks.py.

The outputs are the same in every run, but for the images. tests/test_notebooks.py executes them
again, and compares.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "docs/notebooks"

CELL_S = 300
"""Longest time of a cell, for slow machines."""

COMPARED = ("text/plain", "text/html")
"""Kinds of output that are the same in every run."""


def executed(path: Path) -> Any:
    """Return a notebook with the outputs of a new run."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook, timeout=CELL_S, kernel_name="python3", record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
        coalesce_streams=True,  # else the number of outputs depends on the times of the writes
    )  # fmt: skip
    client.execute()
    notebook.metadata = {
        "kernelspec": notebook.metadata["kernelspec"],
        "language_info": {"name": "python"},
    }
    return notebook


def outputs(notebook: Any) -> list[list[str]]:
    """Return the texts that each cell of code shows, without images and progress bars."""
    shown = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        texts = []
        for output in cell.outputs:
            data = output.get("data", {})
            texts += [data[kind] for kind in COMPARED if kind in data]
            texts += [output.text] if "text" in output else []
        shown.append([text for text in texts if text and "core.display.HTML" not in text])
    return shown


def images(notebook: Any) -> int:
    """Return the number of images in the outputs."""
    every = [one for cell in notebook.cells for one in cell.get("outputs", ())]
    return sum("image/png" in one.get("data", {}) for one in every)


def main() -> None:
    """Execute all notebooks in place."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)  # type: ignore[no-untyped-call]
        print(path.relative_to(FOLDER.parent.parent), file=sys.stderr)


if __name__ == "__main__":
    main()
