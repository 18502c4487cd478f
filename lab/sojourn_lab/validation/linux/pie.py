"""PIE as in Linux; the random numbers repeat the recorded decisions."""

from dataclasses import replace
from typing import Any

from sojourn_lab.validation.linux import exact
from sojourn_lab.validation.linux.compare import Case

TITLE = "pie"

INTRO = f"""{exact.INTRO}

The replay repeats the recorded decisions, where the probability allows them: *differ* counts those
that it does not allow. The kernel had 100 ticks per second, so updates with `tupdate 15ms` came
every 30 ms, and with 40 ms every 50 ms. Their phase was not recorded; it is known to some
microseconds from the arrivals before and after each change of the probability. The probability was
recorded with nine digits, of which the last stands for up to 2 units of 2^-32. In the pattern ramp
it exceeds 1, which the kernel does not show (it is not compared there)."""

LINUX = {"name": "pie", "variant": "linux", "hz": 100}

VARIANTS: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "pie": (
        "pie limit 1000",
        {"limit": "1000p"},
        {"onoff": 29_380, "ramp": 29_311, "steady120": 29_381, "two": 29_801},
    ),
    "pieecn": (
        "pie limit 1000 ecn",
        {"limit": "1000p", "ecn": True},
        {"onoff": 29_922, "ramp": 28_996, "steady120": 29_791, "two": 28_983},
    ),
    "piebyte": (
        "pie limit 1000 bytemode",
        {"limit": "1000p", "byte_mode": True},
        {"onoff": 29_844, "ramp": 29_397, "steady120": 29_156, "two": 29_681},
    ),
    "piedq": (
        "pie limit 1000 dq_rate_estimator",
        {"limit": "1000p", "latency": "rate"},
        {"onoff": 29_367, "ramp": 29_074, "steady120": 29_005, "two": 29_353},
    ),
    "pie2": (
        "pie limit 200 target 30ms tupdate 40ms alpha 4 beta 30",
        {"limit": "200p", "target": "30ms", "t_update": "40ms", "alpha": 0.25, "beta": 1.875},
        {"onoff": 9_303, "ramp": 9_720, "steady120": 9_154, "two": 9_218},
    ),
}
"""tc words, our settings, and the phase of the updates (us) by pattern."""


def cases(name: str) -> list[Case]:
    """Return the cases of a variant."""
    tc, settings, phases = VARIANTS[name]
    return [
        replace(
            exact.case(f"{name}_{pattern}", tc, **LINUX, **settings),
            phase_ns=phase_us * 1000,
            follows=True,
            monitored="" if pattern == "ramp" else "p",
        )
        for pattern, phase_us in phases.items()
    ]


CASES = [case for name in VARIANTS for case in cases(name)]
