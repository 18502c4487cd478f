"""CoDel and FQ-CoDel as in Linux."""

from typing import Any

from sojourn_lab.validation.linux import exact, open10
from sojourn_lab.validation.linux.compare import Case
from sojourn_lab.validation.linux.exact import cases
from sojourn_lab.validation.linux.fresh.systems import stored

TITLE = "codel, fq_codel"

INTRO = f"""{exact.INTRO}

{open10.INTRO}
Departures of the replay are delayed as the recorded ones. CoDel's own unit of time is 1.024 us.
Where in it the recordings began is not known; it is found by trial, and is the same in all but
one."""

LINUX = {"name": "codel", "variant": "linux"}
FAIR = {"name": "fq_codel", "variant": "linux"}


def open_case(mix: str, tc: str, **qdisc: Any) -> Case:
    """Return the case of a recording at 10 Mbit/s, `{discipline}{variant}_{mix}`."""
    frames = open10.TWICE if "flows1" in mix else (open10.ARP_NS,)
    clock_ns = 192 if mix == "codel-noecn_mix" else 960
    return open10.case(mix, tc, qdisc=qdisc, clock_ns=clock_ns, frames=frames)


OPEN = [
    *(
        open_case(f"codel-noecn_{mix}", "codel limit 1000", **LINUX, limit="1000p")
        for mix in ("e12", "mix")
    ),
    *(
        open_case(f"codel-ecn_{mix}", "codel limit 1000 ecn", **LINUX, limit="1000p", ecn=True)
        for mix in ("e12", "mix")
    ),
    open_case(
        "codel-ce1ms_e12",
        "codel limit 1000 ecn ce_threshold 1ms",
        **LINUX,
        limit="1000p",
        ecn=True,
        ce_threshold="1ms",
    ),
    *(open_case(f"fq_codel_{mix}", "fq_codel", **FAIR) for mix in ("c12", "e12", "l12", "mix")),
    open_case("fq_codel-q300_mix", "fq_codel quantum 300", **FAIR, quantum="300B"),
    open_case("fq_codel-flows1_mix", "fq_codel flows 1", **FAIR, flows=1),
    open_case("fq_codel-ce1ms_mix", "fq_codel ce_threshold 1ms", **FAIR, ce_threshold="1ms"),
    open_case(
        "fq_codel-ce1msL4S_mix",
        "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x1",
        **FAIR,
        ce_threshold="1ms",
        ce_threshold_selector="0x1/0x1",
    ),
]
"""Recordings at 10 Mbit/s."""

CASES = [
    *cases("codel", "codel limit 1000 noecn", **LINUX, limit="1000p"),
    *cases("codelecn", "codel limit 1000 ecn", **LINUX, limit="1000p", ecn=True),
    *cases(
        "codel2",
        "codel limit 100 target 20ms interval 200ms noecn",
        **LINUX,
        limit="100p",
        target="20ms",
        interval="200ms",
    ),
    *cases("fqcodel", "fq_codel noecn", **FAIR, ecn=False),
    *cases("fqcodelecn", "fq_codel ecn", **FAIR),
    *cases(
        "fqcodel2",
        "fq_codel limit 60 quantum 300 target 8ms interval 80ms noecn",
        **FAIR,
        limit="60p",
        quantum="300B",
        target="8ms",
        interval="80ms",
        ecn=False,
    ),
    *OPEN,
    *stored("fq_codel"),
]
