"""Read files of `Simulation.save`."""

import json
from pathlib import Path

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.reading import bytes_of_file
from sojourn.custom import trust as trusting


def read_snapshot(path: Path, *, trust: bool) -> bytes:
    """Return the contents of a file of `Simulation.save`.

    With `trust`, Python code that the scenario in the file names may run.

    Raises
    ------
    InputError
        If the file cannot be read, is not a snapshot, is damaged, or was written by another
        version. The message begins with its name.
    """
    contents = bytes_of_file(path)
    try:
        trusting.read(json.loads(_sojourn.Simulation.saved_scenario(contents)), path, trust)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return contents
