"""A sentence about a result, and the values that it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sojourn._util.public import public
from sojourn._util.units import duration

Kind = Literal["unusual", "fact"]

ALIKE = 10
"""Largest number of findings of the same rule that are printed; further ones are counted."""


@public
@dataclass(frozen=True)
class Finding:
    """Sentence about a result.

    Attributes
    ----------
    rule : str
        Name of the rule.
    text : str
        The sentence.
    evidence : dict
        Values that it rests on, by the path of the metric, like `links.up.utilisation`.
    kind : str
        "unusual", or "fact" for a description.
    change : tuple of str
        Settings of the scenario that would remove the cause, like `up.qdisc=fq_codel`; empty if the
        rule proposes none. `sojourn explain --try` runs them.
    """

    rule: str
    text: str
    evidence: Mapping[str, Any]
    kind: Kind = "unusual"
    change: tuple[str, ...] = ()


def verdict(findings: Sequence[Finding]) -> str:
    """Return findings in one sentence: the standing queues, and the rules that reported others."""
    unusual = [one for one in findings if one.kind == "unusual"]
    standing = [one for one in unusual if one.rule == "standing queue"]
    others = list(dict.fromkeys(one.rule for one in unusual if one not in standing))
    if not unusual:
        return "Nothing unusual."
    if not standing:
        return f"No standing queue; unusual: {', '.join(others)}."
    queues = []
    for one in standing[:ALIKE]:
        path, median = next(iter(one.evidence.items()))
        queues.append(f"{path.split('.')[1]} ({duration(median)}, median)")
    if len(standing) > ALIKE:
        queues.append(f"{len(standing) - ALIKE} more")
    also = f"; also unusual: {', '.join(others)}" if others else ""
    return f"Packets waited in a standing queue of link {' and '.join(queues)}{also}."
