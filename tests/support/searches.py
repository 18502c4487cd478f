"""Searches for a recommendation: a line, and facts of a run."""

from sojourn.recommendation import line

HOME = line.make("20mbit", "5mbit", "20ms..60ms", "home")


def facts_of(cost: float) -> dict[str, float]:
    """Return facts whose `delay_s` is the cost."""
    return {
        "delay_s": cost,
        "loss": 0.0,
        "response_s": 0.05,
        "self_s": 0.01,
        "worst_s": 0.04,
        "transfer_s": 0.1,
        "tail_s": 0.26,
        "use": 1.0,
        "jain": 1.0,
        "hosts": 1.0,
        "rtt_s": 0.04,
        "page_s": 0.13,
    }
