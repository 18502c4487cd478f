"""Sojourn: packet-level simulation of managed queues, on simulated links and real packets.

    >>> import sojourn as sj
    >>> uplink = sj.Link(rate="10mbit", qdisc=sj.CoDel(limit="300kB"))
    >>> bulk = sj.Flow(name="bulk", source=sj.Bulk(), path=["up"], rtt="50ms")
    >>> case = sj.Scenario(duration="20s", warmup="5s", links={"up": uplink}, flows=[bulk])
    >>> sj.simulate(case).links["up"].sojourn_p99_s < 0.02
    True

All disciplines are in `sj.qdisc`, all TCPs in `sj.tcp`, all sources in `sj.source`; the common ones
are here too. `sj.tc` reads and writes the language of Linux's tc. `sj.Qdisc` and `sj.TimedLink`
(`sj.embed`) are a discipline and a link for programs with a time of their own. Names are imported
at first use, which keeps the start of the command fast.
"""

from importlib import import_module

_PUBLIC = {
    "_sojourn": "InputError",
    "custom.aqm": "Aqm Bytes DROP DROP_HEAD Duration MARK PASS Rate",
    "custom.check": "Checks check",
    "custom.control": "CongestionControl",
    "custom.source": "TrafficSource",
    "custom.telemetry": "LinkTelemetry",
    "embed": "Qdisc TimedLink",
    "engines.simulate": "simulate simulate_many",
    "engines.stepping": "Simulation",
    "evaluation.result": "Evaluation",
    "evaluation.run": "evaluate",
    "explanation.finding": "Finding",
    "explanation.rules": "explain",
    "explanation.why": "explain_difference",
    "live.emulate": "emulate",
    "plotting.capacity": "draw_capacity",
    "plotting.comparison": "draw_comparison",
    "plotting.run": "draw",
    "plotting.slowdown": "draw_slowdown",
    "plotting.sweep": "plot",
    "qdisc": "CoDel DropTail FqCoDel Pie Red",
    "recommendation.answer": "Recommendation recommend",
    "result.exchange": "write_flent write_mahimahi",
    "result.io": "load_result",
    "result.result": "Result",
    "result.slowdown": "slowdown_bins",
    "result.transfers": "fct_table write_fct",
    "scenario.advice": "ScenarioWarning StoreWarning",
    "scenario.keys": "Change Flow Link Scenario Switch",
    "scenario.packet_trace": "load_trace",
    "scenario.save": "save_scenario",
    "scenario.data_centres": "fat_tree leaf_spine",
    "scenario.topologies": "dumbbell parking_lot star two_way_line",
    "scenario.typed": "load named",
    "source": "Bulk Cbr Transfers",
    "sweeps.capacity": "capacity",
    "sweeps.capacity_result": "CapacityResult",
    "sweeps.compare": "Comparison compare load_comparison",
    "sweeps.failures": "RunError",
    "sweeps.query": "differences means",
    "sweeps.results": "results",
    "sweeps.spec": "sweep",
    "tcp": "Bbr Cubic NewReno",
}
"""Public names by module. `make gen` writes them to __init__.pyi, for type checkers and editors."""

MODULES = ("qdisc", "tcp", "source")
"""Modules with all disciplines, TCPs and traffic sources."""

TOOLS = ("embed", "line", "tc")
"""Further public modules."""

COMMON = {name: module for module in MODULES for name in _PUBLIC[module].split()}
"""Classes of the modules that are also available at top level, with their module."""

_HOME = {name: module for module, names in _PUBLIC.items() for name in names.split()}
"""Module of each public name."""

__all__ = [*_HOME, *MODULES, *TOOLS]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("sojourn._sojourn").version()
    if name in _HOME:
        return getattr(import_module(f"sojourn.{_HOME[name]}"), name)
    if name in MODULES or name in TOOLS:
        return import_module(f"sojourn.{name}")
    raise AttributeError(f"module 'sojourn' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """Return where the class `name` is, or why there is none, as the end of a message."""
    if not name[:1].isupper():
        return ""
    for module in MODULES:
        if name in import_module(f"sojourn.{module}").__all__:
            return f": write sj.{module}.{name}"
    missing = import_module("sojourn.scenario.missing")
    absent = missing.find(name)
    return f": {missing.refusal(absent, name)}" if absent else ""


def __dir__() -> list[str]:
    return [*_HOME, *MODULES, *TOOLS, "__version__"]
