"""DualPI2 under HTB, with random numbers that the recording repeats."""

from typing import Any

from validation.linux.compare import Case

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

Where p' differs by more than 2, the kernel's timer was late: it is set anew each time from the time
at which it ran. In the recordings with mix, it is late by 256 ns from 1.128 s on. Each further
update then adds the gain alpha times this delay, until p' differs by up to 0.00005 after 20 s.
"""

ARP_NS = 4_039_200_000

STARTED_NS = -1_000_003_072
"""Time at which the discipline was added."""

STEP = "its sojourn time is within 0.4 us of `step_thresh`; stamps are known to 0.5 us"
ORDER = "a departure and an update are less than 0.5 us apart"
TIMER = "p' differs since the kernel's timer was late by 256 ns"
DRIFT = "the kernel's timer is late by 0.13 to 0.4 us at each update with a `tupdate` of 10 ms"

TWICE = (ARP_NS, ARP_NS + 1_040_000_000)


def case(
    variant: str,
    mix: str,
    tc: str,
    cause: str = "",
    frames: tuple[int, ...] = (ARP_NS,),
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
        monitored="p_prime",
        cause=cause,
    )


T5: dict[str, Any] = {"target": "5ms", "tupdate": "10ms", "alpha": 0.5, "beta": 5}
RTT40: dict[str, Any] = {"max_rtt": "40ms", "typical_rtt": "10ms"}
OVERFLOW: dict[str, Any] = {"drop_on_overload": False, "limit": "200p"}

CASES = (
    case("", "l12", "", frames=TWICE),
    case("", "lpoi", "", STEP),
    case("", "mix2", "", STEP),
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
    case("-limit50", "over", "limit 50", STEP, limit="50p"),
    case("-memlimit", "mix", "memlimit 60000", TIMER, memlimit="60000B"),
    case("-memlimit", "over", "memlimit 60000", memlimit="60000B"),
    case("-cprot50", "mix", "classic_protection 50", classic_protection=50),
    case("-cprot50", "over", "classic_protection 50", STEP, classic_protection=50),
    case("-cprot0", "mix", "classic_protection 0", TIMER, classic_protection=0),
    case("-cprot0", "over", "classic_protection 0", classic_protection=0),
    case("-t5", "mix", "target 5ms tupdate 10ms alpha 0.5 beta 5", DRIFT, **T5),
    case("-rtt40", "mix", "max_rtt 40ms typical_rtt 10ms", DRIFT, **RTT40),
    case("-rtt40", "over", "max_rtt 40ms typical_rtt 10ms", DRIFT, **RTT40),
)
