"""Sojourn: packets through managed queues, simulated.

    >>> import sojourn as sj
    >>> uplink = sj.Link(rate="10mbit", qdisc=sj.CoDel(limit="300kB"))
    >>> bulk = sj.Flow(name="bulk", source=sj.Bulk(), path=["up"], rtt="50ms")
    >>> case = sj.Scenario(duration="20s", warmup="5s", links={"up": uplink}, flows=[bulk])
    >>> sj.simulate(case).links["up"].sojourn_p99_s < 0.02
    True

Names are imported when they are first used, so that the command answers at once.
"""

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, without the time that importing typing takes
if TYPE_CHECKING:
    from typing import Any

    from sojourn._sojourn import InputError as InputError
    from sojourn.engines.simulate import simulate as simulate
    from sojourn.engines.simulate import simulate_many as simulate_many
    from sojourn.live.emulate import emulate as emulate
    from sojourn.plotting.comparison import draw_comparison as draw_comparison
    from sojourn.plotting.run import draw as draw
    from sojourn.plotting.sweep import plot as plot
    from sojourn.result.io import load_result as load_result
    from sojourn.result.result import Result as Result
    from sojourn.scenario.advice import ScenarioWarning as ScenarioWarning
    from sojourn.scenario.advice import StoreWarning as StoreWarning
    from sojourn.scenario.algorithms import *  # noqa: F403
    from sojourn.scenario.load import Change as Change
    from sojourn.scenario.load import Flow as Flow
    from sojourn.scenario.load import Link as Link
    from sojourn.scenario.load import Scenario as Scenario
    from sojourn.scenario.load import load as load
    from sojourn.scenario.packet_trace import trace as trace
    from sojourn.sweeps.compare import Comparison as Comparison
    from sojourn.sweeps.compare import compare as compare
    from sojourn.sweeps.compare import load_comparison as load_comparison
    from sojourn.sweeps.query import results as results
    from sojourn.sweeps.spec import sweep as sweep

    __version__: str

_HOME = {
    "InputError": "_sojourn",
    "ScenarioWarning": "scenario.advice",
    "StoreWarning": "scenario.advice",
    "Comparison": "sweeps.compare",
    "compare": "sweeps.compare",
    "load_comparison": "sweeps.compare",
    "draw": "plotting.run",
    "draw_comparison": "plotting.comparison",
    "emulate": "live.emulate",
    "plot": "plotting.sweep",
    "Result": "result.result",
    "results": "sweeps.query",
    "simulate": "engines.simulate",
    "simulate_many": "engines.simulate",
    "Change": "scenario.load",
    "Flow": "scenario.load",
    "Link": "scenario.load",
    "Scenario": "scenario.load",
    "load": "scenario.load",
    "load_result": "result.io",
    "sweep": "sweeps.spec",
    "trace": "scenario.packet_trace",
}


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        return import_module("sojourn._sojourn").version()
    if name in _HOME:
        return getattr(import_module(f"sojourn.{_HOME[name]}"), name)
    if name[:1].isupper():  # others are modules, which Python asks for here first
        models = import_module("sojourn.scenario.algorithms")
        if name in models.__all__:
            return getattr(models, name)
    absent = import_module("sojourn.scenario.missing").find(name) if name[:1].isupper() else None
    hint = f": {import_module('sojourn.scenario.missing').refusal(absent, name)}" if absent else ""
    raise AttributeError(f"module 'sojourn' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *import_module("sojourn.scenario.algorithms").__all__, "__version__"})
