"""fq of Linux: a queue per flow, without pacing."""

from typing import Any

from validation.linux import open10
from validation.linux.compare import Case

TITLE = "fq"

INTRO = f"""{open10.INTRO}

The kernel counts the idle time of a flow in ticks of 10 ms (`hz = 100`), and the first tick of a
recording is not known. A flow that was idle for 40 to 50 ms has its quantum again or not, depending
on the tick. In the recordings with the mix `mix` no flow is idle for so long: every packet is
equal. In those with `sparse`, flow 6003 is idle for 41 to 53 ms seven times in the first five
seconds. With exact idle times, the order of packets differs from 1.49 s on; with ticks that begin
9.13 to 9.75 ms after the start, every departure is equal up to 4.54 s. One later decision agrees
with no tick that agrees with those before; its cause is not known."""


TICK_NS = 500_000
"""Time since the last tick at the start of a recording."""

IDLE = "an idle flow has a quantum again or not, by a tick of the kernel"


def case(variant: str, mix: str, tc: str = "", **qdisc: Any) -> Case:
    """Return the case `fq-{variant}_{mix}_10m`."""
    return open10.case(
        f"fq-{variant}_{mix}",
        f"fq {tc}".strip(),
        qdisc={"name": "fq", "hz": 100, **qdisc},
        clock_ns=TICK_NS,
        cause="" if mix == "mix" else IDLE,
        late_timers=False,
    )


SMALL = {"quantum": "1514B", "initial_quantum": "1514B"}

CASES = (
    *(case("default", mix) for mix in ("mix", "sparse")),
    *(case("ce1ms", mix, "ce_threshold 1ms", ce_threshold="1ms") for mix in ("mix", "sparse")),
    case("flim20", "sparse", "flow_limit 20", flow_limit=20),
    *(case("q1514", m, "quantum 1514 initial_quantum 1514", **SMALL) for m in ("mix", "sparse")),
)
