"""Runs scenarios: one here, or many at once on all cores."""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeAlias

from sojourn import _sojourn
from sojourn._util.progress import Meter
from sojourn._util.units import seconds
from sojourn.result.result import Result
from sojourn.scenario.advice import warn
from sojourn.scenario.load import Scenario, load, to_json

Described: TypeAlias = Scenario | Mapping[str, Any] | str | Path
"""A scenario: the Struct, a plain tree, or the name of a file."""


def simulate(
    scenario: Described,
    *,
    progress: bool | Callable[[float], bool | None] = False,
    command: Sequence[str] = (),
) -> Result:
    """Run `scenario` and give its Result; the same scenario gives the same bytes.

    Raises InputError, one line with the path of what is wrong. `progress` shows a bar on a
    terminal, or is called with the share of the simulated time that has passed and ends the run
    (KeyboardInterrupt) by answering False. `command` is kept in the files of the Result. A
    scenario that is valid and hardly what was meant gives a ScenarioWarning.
    """
    if not callable(progress):
        return simulate_many([scenario], progress=progress, command=command, jobs=1)[0]
    text, ask = as_text(scenario), progress
    warn([json.loads(_sojourn.canonical(text))])
    summary, columns = _sojourn.simulate(text, lambda share, _: ask(share))
    return Result(summary, columns, command)


def simulate_many(
    scenarios: Sequence[Described],
    *,
    progress: bool = False,
    command: Sequence[str] = (),
    jobs: int | None = None,
    finished: Callable[[int, Result], object] | None = None,
) -> list[Result]:
    """Run all `scenarios` at once, `jobs` at a time (default: one per core), in their order.

    All are checked before the first one starts. A Ctrl-C, or an error in one, ends all at once;
    `finished` is told of each run as soon as it is over, so that no finished one is lost.
    """
    texts = [as_text(scenario) for scenario in scenarios]
    trees = [json.loads(_sojourn.canonical(text)) for text in texts]
    warn(trees)
    lasting = [seconds(tree["duration"]) for tree in trees]
    return run_texts(texts, lasting, progress, command, jobs, finished)


def run_texts(
    texts: Sequence[str],
    lasting: Sequence[float],
    progress: bool = False,
    command: Sequence[str] = (),
    jobs: int | None = None,
    finished: Callable[[int, Result], object] | None = None,
) -> list[Result]:
    """Run checked scenarios, JSON texts that last so many seconds; see `simulate_many`."""
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

            result = Result(*_sojourn.simulate(texts[i], go_on), command)
            meter.tell(i, 1.0, packets)
            if finished is not None:
                with telling:
                    finished(i, result)
            return result

        if jobs == 1 or len(texts) == 1:
            return [one(i) for i in range(len(texts))]
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            futures = [pool.submit(one, i) for i in range(len(texts))]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for failed in (future for future in done if future.exception()):
                    failed.result()  # raises what the run raised
                return [future.result() for future in futures]
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)


def as_text(scenario: Described) -> str:
    """Give a scenario as the JSON that Rust reads."""
    return to_json(load(scenario) if isinstance(scenario, str | Path) else scenario)
