"""Warm starts: runs that continue from a saved state instead of time zero."""

import re
from pathlib import Path
from typing import TypeAlias

from sojourn._sojourn import InputError, ParsedScenario, WarmState
from sojourn._sojourn import Simulation as CompiledSimulation
from sojourn._util.inputs import shown
from sojourn.engines.snapshot_file import read_snapshot
from sojourn.engines.stepping import Simulation

WarmFrom: TypeAlias = str | Path | Simulation
"""A warm state: a file of `Simulation.save`, or a simulation."""

TIME = re.compile(r"\d+(\.\d+)?[a-z]+")
"""A duration, in contrast to the name of a file."""


def warm_state(source: WarmFrom, *, trust: bool, base: ParsedScenario | None = None) -> WarmState:
    """Return the state from which runs start.

    Parameters
    ----------
    source : str, Path or Simulation
        A file of `Simulation.save`, a simulation, or with `base` a time like "30s".
    trust : bool
        True if Python code that the scenario in the file names may run.
    base : ParsedScenario, optional
        Scenario that is simulated up to a time.

    Raises
    ------
    InputError
        If the file is not a snapshot of this version, or the time is not within the run.
    """
    if isinstance(source, Simulation):
        return WarmState(source.snapshot())
    if not isinstance(source, str | Path):
        raise InputError(f"warm_from: {shown(source)} is not a file, nor a simulation")
    if isinstance(source, str) and TIME.fullmatch(source):
        if base is None:
            raise InputError(f"warm_from: {shown(source)} is a time: only a sweep can start there")
        simulation = CompiledSimulation(base)
        try:
            simulation.run_until(source)
        except InputError as error:
            raise InputError(f"warm_from: {error}") from None
        return WarmState(simulation.save())
    path = Path(source)
    contents = read_snapshot(path, trust=trust)
    try:
        return WarmState(contents)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
