"""Run scenarios in the simulator: one, or many in parallel threads."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from sojourn import _sojourn
from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util.files import naming, open_new
from sojourn._util.inputs import shown
from sojourn._util.paths import compared_link
from sojourn._util.progress import Meter, visible
from sojourn._util.public import public
from sojourn._util.units import seconds
from sojourn.engines.threads import Threads, count_of
from sojourn.engines.warm import WarmFrom, warm_state
from sojourn.result.result import Result
from sojourn.scenario.advice import warn
from sojourn.scenario.draft import Described, canonical, parse

T = TypeVar("T")

PCAP_TIMES = ("arrival", "departure")
"""Values of `pcap_at`."""


@public
def simulate(
    scenario: Described,
    *,
    progress: bool | Callable[[float], bool | None] = False,
    command: Sequence[str] = (),
    trust: bool = False,
    threads: Threads = "auto",
    pcap: str | Path | None = None,
    pcap_link: str | None = None,
    pcap_at: str = "arrival",
    warm_from: WarmFrom | None = None,
) -> Result:
    """Simulate a scenario.

    Runs are deterministic: the same scenario and seed give the same result, byte for byte, for
    every number of threads.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario, or the path of a .toml or .json file.
    progress : bool or callable, optional
        True shows a progress bar on a terminal and in a notebook. A callable is called from time
        to time with the simulated share of the duration, 0 to 1; if it returns False, the run
        stops with KeyboardInterrupt.
    command : sequence of str, optional
        Command line to record in the files that `Result.save` writes.
    trust : bool, optional
        True if Python code that the file of the scenario names may run. The default refuses it.
    threads : int or "auto", optional
        Number of threads of the run, 1 to 1024; fewer are used if the scenario cannot be divided
        into as many parts. With "auto" it is the number of cores if several threads are faster,
        else 1. A scenario with a class in Python is simulated on one thread, and so is a run with
        `pcap`.
    pcap : str or Path, optional
        File (pcapng) for the packets that pass a link, written during the run. They have valid
        headers, without payload; a comment gives the fate of each. Packets of the same
        connections in the opposite direction, as an endpoint next to the link sees them, are
        written as well.
    pcap_link : str, optional
        The link. The default is the link called bottleneck, or else the first one on a path.
    pcap_at : str, optional
        Time of a packet: its "arrival" at the link, or its "departure" (start of transmission, or
        drop).
    warm_from : str, Path or Simulation, optional
        Warm state from which the run starts: a file of `Simulation.save`, or a simulation. Rates,
        delays, impairments and parameters of disciplines of the scenario apply from then on; its
        other settings must be as in the state. With another seed the run has other random
        numbers. Times count from the start of the state's run, and the measurement starts at the
        time of the state, or at the end of the warm-up if that is later.

    Returns
    -------
    Result
        Summaries, series and completed transfers of the run.

    Raises
    ------
    InputError
        If the scenario or `threads` is invalid. The message names the path of the key. If `pcap`
        cannot be written, or there is no link `pcap_link`. If the warm state cannot continue as
        the scenario, or is not a snapshot of this version.

    Warns
    -----
    ScenarioWarning
        If the scenario is valid but probably not what was intended.

    Examples
    --------
    >>> import sojourn as sj
    >>> result = sj.simulate(
    ...     {
    ...         "duration": "2s",
    ...         "links": {"up": {"rate": "10mbit"}},
    ...         "flows": [{"name": "bulk", "path": ["up"], "rtt": "20ms"}],
    ...     }
    ... )
    >>> list(result.links), list(result.flows)
    (['up'], ['bulk'])
    """
    count = count_of(threads)
    parsed = parse(scenario, trust=trust)
    if warm_from is not None:
        parsed = parsed.warm_from(warm_state(warm_from, trust=trust))
    tree = canonical(parsed)
    captured = None if pcap is None else captured_link(tree, pcap_link, pcap_at)
    warn([tree])
    shown = progress is True and visible()
    with Meter([seconds(tree["duration"])], shown) as meter:

        def go_on(share: float, sent: int) -> bool | None:
            meter.update(0, share, sent)
            return progress(share) if callable(progress) else None

        if pcap is None or captured is None:
            return Result(*parsed.simulate(go_on, count), command)
        path, departures = Path(pcap), pcap_at == "departure"
        with naming(path), open_new(path) as file:
            whole = _sojourn.simulate_captured(parsed, file, captured, departures, go_on)
        return Result(*whole, command)


def captured_link(tree: dict[str, Any], link: str | None, at: str) -> str:
    """Return the link whose packets are captured.

    Raises
    ------
    InputError
        If there is no such link, or `at` is not a time of a packet.
    """
    if at not in PCAP_TIMES:
        raise InputError(f"--pcap-at: {shown(at)} is neither arrival nor departure")
    try:
        return compared_link(tree, link)
    except InputError as error:
        raise InputError(str(error).replace("--link", "--pcap-link", 1)) from None


@public
def simulate_many(
    scenarios: Sequence[Described],
    *,
    progress: bool = False,
    command: Sequence[str] = (),
    jobs: int | None = None,
    finished: Callable[[int, Result], object] | None = None,
    trust: bool = False,
) -> list[Result]:
    """Simulate several scenarios in parallel threads.

    Each run uses one thread. All scenarios are validated before the first run starts. An exception
    in one run, or Ctrl-C, stops all of them.

    Parameters
    ----------
    scenarios : sequence of Scenario, mapping, str or Path
        The scenarios, or the paths of their files.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.
    command : sequence of str, optional
        Command line to record in the files that `Result.save` writes.
    jobs : int, optional
        Number of runs at the same time. The default is the number of cores.
    finished : callable, optional
        Called as ``finished(i, result)`` when run `i` completes, one call at a time. Use it to
        save each result at once.
    trust : bool, optional
        True if Python code that the files of the scenarios name may run. The default refuses it.

    Returns
    -------
    list of Result
        The results, in the order of `scenarios`.

    Raises
    ------
    InputError
        If a scenario is invalid. The message names the path of the key.

    Warns
    -----
    ScenarioWarning
        If a scenario is valid but probably not what was intended.
    """
    parsed = [parse(scenario, trust=trust) for scenario in scenarios]
    trees = [canonical(one) for one in parsed]
    warn(trees)
    lasting = [seconds(tree["duration"]) for tree in trees]
    return run_parsed(parsed, lasting, progress, command, jobs, finished)


def run_parsed(
    scenarios: Sequence[ParsedScenario],
    lasting: Sequence[float],
    progress: bool = False,
    command: Sequence[str] = (),
    jobs: int | None = None,
    finished: Callable[[int, Result], object] | None = None,
    failed: Callable[[int, BaseException], object] | None = None,
) -> list[Result]:
    """Run parsed scenarios; `lasting` are their durations in seconds.

    The parameter `failed` is described in `run_each`, the others in `simulate_many`. The list has
    the results of the runs that did not fail.
    """
    results: dict[int, Result] = {}

    def finish(i: int, result: Result) -> None:
        results[i] = result
        if finished is not None:
            finished(i, result)

    with Meter(lasting, progress and visible()) as meter:
        run_each(scenarios, lambda _, result: result, finish, meter, jobs, command, failed)
    return [results[i] for i in sorted(results)]


def run_each(
    scenarios: Sequence[ParsedScenario],
    measure: Callable[[int, Result], T],
    finished: Callable[[int, T], object],
    meter: Meter,
    jobs: int | None = None,
    command: Sequence[str] = (),
    failed: Callable[[int, BaseException], object] | None = None,
    order: Iterator[int] | None = None,
) -> int:
    """Run parsed scenarios in threads of this process; return the number of packets sent.

    Ctrl-C stops all of them. The simulator releases the GIL. No lock is held where Ctrl-C can
    arrive: `concurrent.futures.as_completed` takes the locks of all futures when it starts, and an
    interrupt at that moment leaves threads waiting for them for ever.

    Parameters
    ----------
    scenarios : sequence of ParsedScenario
        The scenarios, in the order in which they start.
    measure : callable
        Called as ``measure(i, result)`` when run `i` completes, in several threads at a time.
    finished : callable
        Called as ``finished(i, measured)`` after it, one call at a time.
    meter : Meter
        The progress bar.
    jobs : int, optional
        Number of threads. The default is the number of cores.
    command : sequence of str, optional
        Command line to record in the results.
    failed : callable, optional
        Called as ``failed(i, error)`` when run `i` or its measurement raises an exception, one
        call at a time. By default the exception stops all runs.
    order : iterator of int, optional
        Indices of the scenarios to run. The default is all of them, in order.
    """
    stop, telling = threading.Event(), threading.Lock()
    packets = [0] * len(scenarios)
    order = iter(range(len(scenarios))) if order is None else order
    over: SimpleQueue[BaseException | None] = SimpleQueue()

    def one(n: int) -> None:
        def go_on(share: float, sent: int) -> bool:
            packets[n] = sent
            meter.update(n, share, sent)
            return not stop.is_set()

        try:
            measured = measure(n, Result(*scenarios[n].simulate(go_on), command))
        except BaseException as error:
            if failed is None or stop.is_set() or isinstance(error, KeyboardInterrupt):
                raise
            with telling:
                failed(n, error)
        else:
            with telling:
                finished(n, measured)
        meter.update(n, 1.0, packets[n])

    def worker() -> None:
        try:
            while not stop.is_set():
                with telling:
                    n = next(order, None)
                if n is None:
                    break
                one(n)
            over.put(None)
        except BaseException as error:
            over.put(error)

    most = min(jobs or os.cpu_count() or 1, len(scenarios))
    threads = [threading.Thread(target=worker) for _ in range(most)]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            if (error := over.get()) is not None:
                raise error
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return sum(packets)
