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
    from sojourn.advice import ScenarioWarning as ScenarioWarning
    from sojourn.advice import StoreWarning as StoreWarning
    from sojourn.comparison import Comparison as Comparison
    from sojourn.comparison import compare as compare
    from sojourn.comparison import load_comparison as load_comparison
    from sojourn.figure import draw as draw
    from sojourn.figure_comparison import draw_comparison as draw_comparison
    from sojourn.models import *  # noqa: F403
    from sojourn.plots import plot as plot
    from sojourn.query import results as results
    from sojourn.real import play as play
    from sojourn.result import Result as Result
    from sojourn.run import simulate as simulate
    from sojourn.run import simulate_many as simulate_many
    from sojourn.scenario import Change as Change
    from sojourn.scenario import Flow as Flow
    from sojourn.scenario import Link as Link
    from sojourn.scenario import Scenario as Scenario
    from sojourn.scenario import load as load
    from sojourn.stored import load_result as load_result
    from sojourn.sweeps import sweep as sweep
    from sojourn.traces import trace as trace

    __version__: str

_HOME = {
    "InputError": "_sojourn",
    "ScenarioWarning": "advice",
    "StoreWarning": "advice",
    "Comparison": "comparison",
    "compare": "comparison",
    "load_comparison": "comparison",
    "draw": "figure",
    "draw_comparison": "figure_comparison",
    "play": "real",
    "plot": "plots",
    "Result": "result",
    "results": "query",
    "simulate": "run",
    "simulate_many": "run",
    "Change": "scenario",
    "Flow": "scenario",
    "Link": "scenario",
    "Scenario": "scenario",
    "load": "scenario",
    "load_result": "stored",
    "sweep": "sweeps",
    "trace": "traces",
}


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        return import_module("sojourn._sojourn").version()
    if name in _HOME:
        return getattr(import_module(f"sojourn.{_HOME[name]}"), name)
    if name[:1].isupper():  # others are modules, which Python asks for here first
        models = import_module("sojourn.models")
        if name in models.__all__:
            return getattr(models, name)
    absent = import_module("sojourn.missing").find(name) if name[:1].isupper() else None
    hint = f": {import_module('sojourn.missing').refusal(absent, name)}" if absent else ""
    raise AttributeError(f"module 'sojourn' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *import_module("sojourn.models").__all__, "__version__"})
