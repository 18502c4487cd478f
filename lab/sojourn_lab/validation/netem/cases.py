"""Cases: words of netem, and the same link in sojourn."""

from dataclasses import dataclass
from typing import Any

from sojourn import tc_netem

SIZE = 500
"""Length of the IP packets of the probe, bytes."""


@dataclass(frozen=True)
class Case:
    """Impairments of a link, and what is to be compared."""

    name: str
    link: dict[str, Any]

    @property
    def kind(self) -> str:
        """First word of the name."""
        return self.name.split()[0].rstrip(",")

    @property
    def is_counted(self) -> bool:
        """True if the figures are counts, which do not depend on the clock of the machine."""
        return self.kind in ("loss", "duplicate", "corrupt")

    @property
    def words(self) -> str:
        """Words of netem, as `sojourn tc export` writes them."""
        import json

        from sojourn import _sojourn

        text = json.dumps({"up": {"rate": "100gbit", **self.link}})
        link = json.loads(_sojourn.canonical_links(text))["up"]
        words, lost = tc_netem.words(link)
        assert not [one for one in lost if not one.startswith("loss:")], lost
        return words


STATES = {"p13": 0.05, "p31": 0.3, "p32": 0.2, "p23": 0.4, "p14": 0.01}
BURSTS = {"p": 0.02, "r": 0.2, "1-h": 0.9, "1-k": 0.005}


def _jitter(distribution: str, correlation: float = 0.0) -> dict[str, Any]:
    jitter = {"size": "20ms", "distribution": distribution, "correlation": correlation}
    return {"delay": "100ms", "jitter": jitter}


CASES = (
    Case("jitter, uniform", _jitter("uniform")),
    Case("jitter, normal", _jitter("normal")),
    Case("jitter, pareto", _jitter("pareto")),
    Case("jitter, paretonormal", _jitter("paretonormal")),
    Case("jitter, correlation 0.5", _jitter("uniform", 0.5)),
    Case("reorder 0.25", {"delay": "20ms", "reorder": 0.25}),
    Case(
        "reorder, correlation 0.5",
        {"delay": "20ms", "reorder": {"probability": 0.4, "correlation": 0.5}},
    ),
    Case("reorder, gap 5", {"delay": "20ms", "reorder": {"probability": 0.5, "gap": 5}}),
    Case("loss 0.1", {"loss": 0.1}),
    Case("loss, correlation 0.25", {"loss": {"probability": 0.3, "correlation": 0.25}}),
    Case("loss, four states", {"loss": STATES}),
    Case("loss, Gilbert-Elliott", {"loss": BURSTS}),
    Case("duplicate 0.1", {"delay": "20ms", "duplicate": 0.1}),
    Case("corrupt 0.1", {"corrupt": 0.1}),
    Case("slots", {"delay": "20ms", "slot": {"min": "20ms", "max": "40ms"}}),
    Case("limit 50", {"delay": "100ms", "in_flight_limit": "50p"}),
)
