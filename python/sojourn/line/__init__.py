"""Measurements of real lines: files of tools, the line behind them, and before against after.

    line = sj.line.measure("download.flent.gz", "upload.flent.gz")
    sj.save_scenario(sj.line.scenario(line), "line.toml")

The command `sojourn line` does the same.
"""

from sojourn.line.checks import LineCheck, verify
from sojourn.line.derive import MeasuredLine, Quantity, measure
from sojourn.line.figure import draw
from sojourn.line.model import options, scenario

__all__ = [
    "LineCheck",
    "MeasuredLine",
    "Quantity",
    "draw",
    "measure",
    "options",
    "scenario",
    "verify",
]
