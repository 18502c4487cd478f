"""Sojourn: packet-level simulation of managed queues, on simulated links and real packets.

    >>> import sojourn as sj
    >>> uplink = sj.Link(rate="10mbit", qdisc=sj.CoDel(limit="300kB"))
    >>> bulk = sj.Flow(name="bulk", source=sj.Bulk(), path=["up"], rtt="50ms")
    >>> case = sj.Scenario(duration="20s", warmup="5s", links={"up": uplink}, flows=[bulk])
    >>> sj.simulate(case).links["up"].sojourn_p99_s < 0.02
    True

All disciplines are in `sj.qdisc`, all TCPs in `sj.tcp`, all sources in `sj.source`; the common ones
are here too. `sj.tc` reads and writes the language of Linux's tc. Names are imported at first use,
which keeps the start of the command fast.
"""

from importlib import import_module

TYPE_CHECKING = False  # importing typing would cost time
if TYPE_CHECKING:
    from sojourn import qdisc as qdisc
    from sojourn import source as source
    from sojourn import tc as tc
    from sojourn import tcp as tcp
    from sojourn._sojourn import InputError as InputError
    from sojourn.custom.aqm import DROP as DROP
    from sojourn.custom.aqm import DROP_HEAD as DROP_HEAD
    from sojourn.custom.aqm import MARK as MARK
    from sojourn.custom.aqm import PASS as PASS
    from sojourn.custom.aqm import Aqm as Aqm
    from sojourn.custom.aqm import Bytes as Bytes
    from sojourn.custom.aqm import Duration as Duration
    from sojourn.custom.aqm import Rate as Rate
    from sojourn.custom.check import Checks as Checks
    from sojourn.custom.check import check as check
    from sojourn.custom.control import CongestionControl as CongestionControl
    from sojourn.custom.source import TrafficSource as TrafficSource
    from sojourn.engines.simulate import simulate as simulate
    from sojourn.engines.simulate import simulate_many as simulate_many
    from sojourn.engines.stepping import Simulation as Simulation
    from sojourn.evaluation.result import Evaluation as Evaluation
    from sojourn.evaluation.run import evaluate as evaluate
    from sojourn.explanation.finding import Finding as Finding
    from sojourn.explanation.rules import explain as explain
    from sojourn.live.emulate import emulate as emulate
    from sojourn.plotting.comparison import draw_comparison as draw_comparison
    from sojourn.plotting.run import draw as draw
    from sojourn.plotting.sweep import plot as plot
    from sojourn.qdisc import CoDel as CoDel
    from sojourn.qdisc import DropTail as DropTail
    from sojourn.qdisc import FqCoDel as FqCoDel
    from sojourn.qdisc import Pie as Pie
    from sojourn.qdisc import Red as Red
    from sojourn.recommendation.answer import Recommendation as Recommendation
    from sojourn.recommendation.answer import recommend as recommend
    from sojourn.result.exchange import write_flent as write_flent
    from sojourn.result.exchange import write_mahimahi as write_mahimahi
    from sojourn.result.io import load_result as load_result
    from sojourn.result.result import Result as Result
    from sojourn.scenario.advice import ScenarioWarning as ScenarioWarning
    from sojourn.scenario.advice import StoreWarning as StoreWarning
    from sojourn.scenario.keys import Change as Change
    from sojourn.scenario.keys import Flow as Flow
    from sojourn.scenario.keys import Link as Link
    from sojourn.scenario.keys import Scenario as Scenario
    from sojourn.scenario.packet_trace import load_trace as load_trace
    from sojourn.scenario.save import save_scenario as save_scenario
    from sojourn.scenario.topologies import dumbbell as dumbbell
    from sojourn.scenario.topologies import fat_tree as fat_tree
    from sojourn.scenario.topologies import parking_lot as parking_lot
    from sojourn.scenario.topologies import star as star
    from sojourn.scenario.topologies import two_way_line as two_way_line
    from sojourn.scenario.typed import load as load
    from sojourn.scenario.typed import named as named
    from sojourn.source import Bulk as Bulk
    from sojourn.source import Cbr as Cbr
    from sojourn.source import Transfers as Transfers
    from sojourn.sweeps.compare import Comparison as Comparison
    from sojourn.sweeps.compare import compare as compare
    from sojourn.sweeps.compare import load_comparison as load_comparison
    from sojourn.sweeps.failures import RunError as RunError
    from sojourn.sweeps.query import differences as differences
    from sojourn.sweeps.query import means as means
    from sojourn.sweeps.query import results as results
    from sojourn.sweeps.spec import sweep as sweep
    from sojourn.tcp import Bbr as Bbr
    from sojourn.tcp import Cubic as Cubic
    from sojourn.tcp import NewReno as NewReno

    __all__: list[str]
    __version__: str

