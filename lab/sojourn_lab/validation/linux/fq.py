"""fq of Linux: a queue per flow, without pacing."""

from typing import Any

from sojourn_lab.validation.linux import open10
from sojourn_lab.validation.linux.compare import Case

TITLE = "fq"

INTRO = f"""{open10.INTRO}

A flow that was idle for more than 40 ms has its quantum again. The kernel counts this time in ticks
of 10 ms (`hz = 100`), and from an odd tick on: it sets the last bit of the tick at which a flow
becomes idle, by which it tells this number from a pointer that has the same place in memory. So a
flow that becomes idle in an even tick waits for one tick more. In the recordings with `sparse`,
flow 6003 is idle for 41 to 53 ms seven times in the first five seconds. With exact idle times the
order of packets differs from 1.49 s on; with ticks that are all alike, from 4.54 s on at the
latest, whenever the ticks begin. With the odd tick every packet is equal in all recordings, if the
first even tick began 0.25 to 1.2 ms before the first packet. The time of the ticks was not
recorded. Of all times within 20 ms, in steps of 50 us, no other gives equal packets in
`fq-default_sparse`, `fq-ce1ms_sparse` or `fq-flim20_sparse`. In the recordings with `mix` no flow
is idle for so long."""


TICK_NS = 500_000
"""Time since the last even tick at the start of a recording."""


def case(variant: str, mix: str, tc: str = "", **qdisc: Any) -> Case:
    """Return the case `fq-{variant}_{mix}_10m`."""
    return open10.case(
        f"fq-{variant}_{mix}",
        f"fq {tc}".strip(),
        qdisc={"name": "fq", "hz": 100, **qdisc},
        clock_ns=TICK_NS,
        late_timers=False,
    )


SMALL = {"quantum": "1514B", "initial_quantum": "1514B"}

CASES = (
    *(case("default", mix) for mix in ("mix", "sparse")),
    *(case("ce1ms", mix, "ce_threshold 1ms", ce_threshold="1ms") for mix in ("mix", "sparse")),
    case("flim20", "sparse", "flow_limit 20", flow_limit=20),
    *(case("q1514", m, "quantum 1514 initial_quantum 1514", **SMALL) for m in ("mix", "sparse")),
)
