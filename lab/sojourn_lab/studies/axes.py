"""Axes of the figures of studies."""

from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter


def label_decades(axis: Axis) -> None:
    """Label 1, 2 and 5 in each decade of a logarithmic axis, with plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