MODULES = ("qdisc", "tcp", "source")
"""Modules with all disciplines, TCPs and traffic sources."""

TOOLS = ("tc",)
"""Further public modules."""

COMMON = {
    "CoDel": "qdisc",
    "DropTail": "qdisc",
    "FqCoDel": "qdisc",
    "Pie": "qdisc",
    "Red": "qdisc",
    "Bbr": "tcp",
    "Cubic": "tcp",
    "NewReno": "tcp",
    "Bulk": "source",
    "Cbr": "source",
    "Transfers": "source",
}
"""Classes of these modules that are also available at top level, with their module."""

_HOME = {
    # Functions.
    "check": "custom.check",
    "compare": "sweeps.compare",
    "differences": "sweeps.query",
    "draw": "plotting.run",
    "draw_comparison": "plotting.comparison",
    "dumbbell": "scenario.topologies",
    "emulate": "live.emulate",
    "evaluate": "evaluation.run",
    "explain": "explanation.rules",
    "fat_tree": "scenario.topologies",
    "load": "scenario.typed",
    "load_comparison": "sweeps.compare",
    "load_result": "result.io",
    "load_trace": "scenario.packet_trace",
    "means": "sweeps.query",
    "named": "scenario.typed",
    "parking_lot": "scenario.topologies",
    "plot": "plotting.sweep",
    "recommend": "recommendation.answer",
    "results": "sweeps.query",
    "save_scenario": "scenario.save",
    "simulate": "engines.simulate",
    "simulate_many": "engines.simulate",
    "star": "scenario.topologies",
    "sweep": "sweeps.spec",
    "two_way_line": "scenario.topologies",
    "write_flent": "result.exchange",
    "write_mahimahi": "result.exchange",
    # Types.
    "Checks": "custom.check",
    "Change": "scenario.keys",
    "Comparison": "sweeps.compare",
    "Evaluation": "evaluation.result",
    "Finding": "explanation.finding",
    "Flow": "scenario.keys",
    "InputError": "_sojourn",
    "Link": "scenario.keys",
    "Recommendation": "recommendation.answer",
    "Result": "result.result",
    "Scenario": "scenario.keys",
    "ScenarioWarning": "scenario.advice",
    "Simulation": "engines.stepping",
    "RunError": "sweeps.failures",
    "StoreWarning": "scenario.advice",
    # Disciplines, congestion controls and sources that are written in Python.
    "Aqm": "custom.aqm",
    "Bytes": "custom.aqm",
    "CongestionControl": "custom.control",
    "DROP": "custom.aqm",
    "DROP_HEAD": "custom.aqm",
    "Duration": "custom.aqm",
    "MARK": "custom.aqm",
    "PASS": "custom.aqm",
    "Rate": "custom.aqm",
    "TrafficSource": "custom.source",
    # Common disciplines, TCPs and sources.
    **COMMON,
}


if not TYPE_CHECKING:  # or type checkers would accept every name
    __all__ = [*_HOME, *MODULES, *TOOLS]

    def __getattr__(name):
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
