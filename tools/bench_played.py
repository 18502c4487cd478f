"""How fast a scenario can be played on real packets here: `make bench-played`, under a minute.

examples/real-tcp.toml under FQ-CoDel with 20 ms, 8 s of which 3 are cut, by rate and flows. It
prints what docs/live.md quotes.
"""

import tomllib
from pathlib import Path

from sojourn.real import play
from sojourn.settings import apply

ROOT = Path(__file__).parent.parent
CASES = (("100mbit", 4), ("200mbit", 4), ("500mbit", 4), ("1gbit", 4), ("100mbit", 300))
SHORT = (
    "duration=8s",
    "warmup=3s",
    "up.delay=5ms",
    "up.qdisc={name = 'fq_codel'}",
    "long.rtt=20ms",
)


def main() -> None:
    """Play each case and print how it went."""
    file = ROOT / "examples" / "real-tcp.toml"
    tree = tomllib.loads(file.read_text(encoding="utf-8"))
    for rate, flows in CASES:
        result = play(apply(tree, [*SHORT, f"up.rate={rate}", f"long.count={flows}"]))
        live, link = result.summary["live"], result.links["up"]
        print(
            f"{rate}, {flows} flows: {link['utilisation']:.1%} in use; 1 % of the packets over "
            f"{live['lateness_p99_s'] * 1e3:.2f} ms late, 1 % of the applications over "
            f"{live['application_p99_s'] * 1e3:.2f} ms; {live['cpu_share']:.0%} of a core"
        )
        for warning in live["warnings"]:
            print(f"  mind: {warning}")


if __name__ == "__main__":
    main()
