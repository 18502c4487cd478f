"""Measure how fast a scenario can run on real packets on this machine (`make bench-emulate`).

It runs examples/real-tcp.toml under FQ-CoDel with an RTT of 20 ms for several rates and numbers of
flows, 8 s each with a warm-up of 3 s, and prints the numbers of
docs/how-to/live-scenario.md.
"""

import tomllib

from sojourn.live.emulate import emulate
from sojourn.scenario.draft import Draft
from sojourn_lab import ROOT

CASES = (("100mbit", 4), ("200mbit", 4), ("500mbit", 4), ("1gbit", 4), ("100mbit", 300))
SHORT = (
    "duration=8s",
    "warmup=3s",
    "up.delay=5ms",
    "up.qdisc={name = 'fq_codel'}",
    "long.rtt=20ms",
)


def main() -> None:
    """Run each case and print utilisation, lateness and CPU time."""
    file = ROOT / "examples" / "real-tcp.toml"
    tree = tomllib.loads(file.read_text(encoding="utf-8"))
    for rate, flows in CASES:
        result = emulate(
            Draft.read(tree).set([*SHORT, f"up.rate={rate}", f"long.count={flows}"]).tree
        )
        live, link = result.summary["live"], result.links["up"]
        print(
            f"{rate}, {flows} flows: {link['utilisation']:.1%} utilisation; 1 % of the packets "
            f"over {live['lateness_p99_s'] * 1e3:.2f} ms late, 1 % of the applications over "
            f"{live['application_p99_s'] * 1e3:.2f} ms; {live['cpu_share']:.0%} of a core"
        )
        for warning in live["warnings"]:
            print(f"  warning: {warning}")


if __name__ == "__main__":
    main()
