"""Run scenarios in the simulator: one, or many in parallel threads."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from sojourn._sojourn import ParsedScenario
from sojourn._util.progress import Meter
from sojourn._util.units import seconds
from sojourn.result.result import Result
from sojourn.scenario.advice import warn
from sojourn.scenario.load import Described, canonical, parse


def simulate(
    scenario: Described,
    *,
    progress: bool | Callable[[float], bool | None] = False,
    command: Sequence[str] = (),
) -> Result:
    """Simulate a scenario.

    Runs are deterministic: the same scenario and seed give the same result, byte for byte.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario, or the path of a .toml or .json file.
    progress : bool or callable, optional
        True shows a progress bar if standard error is a terminal. A callable is called from time
        to time with the simulated share of the duration, 0 to 1; if it returns False, the run
        stops with KeyboardInterrupt.
    command : sequence of str, optional
        Command line to record in the files that `Result.save` writes.

    Returns
    -------
    Result
        Summaries, series and completed transfers of the run.

    Raises
    ------
    InputError
        If the scenario is invalid. The message names the path of the key.

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
    if not callable(progress):
        return simulate_many([scenario], progress=progress, command=command, jobs=1)[0]
    parsed, ask = parse(scenario), progress
    warn([canonical(parsed)])
    summary, columns = parsed.simulate(lambda share, _: ask(share))
    return Result(summary, columns, command)


def simulate_many(
    scenarios: Sequence[Described],
    *,
    progress: bool = False,
    command: Sequence[str] = (),
    jobs: int | None = None,
    finished: Callable[[int, Result], object] | None = None,
) -> list[Result]:
    """Simulate several scenarios in parallel threads.

    All scenarios are validated before the first run starts. An exception in one run, or Ctrl-C,
    stops all of them.

    Parameters
    ----------
    scenarios : sequence of Scenario, mapping, str or Path
        The scenarios, or the paths of their files.
    progress : bool, optional
        True shows a progress bar if standard error is a terminal.
    command : sequence of str, optional
        Command line to record in the files that `Result.save` writes.
    jobs : int, optional
        Number of runs at the same time. The default is the number of cores.
    finished : callable, optional
        Called as ``finished(i, result)`` when run `i` completes, one call at a time. Use it to
        save each result at once.

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
    parsed = [parse(scenario) for scenario in scenarios]
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
) -> list[Result]:
    """Run parsed scenarios; `lasting` are their durations in seconds.

    The other parameters are those of `simulate_many`.
    """
    shown = progress and sys.stderr.isatty()
    stop, telling = threading.Event(), threading.Lock()
    with Meter(lasting, shown) as meter:

        def one(i: int) -> Result:
            packets = 0

            def go_on(share: float, sent: int) -> bool:
                nonlocal packets
                packets = sent
                meter.tell(i, share, sent)
                return not stop.is_set()

            result = Result(*scenarios[i].simulate(go_on), command)
            meter.tell(i, 1.0, packets)
            if finished is not None:
                with telling:
                    finished(i, result)
            return result

        if jobs == 1 or len(scenarios) == 1:
            return [one(i) for i in range(len(scenarios))]
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            futures = [pool.submit(one, i) for i in range(len(scenarios))]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for failed in (future for future in done if future.exception()):
                    failed.result()  # raises the exception of the run
                return [future.result() for future in futures]
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)
