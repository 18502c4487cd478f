"""Formulas of the paper on HRED: gains, stability bounds, and the fluid model of TCP."""

import numpy as np


def gain(queue: float, cr: float, low: float, high: float, kappa: float) -> float:
    """Return |G| of (9) with (10): the factor on a deviation of the queue per round trip.

    All in one unit; `cr` is the rate times the propagation time, `low` and `high` the thresholds.
    """
    return (queue + cr) / (2 * (kappa * high + queue - low))


def smallest_stable_buffer(high: float, kappa: float) -> float:
    """Return the smallest B / CR with |G| < 1 above min_th = B/4, for max_th = `high` B: (11)."""
    few, many = 1e-3, 1e3
    for _ in range(100):
        middle = (few * many) ** 0.5
        stable = gain(middle / 4, 1, middle / 4, high * middle, kappa) < 1
        few, many = (few, middle) if stable else (middle, many)
    return many


def largest_change(cr: float, high: float) -> float:
    """Return sigma of (16), the largest step of load, for B = 1, min_th = 1/4, max_th = `high`."""
    return min((1 - high) / (high + cr), 0.25 / (0.25 + cr))


def fluid_limit(window: float) -> float:
    """Return the |G| at which the fluid model of TCP with windows of `window` becomes unstable.

    The loop gain is |G| e^-jx / ((1 + jx W/2)(1 + jx)), x the frequency times the round-trip time;
    at the limit its magnitude is 1 at a phase of -180 degrees (Hollot et al. 2001, with HRED's
    proportional controller).
    """
    few, many = 0.0, np.pi
    for _ in range(100):
        x = (few + many) / 2
        few, many = (x, many) if x + np.arctan(x * window / 2) + np.arctan(x) < np.pi else (few, x)
    return float(np.hypot(1, few * window / 2) * np.hypot(1, few))
