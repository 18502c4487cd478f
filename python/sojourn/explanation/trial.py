"""Trials of the changes that findings propose: what each would bring."""

from collections.abc import Callable, Sequence

from sojourn._util.units import duration, rate, share
from sojourn.explanation.finding import Finding
from sojourn.explanation.why import differences
from sojourn.result.result import Result

Rerun = Callable[[Sequence[str]], Result]
"""Function that runs the scenario again with these settings."""

SHOWN = 6
"""Largest number of differences that a sentence lists."""


def tried(base: Result, findings: Sequence[Finding], rerun: Rerun) -> list[Finding]:
    """Run each proposed change once, and say what it brings.

    The trials have the seed of the run: they show the size of an effect, not its certainty.
    """
    changes = dict.fromkeys(one.change for one in findings if one.change)
    return [_trial(change, base, rerun(change)) for change in changes]


def _trial(change: Sequence[str], base: Result, other: Result) -> Finding:
    """Return the sentence about one trial."""
    parts, evidence = [], {}
    gaps = differences(base, other)
    for name, before, after in gaps[:SHOWN]:
        write = _writer(name)
        parts.append(f"{name} {write(before)} becomes {write(after)}")
        evidence[f"with {' '.join(change)}: {name}"] = after
    more = f"; and {len(gaps) - SHOWN} more" if len(gaps) > SHOWN else ""
    text = "; ".join(parts) + more if parts else "no measure changes much"
    return Finding("trial", f"Tried {' and '.join(change)}: {text}.", evidence, "fact")


def _writer(name: str) -> Callable[[float], str]:
    if name.endswith("_bps"):
        return rate
    return share if name.endswith(("loss_rate", "utilisation")) else duration
