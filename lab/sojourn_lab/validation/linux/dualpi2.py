"""DualPI2 under HTB, with random numbers that the recording repeats."""

from dataclasses import replace
from typing import Any

from sojourn_lab.validation.linux.compare import Case
from sojourn_lab.validation.linux.open10 import ARP_NS, TWICE
from sojourn_lab.validation.linux.timer import FULL, Controller

TITLE = "dualpi2"

INTRO = """The kernel drew random numbers from xorshift32 with the seed 12345, one per comparison;
so does the replay. Departures are delayed as the recorded ones (see codel).

The kernel sets the timer of the updates anew from the time at which it ran, so that each delay
stays. The replay is given the times of the updates. They follow from the recording alone: an update
changes p' by 14.4 units of 2^-32 per nanosecond of queueing delay, so that the recorded values give
the delay, and, with the arrival of the packet at the head of the queue, the time
([`timer.py`](../lab/sojourn_lab/validation/linux/timer.py)). The timer started 1.000003072 s before
the first packet. With 16 ms, which are 62,500 steps of the clock of 256 ns, it is never late except
by one step at 1.128 s in the recordings with mix, and once or twice more where a departure is due
in the same step. A `tupdate` of 10 ms is no multiple of the step: each update is late by half a
step or one and a half.

While p' is 0 or 1 it does not tell the times of the updates, and the delays of the timer add up. In
`dualpi2-rtt40_over` it is 0 at 25 updates before the one at 17.020 s. The value of this one allows
two pairs of times for it and the one before: with 2.3 and 2.7 us of delay since the last known
update, or with 4.0 and 4.2 us. Only the first pair is one of multiples of the clock's step, as all
other updates of these recordings are. Without any delay, p' is 15,082 units (3.5e-6) lower than the
kernel's until the next update, which sets both to 0.

The recordings list UDP packets only. The router also sent an ARP probe of 42 bytes: its counter
`in_c` rises by one more than the listed packets, and the next departure is 33.6 us late, which is
the transmission time of 42 bytes. If the queue is long, the probe uses random numbers as well, so
that all later decisions differ. With `coupling_factor 1` and with `drop_enqueue` the probe was at
the head of the queue C at an update, which tells its arrival: 4.0393216 s in both. In two
recordings it was dropped or late, and repeated 1.04 s later. Another one passed at 19.88 s with
`classic_protection 0`. "Equal as listed" is without the probes, all other columns are with them.
"""

DEFAULTS = Controller(started_ns=-1_000_003_072)
"""The controller by default; the discipline was added then."""

SECOND_NS = 19_879_000_000
"""Time of another probe; every time from 19.87765 s to 19.88001 s gives the same result."""


def case(
    variant: str,
    mix: str,
    tc: str = "",
    timer: Controller = DEFAULTS,
    frames: tuple[int, ...] = (ARP_NS,),
    **settings: Any,
) -> Case:
    """Return the case `dualpi2{variant}_{mix}_10m`."""
    return Case(
        name=f"dualpi2{variant}_{mix}_10m",
        tc=f"dualpi2 {tc}".strip(),
        qdisc={"name": "dualpi2", "variant": "linux", **settings},
        seed=12345,
        timer=timer,
        frames=frames,
        late_timers=True,
        monitored="p_prime",
    )


T5: dict[str, Any] = {"target": "5ms", "tupdate": "10ms", "alpha": 0.5, "beta": 5}
T5_TIMER = replace(DEFAULTS, target_ns=5_000_000, period_ns=10_000_000, alpha=128, beta=1280)
RTT40: dict[str, Any] = {"max_rtt": "40ms", "typical_rtt": "10ms"}
RTT40_TIMER = replace(DEFAULTS, target_ns=10_000_000, period_ns=10_000_000, alpha=160, beta=1920)
OVERFLOW: dict[str, Any] = {"drop_on_overload": False, "limit": "200p"}
OVERFLOW_TIMER = replace(DEFAULTS, p_max=FULL // 2)

CASES = (
    case("", "l12", frames=TWICE),
    *(case("", mix) for mix in ("lpoi", "mix2", "over")),
    case("-nostep", "mix", "step_thresh 1s", step_thresh="1s"),
    case("-step5p", "mix", "step_thresh 5p", step_thresh="5p"),
    *(case("-step250us", m, "step_thresh 250us", step_thresh="250us") for m in ("mix", "over")),
    case("-minq3", "mix", "min_qlen_step 3", min_qlen_step=3),
    *(case("-k1", mix, "coupling_factor 1", coupling_factor=1) for mix in ("mix", "over")),
    *(case("-k4", mix, "coupling_factor 4", coupling_factor=4) for mix in ("mix", "over")),
    case("-dropenq", "mix", "drop_enqueue", drop_enqueue=True),
    case("-overflow", "mix", "overflow limit 200", OVERFLOW_TIMER, TWICE, **OVERFLOW),
    case("-overflow", "over", "overflow limit 200", OVERFLOW_TIMER, **OVERFLOW),
    *(case("-limit50", mix, "limit 50", limit="50p") for mix in ("mix", "over")),
    *(case("-memlimit", m, "memlimit 60000", memlimit="60000B") for m in ("mix", "over")),
    *(case("-cprot50", m, "classic_protection 50", classic_protection=50) for m in ("mix", "over")),
    case(
        "-cprot0",
        "mix",
        "classic_protection 0",
        frames=(ARP_NS, SECOND_NS),
        classic_protection=0,
    ),
    case("-cprot0", "over", "classic_protection 0", classic_protection=0),
    case("-t5", "mix", "target 5ms tupdate 10ms alpha 0.5 beta 5", T5_TIMER, **T5),
    *(
        case("-rtt40", m, "max_rtt 40ms typical_rtt 10ms", RTT40_TIMER, **RTT40)
        for m in ("mix", "over")
    ),
)
