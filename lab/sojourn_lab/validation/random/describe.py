"""Short descriptions of random scenarios, and their files."""

from sojourn_lab.validation.random.agreement import Row
from sojourn_lab.validation.random.draw import Scenario


def describe(scenario: Scenario) -> str:
    """Return a scenario in one line."""
    up, down = scenario["links"]["up"], scenario["links"].get("down")
    qdisc = up["qdisc"]
    senders = []
    for flow in scenario["flows"]:
        tcp, source = flow["tcp"], flow["source"]
        words = [f"{flow['count']} {tcp['name'].removeprefix('linux_')}"]
        if tcp.get("ecn"):
            words.append("ecn")
        if source["name"] != "bulk":
            words.append(
                " ".join(source[k] for k in ("name", "size", "gap", "rate") if k in source)
            )
        senders.append(" ".join(words))
    parts = [
        f"{up['rate']}, {int(scenario['flows'][0]['rtt'].removesuffix('us')) / 1000:.4g}ms",
        f"{qdisc['name']}" + (f" {qdisc['limit']}" if "limit" in qdisc else ""),
        " + ".join(senders),
    ]
    if "loss" in up:
        parts.append(f"loss {100 * up['loss']:.2g} %")
    if down:
        words = [down["rate"]]
        words += [f"loss {100 * down['loss']:.2g} %"] if "loss" in down else []
        back = down.get("qdisc", {})
        words += [back[k] for k in ("name", "limit") if k in back]
        parts.append(f"back {' '.join(words)}")
    parts.append(f"warm-up {scenario['warmup']}")
    return "; ".join(parts)


def values(row: Row, metrics: list[str] | None = None) -> str:
    """Return live / simulated values of metrics."""
    chosen = row.differing if metrics is None else metrics
    pairs = [(m, row.compared[m]) for m in chosen]
    return ", ".join(f"{m} {c.live:.3g} / {c.simulated:.3g}" for m, c in pairs)
