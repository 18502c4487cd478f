"""What a sweep keeps of every run: the numbers of its links and groups, and chosen metrics."""

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn import metrics, reading
from sojourn._sojourn import InputError
from sojourn.inputs import near
from sojourn.result import Record, Result

FORM = "1"
"""Grows when a column changes its meaning."""


@dataclass(frozen=True)
class Standard:
    """Measures a run, as `sojourn.campaign.Measure`.

    The numbers of `link` have bare names (`utilisation`, `sojourn_p99_s`), those of other links
    `LINK.name`, those of a group of flows `GROUP.name`. `chosen` are metrics of `sojourn list
    metrics` that give one number, each with its arguments; a `link` that they ask for is `link`.
    """

    link: str
    chosen: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    @property
    def identity(self) -> str:
        """What rows in a store are known by."""
        return f"sojourn.standard {FORM} {json.dumps([self.link, self.chosen])}"

    def __call__(self, result: Result) -> dict[str, Any]:
        """Measure."""
        row: dict[str, Any] = {}
        for name, link in result.links.items():
            prefix = "" if name == self.link else f"{name}."
            row |= {f"{prefix}{what}": value for what, value in _numbers(link)}
        for name in result.groups:
            row |= {f"{name}.{what}": value for what, value in of_group(result, name).items()}
        for name, arguments in self.chosen:
            row[column(name, arguments)] = self._metric(result, name, dict(arguments))
        return row

    def _metric(self, result: Result, name: str, arguments: dict[str, Any]) -> float | None:
        one = metrics.METRICS[name]
        if "link" in inspect.signature(one.function).parameters:
            arguments = {"link": self.link, **arguments}
        value = one.function(result, **arguments)
        if value is not None and not isinstance(value, int | float):
            raise InputError(f"metrics: {name} gives no single number but {type(value).__name__}")
        return None if value is None or math.isnan(value) else float(value)


def read_metrics(given: Sequence[Any]) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    """Read a list of metrics: names, or tables with a name and arguments."""
    found = []
    for n, one in enumerate(given):
        tree = {"name": one} if isinstance(one, str) else one
        if not isinstance(tree, Mapping) or not isinstance(tree.get("name"), str):
            raise InputError(f"metrics.{n}: {one!r} is no name, and no table with a name")
        name = tree["name"]
        if name not in metrics.METRICS:
            known = list(metrics.METRICS)
            raise InputError(f'metrics.{n}: unknown metric "{name}"{near(name, known)}')
        takes = list(inspect.signature(metrics.METRICS[name].function).parameters)[1:]
        arguments = {key: value for key, value in tree.items() if key != "name"}
        for key in arguments:
            if key not in takes:
                raise InputError(f'metrics.{n}: {name} takes no "{key}"{near(key, takes)}')
        found.append((name, tuple(sorted(arguments.items()))))
    return tuple(found)


def column(name: str, arguments: Sequence[tuple[str, Any]]) -> str:
    """What the column of a metric is called: its name, and what it was given."""
    given = ",".join(f"{key}={value}" for key, value in arguments)
    return f"{name}({given})" if given else name


def of_group(result: Result, name: str) -> dict[str, float | None]:
    """Give the numbers of a group of flows as a whole.

    `goodput_bps` is their sum and `jain` its fairness; completion times (s) are of transfers that
    started after the warm-up; `delay_p99_s` is that of the flow which has the largest.
    """
    flows = reading.flows_of(result, name)
    took = metrics.completion_times_s(result, name)
    row: dict[str, float | None] = {
        "goodput_bps": float(sum(flow["goodput_bps"] for flow in flows)),
        "jain": reading.jain([flow["goodput_bps"] for flow in flows]),
        "completed": len(took),
        "fct_mean_s": float(took.mean()) if len(took) else None,
        "fct_p50_s": reading.nearest_rank(took, 0.5),
        "fct_p99_s": reading.nearest_rank(took, 0.99),
    }
    if flows and flows[0]["kind"] == "udp":
        delays = [flow["delay_p99_s"] for flow in flows if flow["delay_p99_s"] is not None]
        row |= {
            "loss_rate": reading.loss_of_datagrams(flows),
            "delay_p99_s": max(delays, default=None),
        }
    else:
        for what in ("sent_packets", "retransmitted_packets", "timeouts"):
            row[what] = float(sum(flow[what] for flow in flows))
    return row


def _numbers(record: Record) -> list[tuple[str, float | None]]:
    """Give what is a number in a summary, or could be one."""
    return [
        (name, value)
        for name, value in record.items()
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    ]
