"""DualPI2 under HTB, with random numbers that the recording repeats."""

from typing import Any

from validation.linux.compare import Case
from validation.linux.open10 import ARP_NS, TWICE

TITLE = "dualpi2"

INTRO = """The kernel drew random numbers from xorshift32 with the seed 12345, one per comparison;
so does the replay. Updates are due at (-1.000003072 s) mod `tupdate`: the timer started with the
discipline, about a second before the first packet. The time is exact to 1 ns, since each update
adds 14.4 units of 2^-32 to p' per nanosecond of delay.

The recordings list UDP packets only. The router also sent an ARP probe of 42 bytes near 4.0392 s:
its counter `in_c` rises by one more than the listed packets, and the next departure is 33.6 us
late, which is the transmission time of 42 bytes. If the queue is long, the probe uses random
numbers as well, so that all later decisions differ. In two recordings it was dropped or late, and
repeated 1.04 s later. "Equal as listed" is without the probe, all other columns are with it. Its
time is known to a millisecond; every time in 0.15 ms around 4.0392 s gives the same result.

In four cases the replay delays departures as the recorded ones (see codel): without it, one packet
in each is marked by the step in one of the two only, since its sojourn time is within 0.4 us of
`step_thresh`. In the others this would exchange departures and updates that are due within one step
of the kernel's clock, which runs what is due first.

Where p' differs by more than 2, the kernel's timer was late: it is set anew each time from the time
at which it ran. A `tupdate` of 10 ms is no multiple of the 256 ns of the clock, so that each update
is late. In the recordings with mix, it is late by 256 ns from 1.128 s on. Each further
update then adds the gain alpha times this delay, until p' differs by up to 0.00005 after 20 s.
"""

STARTED_NS = -1_000_003_072
"""Time at which the discipline was added."""

ORDER = "a departure and an update are due within one step of the kernel's clock"
TIMER = "the kernel's timer was late by a step of its clock, 256 ns"
DRIFT = "10 ms is no multiple of 256 ns: each update is late by 128 or 384 ns"


def case(
    variant: str,
    mix: str,
    tc: str,
    cause: str = "",
    frames: tuple[int, ...] = (ARP_NS,),
    late_timers: bool = False,
    **settings: Any,
) -> Case:
    """Return the case `dualpi2{variant}_{mix}_10m`."""
    period = 10_000_000 if "tupdate" in tc or "max_rtt" in tc else 16_000_000
    return Case(
        name=f"dualpi2{variant}_{mix}_10m",
        tc=f"dualpi2 {tc}".strip(),
        qdisc={"name": "dualpi2", "variant": "linux", **settings},
        seed=12345,
        phase_ns=STARTED_NS % period,
        frames=frames,
        late_timers=late_timers,
        monitored="p_prime",
        cause=cause,
    )


T5: dict[str, Any] = {"target": "5ms", "tupdate": "10ms", "alpha": 0.5, "beta": 5}
RTT40: dict[str, Any] = {"max_rtt": "40ms", "typical_rtt": "10ms"}
OVERFLOW: dict[str, Any] = {"drop_on_overload": False, "limit": "200p"}

CASES = (
    case("", "l12", "", frames=TWICE),
    case("", "lpoi", "", late_timers=True),
    case("", "mix2", "", late_timers=True),
    case("", "over", ""),
    case("-nostep", "mix", "step_thresh 1s", step_thresh="1s"),
    case("-step5p", "mix", "step_thresh 5p", step_thresh="5p"),
    case("-step250us", "mix", "step_thresh 250us", step_thresh="250us"),
    case("-step250us", "over", "step_thresh 250us", step_thresh="250us"),
    case("-minq3", "mix", "min_qlen_step 3", min_qlen_step=3),
    case("-k1", "mix", "coupling_factor 1", ORDER, coupling_factor=1),
    case("-k1", "over", "coupling_factor 1", coupling_factor=1),
    case("-k4", "mix", "coupling_factor 4", TIMER, coupling_factor=4),
    case("-k4", "over", "coupling_factor 4", coupling_factor=4),
    case("-dropenq", "mix", "drop_enqueue", ORDER, drop_enqueue=True),
    case("-overflow", "mix", "overflow limit 200", frames=TWICE, **OVERFLOW),
    case("-overflow", "over", "overflow limit 200", **OVERFLOW),
    case("-limit50", "mix", "limit 50", TIMER, limit="50p"),
    case("-limit50", "over", "limit 50", late_timers=True, limit="50p"),
    case("-memlimit", "mix", "memlimit 60000", TIMER, memlimit="60000B"),
    case("-memlimit", "over", "memlimit 60000", memlimit="60000B"),
    case("-cprot50", "mix", "classic_protection 50", classic_protection=50),
    case("-cprot50", "over", "classic_protection 50", late_timers=True, classic_protection=50),
    case("-cprot0", "mix", "classic_protection 0", TIMER, classic_protection=0),
    case("-cprot0", "over", "classic_protection 0", classic_protection=0),
    case("-t5", "mix", "target 5ms tupdate 10ms alpha 0.5 beta 5", DRIFT, **T5),
    case("-rtt40", "mix", "max_rtt 40ms typical_rtt 10ms", DRIFT, **RTT40),
    case("-rtt40", "over", "max_rtt 40ms typical_rtt 10ms", DRIFT, **RTT40),
)
