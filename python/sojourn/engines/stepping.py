"""A simulation that can be stepped, looked at, changed and copied while it runs."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.files import check_file, naming, replacing
from sojourn._util.html import html
from sojourn._util.inputs import near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.plain import plain
from sojourn._util.public import public
from sojourn.engines.snapshot_file import read_snapshot
from sojourn.engines.threads import Threads, count_of
from sojourn.result.result import Result, Values
from sojourn.scenario.advice import warn
from sojourn.scenario.draft import Described, parse

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

Progress = Callable[[float, int], bool | None]

KINDS = ("links", "flows")
"""Kinds of samples."""


class State(Values):
    """State of a link or flow at one time: values by name, as items or attributes."""

    __slots__ = ()


class States(Mapping[str, State]):
    """States by name. Each access looks at the simulation as it is then."""

    def __init__(self, look: Callable[[str], dict[str, Any]], names: Callable[[], list[str]]):
        self._look = look
        self._names = names

    def __getitem__(self, name: str) -> State:
        try:
            return State(self._look(name))
        except InputError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"States({', '.join(self)})"


@public
class Simulation:
    """A simulation of a scenario, at first at time zero.

    A run in steps gives the same result as `simulate`, byte for byte, whatever is looked at in
    between. At the current time everything earlier has happened, and nothing that is due then: a
    change made now precedes all other events of this time.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario, or the path of a .toml or .json file.
    trust : bool, optional
        True if Python code that the file of the scenario names may run. The default refuses it.
    threads : int or "auto", optional
        Number of threads of each step, as in `simulate`. Forks use the same number.

    Attributes
    ----------
    links : mapping of str to State
        State of each link: `rate_bps`, `delay_s`, `queue_packets`, `queue_bytes`, `utilisation`,
        counters of packets, and `gauges`, a dict with the variables of the discipline. Counters
        restart at zero when the warm-up ends. `sojourn_total_s` is the total time in the queue of
        the packets in `departed_packets`.
    flows : mapping of str to State
        State of each group of flows, with the sums of its flows, the means of `cwnd_packets` and
        `srtt_s`, and `gauges`, a dict with the means of the state of a congestion control in
        Python. A member of a group is ``flows["bulk.0"]``. Totals are from the start of the run.

    Raises
    ------
    InputError
        If the scenario or `threads` is invalid. The message names the path of the key.

    Warns
    -----
    ScenarioWarning
        If the scenario is valid but probably not what was intended.

    Examples
    --------
    >>> import sojourn as sj
    >>> uplink = sj.Link(rate="10mbit", qdisc=sj.CoDel())
    >>> bulk = sj.Flow(name="bulk", path=["up"], rtt="40ms")
    >>> sim = sj.Simulation(sj.Scenario(duration="10s", links={"up": uplink}, flows=[bulk]))
    >>> sim.run_until("5s")
    >>> sim.links["up"].queue_packets < 100
    True
    >>> slower = sim.fork()
    >>> slower.set("up.rate", "2mbit")
    >>> slower.run().flows["bulk"].goodput_bps < sim.run().flows["bulk"].goodput_bps
    True
    """

    def __init__(
        self, scenario: Described, *, trust: bool = False, threads: Threads = "auto"
    ) -> None:
        count = count_of(threads)
        parsed = parse(scenario, trust=trust)
        warn([json.loads(parsed.canonical())])
        self._start(_sojourn.Simulation(parsed, count), count)

    def _start(self, compiled: _sojourn.Simulation, count: int) -> None:
        self._threads = count
        self._use(compiled)
        self._samples: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}

    def _use(self, compiled: _sojourn.Simulation) -> None:
        self._compiled = compiled
        self.links = States(compiled.link, lambda: compiled.names()[0])
        self.flows = States(compiled.flow, lambda: compiled.names()[1])

    @property
    def now(self) -> float:
        """Current time in seconds."""
        return self._compiled.now_ns / 1e9

    @property
    def end(self) -> float:
        """End of the run in seconds."""
        return self._compiled.end_ns / 1e9

    @property
    def ended(self) -> bool:
        """True if the run is over."""
        return self._compiled.now_ns == self._compiled.end_ns

    @property
    def scenario(self) -> dict[str, Any]:
        """The canonical scenario, with the changes made so far.

        ``sj.simulate(sim.scenario)`` gives the result of a run with these changes.
        """
        tree: dict[str, Any] = json.loads(self._compiled.scenario())
        return tree

    def run_until(self, until: str, *, progress: Progress | None = None) -> None:
        """Simulate everything before a time.

        Parameters
        ----------
        until : str
            The time, like "10s". At the end of the run, what is due then happens as well.
        progress : callable, optional
            Called from time to time with the simulated share of the duration and the number of
            packets sent; if it returns False, the simulation stops with KeyboardInterrupt. It can
            be continued.

        Raises
        ------
        InputError
            If the time has no unit, is in the past, or is after the end of the run.
        """
        self._compiled.run_until(_text(until), progress)

    def step(self, duration: str, *, progress: Progress | None = None) -> None:
        """Simulate for a duration like "10ms", at most to the end of the run.

        `progress` is called as by `run_until`.

        Raises
        ------
        InputError
            If the duration has no unit, or the run is over.
        """
        self._compiled.step(_text(duration), progress)

    def run(self, *, progress: Progress | None = None) -> Result:
        """Simulate to the end of the run and return the result."""
        self._compiled.run_until(f"{self._compiled.end_ns}ns", progress)
        return self.result()

    def change(self, *, links: Mapping[str, Any] | None = None, leave: Any = None) -> None:
        """Change links and flows now, as an entry of the scenario's `changes` does.

        The change is recorded in `scenario`, here and in the result.

        Parameters
        ----------
        links : mapping, optional
            New settings by the name of the link, like ``{"up": {"rate": "5mbit"}}``.
        leave : str or list of str, optional
            Groups of flows that leave.

        Raises
        ------
        InputError
            If a scenario could not make the change, or the run is over. Nothing is changed then.
        """
        change: dict[str, Any] = {}
        if links is not None:
            change["links"] = plain(links)
        if leave is not None:
            change["leave"] = [leave] if isinstance(leave, str) else plain(leave)
        self._compiled.change(json.dumps(change))

    def set(self, key: str, value: Any) -> None:
        """Change one setting of a link now: ``sim.set("up.rate", "5mbit")``.

        Raises
        ------
        InputError
            As `change`, and for a key that is not LINK.KEY.
        """
        link, _, setting = key.removeprefix("links.").partition(".")
        if not setting:
            raise InputError(f"{shown(key)}: write it as LINK.KEY, like up.rate")
        names = self._compiled.names()[0]
        if link not in names:
            raise InputError(f"unknown link {shown(link)}{near(link, names)}")
        tree: Any = value
        for part in reversed(setting.split(".")):
            tree = {part: tree}
        self.change(links={link: tree})

    def stop(self, *flows: str) -> None:
        """Let groups of flows leave now: they send nothing from now on."""
        self.change(leave=list(flows))

    def add_flow(self, flow: Any, *, progress: Progress | None = None) -> None:
        """Let a new group of flows join now.

        The simulation is made again from its start with the group in its scenario, which takes as
        long as the simulation up to now. Everything earlier stays as it was.

        Parameters
        ----------
        flow : Flow or mapping
            The group, as in a scenario.
        progress : callable, optional
            Called as by `run_until`. If it stops the simulation, the group has not joined.

        Raises
        ------
        InputError
            If a scenario could not have the group, its name is in use, or the run is over.
        """
        if self.ended:
            raise InputError(f"the run ended at {self.end:g}s: no flow can join")
        group = plain(flow)
        name = group.get("name") if isinstance(group, dict) else None
        if not isinstance(name, str):
            raise InputError(f"{shown(flow)}: give a Flow, or a table with a name")
        now = f"{self._compiled.now_ns}ns"
        tree = self.scenario
        tree["flows"] = [*tree["flows"], group]
        tree["changes"] = [*tree.get("changes", ()), {"at": now, "join": [name]}]
        longer = _sojourn.Simulation(parse(tree), self._threads)
        longer.run_until(now, progress)
        self._use(longer)

    def result(self) -> Result:
        """Return the result as if the run ended now.

        Raises
        ------
        InputError
            If the warm-up is not over, so that nothing has been measured.
        """
        return Result(*self._compiled.result(), ())

    def fork(self) -> "Simulation":
        """Return an independent copy, with its samples, that continues in the same way."""
        copy = Simulation.__new__(Simulation)
        copy._start(self._compiled.fork(), self._threads)
        copy._samples = {kind: rows.copy() for kind, rows in self._samples.items()}
        return copy

    def save(self, path: str | Path) -> None:
        """Save the simulation to a file, from which `load` continues on any machine.

        The file has the scenario, with the changes made so far, and the state of everything in
        it. The samples of `sample` are not in it.

        Parameters
        ----------
        path : str or Path
            The file; an existing one is replaced.

        Raises
        ------
        InputError
            If the file cannot be written, or a class in Python has an attribute that cannot be
            saved.
        """
        path = Path(path)
        check_file(path)
        contents = self.snapshot()
        with naming(path), replacing(path) as file:
            file.write(contents)

    def snapshot(self) -> bytes:
        """Return the simulation as the bytes that `save` writes.

        Raises
        ------
        InputError
            If a class in Python has an attribute that cannot be saved.
        """
        return self._compiled.save()

    @classmethod
    def load(
        cls, path: str | Path, *, trust: bool = False, threads: Threads = "auto"
    ) -> "Simulation":
        """Return the simulation in a file of `save`. It continues in the same way.

        Parameters
        ----------
        path : str or Path
            The file. It must have been written by this version of sojourn.
        trust : bool, optional
            True if Python code that the scenario in the file names may run. The default refuses
            it.
        threads : int or "auto", optional
            Number of threads of each step, as in `simulate`.

        Raises
        ------
        InputError
            If the file is not a snapshot, is damaged, or was written by another version.
        """
        count = count_of(threads)
        path = Path(path)
        contents = read_snapshot(path, trust=trust)
        try:
            compiled = _sojourn.Simulation.load(contents, count)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        loaded = cls.__new__(cls)
        loaded._start(compiled, count)
        return loaded

    def sample(self) -> None:
        """Append the state of all links and flows to the samples that `frame` returns."""
        now = self.now
        links, flows = self._compiled.names()
        for name in links:
            state = self._compiled.link(name)
            gauges = {f"gauge/{gauge}": value for gauge, value in state.pop("gauges").items()}
            self._samples["links"].append({"time_s": now, "link": name, **state, **gauges})
        for name in flows:
            state = self._compiled.flow(name)
            gauges = {f"gauge/{gauge}": value for gauge, value in state.pop("gauges").items()}
            self._samples["flows"].append({"time_s": now, "flow": name, **state, **gauges})

    def frame(self, kind: str = "links") -> "pl.DataFrame":
        """Return the samples taken with `sample`, one row per time and link or flow.

        Parameters
        ----------
        kind : {"links", "flows"}
            Samples of links or of flows. Columns have the names of `State`; gauges are called
            ``gauge/NAME``.
        """
        import polars as pl

        if kind not in KINDS:
            raise InputError(f"unknown kind {shown(kind)}{near(kind, KINDS)}")
        rows = self._samples[kind]
        return pl.DataFrame(rows, infer_schema_length=None)

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Free the memory of the simulation."""
        del self._compiled, self.links, self.flows

    def __repr__(self) -> str:
        if "_compiled" not in self.__dict__:
            return "<sojourn.Simulation, closed>"
        return f"<sojourn.Simulation at {self.now:g} s of {self.end:g} s>"

    def _repr_html_(self) -> str | None:
        return html(self)


def _text(value: object) -> str:
    """Return a quantity as the text that Rust parses; numbers are refused there."""
    return value if isinstance(value, str) else str(value)
