"""A sentence about a result, and the values that it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["unusual", "fact"]


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
    """

    rule: str
    text: str
    evidence: Mapping[str, Any]
    kind: Kind = "unusual"
