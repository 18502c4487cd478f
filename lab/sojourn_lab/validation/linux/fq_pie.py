"""FQ-PIE as in Linux: counts over many seeds."""

from typing import Any

from sojourn_lab.validation.linux import open10
from sojourn_lab.validation.linux.compare import Case

TITLE = "fq_pie"

INTRO = f"""{open10.INTRO}

The kernel's random numbers and the phase of its updates are not known, so that only counts can be
compared. On overflow, Linux drops the arriving packet."""

SETTINGS = {"name": "fq_pie", "variant": "linux", "hz": 100}


def case(mix: str, tc: str, **qdisc: Any) -> Case:
    """Return the case of a recording."""
    settings = {**SETTINGS, "ecn": False, **qdisc}
    return open10.case(mix, tc, qdisc=settings, late_timers=False)


CASES: tuple[Case, ...] = ()

COUNTED = (
    *(case(f"fq_pie-default_{mix}", "fq_pie") for mix in ("mix", "sparse")),
    *(case(f"fq_pie-ecn_{mix}", "fq_pie ecn", ecn=True) for mix in ("mix", "sparse")),
)
