"""Searches for a recommendation: a line, a trial of Optuna, and facts of a run."""

from sojourn.recommendation import line

HOME = line.make("20mbit", "5mbit", "20ms..60ms", "home")


class Suggests:
    """Trial of Optuna that suggests values by name, and keeps the ranges it was asked for."""

    def __init__(self, **values: float) -> None:
        self.values, self.ranges = values, dict[str, tuple[float, float]]()

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        """Return the value of a name."""
        assert log
        self.ranges[name] = (low, high)
        return self.values[name.partition(".")[2]]


def facts_of(cost: float) -> dict[str, float]:
    """Return facts whose `delay_s` is the cost."""
    return {"delay_s": cost, "loss": 0.0, "transfer_s": 0.0, "use": 1.0, "jain": 1.0}
