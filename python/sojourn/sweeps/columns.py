"""Columns of a sweep: values of every link and group, and chosen metrics.

The arguments of metrics are validated before any run: their types and ranges, and that the links,
flows and recorded data that they need exist.
"""

import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from types import NoneType
from typing import Any, TypeAlias, get_type_hints

from sojourn import metrics
from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util.inputs import near, shown
from sojourn.result import select
from sojourn.result.distribution import Distribution
from sojourn.result.result import Record, Result
from sojourn.scenario.draft import Table

FORM = "4"
"""Version of the columns; incremented when a column changes its meaning."""

Arguments: TypeAlias = tuple[tuple[str, Any], ...]
Chosen: TypeAlias = tuple[tuple[str, Arguments], ...]

SUMMARISED = (50, 95, 99, 100)
"""Percentiles of the queueing delay that summaries have, so that `packet_log` is not required."""

TEMPLATE = """{"duration": "1ms", "links": {"l": {"rate": "1mbit"}}, "flows": [
    {"name": "tcp", "path": ["l"]}, {"name": "udp", "path": ["l"], "source": "cbr"}]}"""
"""Minimal scenario, which shows the names of the values of every run."""


def _is_number(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # Excludes infinity and integers beyond the range of a float.
    return abs(value) <= sys.float_info.max and least <= value <= most


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(of, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_span(value: Any) -> bool:
    """Return True for a pair of sizes in ascending order; the upper one may be infinite."""
    two = isinstance(value, list | tuple) and len(value) == 2
    upper = two and (_is_number(value[1], 0) or value[1] == math.inf)
    return bool(two and upper and _is_number(value[0], 0) and value[0] < value[1])


_NAME = (_is_text, "a name")
_TIME = (lambda value: _is_number(value, 0), "a number of seconds, 0 or more")
_LENGTH = (lambda value: _is_number(value, 1e-9), "a number of seconds above 0")

ARGUMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "link": _NAME,
    "group": _NAME,
    "flow": _NAME,
    "groups": (lambda value: _is_list(value, _is_text), "a list of names"),
    "weights": (
        lambda value: _is_list(value, lambda one: _is_number(one, 1e-300)),
        "a list of numbers above 0",
    ),
    "percent": (lambda value: _is_number(value, 0, 100), "a number from 0 to 100"),
    "sizes": (_is_span, "two numbers of bytes, the smaller one first"),
    "wire": (lambda value: isinstance(value, bool), "true or false"),
    "at_s": _TIME,
    "from_s": _TIME,
    "until_s": _TIME,
    "window_s": _LENGTH,
    "before_s": _LENGTH,
    "after_s": _LENGTH,
}
"""Arguments of metrics by name: a predicate of the value, and a description of allowed values."""


@dataclass(frozen=True)
class Standard:
    """The measure of sweeps (see `sojourn.sweeps.runner.Measure`).

    Columns of `link` have no prefix (`utilisation`, `sojourn_p99_s`). Columns of other links are
    called `LINK.name`, columns of a group of flows `GROUP.name`. `chosen` are metrics with their
    arguments, each with a single number as its value; their default `link` is `link`. A metric of a
    flow, called with a group of several flows, is the mean over the flows. The value is None if the
    run does not have the link, flow or group.
    """

    link: str
    chosen: Chosen = ()

    @property
    def identity(self) -> str:
        """Identity of the measure in cache keys."""
        return f"sojourn.standard {FORM} {json.dumps([self.link, self.chosen])}"

    def __call__(self, result: Result) -> dict[str, Any]:
        """Return the columns of a run."""
        row: dict[str, Any] = {}
        for name, link in result.links.items():
            prefix = "" if name == self.link else f"{name}."
            row |= {f"{prefix}{what}": value for what, value in _numbers(link)}
            row[f"{prefix}sojourn_values"] = _text(result.distributions.get(f"sojourn/{name}"))
        for name, switch in result.switches.items():
            row |= {f"{name}.{what}": value for what, value in _numbers(switch)}
        for name in result.group_series:
            row |= {f"{name}.{what}": value for what, value in of_group(result, name).items()}
        for name, arguments in self.chosen:
            row[column(name, arguments)] = self._metric(result, name, dict(arguments))
        return row

    def columns(self, canonical: Table) -> list[str]:
        """Return the names of the columns of a run of a canonical scenario."""
        template, switches = _template(), canonical.get("switches", {})
        names: list[str] = []
        for link in canonical["links"]:
            prefix = "" if link == self.link else f"{link}."
            names += [f"{prefix}{what}" for what in template["link"]]
            if any(link in switch["ports"] for switch in switches.values()):
                names += [f"{prefix}{what}" for what in OF_PORTS]
        names += [f"{switch}.buffer_max_bytes" for switch in switches]
        for flow in canonical["flows"]:
            kind = "tcp" if "tcp" in flow else "udp"
            names += [f"{flow['name']}.{what}" for what in template[kind]]
        return names + [column(name, arguments) for name, arguments in self.chosen]

    def missing(self, canonical: Table) -> list[tuple[str, str]]:
        """Return the links, flows and groups that metrics name and the scenario does not have.

        Returns
        -------
        list of (str, str)
            Path of the argument, and the message.

        Raises
        ------
        InputError
            If a metric cannot be measured for another reason, such as a missing `sample`.
        """
        faults = []
        groups = {flow["name"]: flow["count"] for flow in canonical["flows"]}
        flows = [f"{name}.{i}" for name, n in groups.items() if n > 1 for i in range(min(n, 20))]
        for n, (name, arguments) in enumerate(self.chosen):
            options = dict(arguments)
            if (needs := _needs(name, options)) and not canonical.get(needs):
                value = '"100ms"' if needs == "sample" else "true"
                advice = f"{name} requires {needs} of the scenario, like {needs} = {value}"
                raise InputError(f"metrics.{n}: {advice}")
            for key, known in (("link", list(canonical["links"])), ("group", list(groups))):
                if key in options and options[key] not in known:
                    faults.append((f"metrics.{n}.{key}", _unknown(key, options[key], known)))
            for i, group in enumerate(options.get("groups", ())):
                if group not in groups:
                    message = _unknown("group", group, list(groups))
                    faults.append((f"metrics.{n}.groups.{i}", message))
            if "flow" in options and not _has_flow(groups, options["flow"]):
                message = _unknown("flow", options["flow"], [*groups, *flows])
                faults.append((f"metrics.{n}.flow", message))
            among = len(options["groups"]) if "groups" in options else sum(groups.values())
            if "weights" in options and len(options["weights"]) != among:
                what = "groups" if "groups" in options else "flows"
                message = f"{len(options['weights'])} weights for {among} {what}"
                raise InputError(f"metrics.{n}.weights: {message}")
        return faults

    def _metric(self, result: Result, name: str, arguments: dict[str, Any]) -> float | None:
        function = metrics.METRICS[name].function
        if "link" in inspect.signature(function).parameters:
            arguments = {"link": self.link, **arguments}
        groups = [*arguments.get("groups", ()), *filter(None, [arguments.get("group")])]
        if not set(groups) <= set(result.group_series) or (
            "link" in arguments and arguments["link"] not in result.links
        ):
            return None
        if "flow" not in arguments:
            return _finite(function(result, **arguments))
        flow = arguments.pop("flow")
        every = [name for name, one in result.flows.items() if flow in (name, one["group"])]
        values = [_finite(function(result, flow=one, **arguments)) for one in every]
        numbers = [value for value in values if value is not None]
        return fmean(numbers) if numbers else None


def read_metrics(spec: Any) -> Chosen:
    """Read a list of metrics: names, or tables with a name and arguments.

    Raises
    ------
    InputError
        If an entry is not a metric with a single number as its value, or an argument is invalid.
        The message begins with the path of the entry.
    """
    if not isinstance(spec, Sequence) or isinstance(spec, str):
        raise InputError(f'metrics: {shown(spec)} is not a list of names, like ["jain_index"]')
    metrics: list[tuple[str, Arguments]] = []
    for n, one in enumerate(spec):
        where = f"metrics.{n}"
        tree = {"name": one} if isinstance(one, str) else one
        if not isinstance(tree, Mapping) or not isinstance(tree.get("name"), str):
            raise InputError(f"{where}: {shown(one)} is not a name, nor a table with a name")
        arguments = {key: value for key, value in tree.items() if key != "name"}
        _check_metric(where, tree["name"], arguments)
        chosen = (tree["name"], tuple(sorted(arguments.items())))
        if chosen in metrics:
            raise InputError(f"{where}: {column(*chosen)} is given twice")
        metrics.append(chosen)
    return tuple(metrics)


def _check_metric(where: str, name: str, arguments: Mapping[str, Any]) -> None:
    if name not in metrics.METRICS:
        raise InputError(f"{where}: unknown metric {shown(name)}{near(name, metrics.METRICS)}")
    function = metrics.METRICS[name].function
    parameters = list(inspect.signature(function).parameters.values())[1:]
    takes = [one.name for one in parameters]
    if "reference" in takes:
        raise InputError(f"{where}: {name} compares two runs; a sweep measures single runs")
    if get_type_hints(function)["return"] not in (int, float, float | None):
        raise InputError(f"{where}: {name} is not a single number, which a column of a sweep is")
    for key, value in arguments.items():
        if key not in takes:
            raise InputError(f"{where}: {name} has no argument {shown(key)}{near(key, takes)}")
        is_good, allowed = ARGUMENTS[key]
        if not is_good(value):
            raise InputError(f"{where}.{key}: {shown(value)} is not {allowed}")
    for one in parameters:
        if one.default is inspect.Parameter.empty and one.name not in ("link", *arguments):
            allowed = ARGUMENTS[one.name][1]
            raise InputError(f"{where}.{one.name}: is missing, {name} requires {allowed}")


def _needs(name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the key that a metric requires of a scenario (`sample` or `packet_log`), or None."""
    if name == "queueing_delay_percentile_s":
        return None if arguments.get("percent", SUMMARISED[0]) in SUMMARISED else "packet_log"
    return metrics.METRICS[name].needs


def _has_flow(groups: Mapping[str, int], flow: str) -> bool:
    group, dot, number = flow.rpartition(".")
    if flow in groups or not dot:
        return flow in groups
    return bool(re.fullmatch(r"0|[1-9][0-9]{0,8}", number)) and 1 < groups.get(group, 0) > int(
        number
    )


def _unknown(what: str, name: str, known: list[str]) -> str:
    return f"unknown {what} {shown(name)}{near(name, known)}"


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


OF_PORTS = ("dropped_buffer_packets", "queue_max_bytes")
"""Columns that only the ports of a switch have."""


@cache
def _template() -> dict[str, list[str]]:
    """Return the names of the columns of a link, of a TCP group and of a UDP group."""
    result = Result(*ParsedScenario(TEMPLATE).simulate())
    columns = {group: list(of_group(result, group)) for group in ("tcp", "udp")}
    link = [name for name, _ in _numbers(result.links["l"])]
    return columns | {"link": [*link, "sojourn_values"]}


def column(name: str, arguments: Sequence[tuple[str, Any]]) -> str:
    """Return the column name of a metric with its arguments, like `jain_index(weights=[1, 2])`."""
    text = ",".join(f"{key}={value}" for key, value in arguments)
    return f"{name}({text})" if text else name


def of_group(result: Result, name: str) -> dict[str, Any]:
    """Return the columns of a group of flows.

    `goodput_bps` is the sum over the flows, `jain` their fairness index. Completion times (s)
    cover transfers that started after the warm-up; `unfinished` counts transfers under way at the
    end. `delay_p99_s` is the largest of any flow.
    """
    flows = select.flows_of(result, name)
    took = metrics.completion_times_s(result, name)
    unfinished = [flow["unfinished"] for flow in flows if "unfinished" in flow]
    row: dict[str, Any] = {
        "goodput_bps": float(sum(flow["goodput_bps"] for flow in flows)),
        "jain": select.jain([flow["goodput_bps"] for flow in flows]),
        "completed": len(took),
        "unfinished": float(sum(unfinished)) if unfinished else None,
        "fct_mean_s": float(took.mean()) if len(took) else None,
        "fct_p50_s": select.nearest_rank(took, 0.5),
        "fct_p99_s": select.nearest_rank(took, 0.99),
        "fct_values": _text(Distribution.of(took)),
    }
    if flows and flows[0]["kind"] == "udp":
        delays = [flow["delay_p99_s"] for flow in flows if flow["delay_p99_s"] is not None]
        row |= {
            "loss_rate": select.loss_of_datagrams(flows),
            "lost_packets": float(sum(flow["lost_packets"] for flow in flows)),
            "delay_p99_s": max(delays, default=None),
            "delay_values": _of_single(result, flows, f"delay/{name}"),
            "frame_delay_values": _of_single(result, flows, f"frame_delay/{name}"),
        }
    else:
        for what in ("sent_packets", "retransmitted_packets", "timeouts"):
            counts = [flow[what] for flow in flows]  # some kernels do not count timeouts
            row[what] = None if None in counts else float(sum(counts))
    return row


def _of_single(result: Result, flows: Sequence[Record], key: str) -> str | None:
    """Return a distribution of a single flow: the largest percentile of several is none of all."""
    return _text(result.distributions.get(key)) if len(flows) == 1 else None


def _text(distribution: Distribution | None) -> str | None:
    """Return a distribution as text; None without values."""
    return distribution.text() if distribution is not None and distribution.number else None


def _numbers(record: Record) -> list[tuple[str, float | None]]:
    """Return the values of a summary that are numbers or None."""
    return [
        (name, value)
        for name, value in record.items()
        if type(value) in (float, int, NoneType)  # a flag is of type bool
    ]
