"""The compiled module: data in as JSON text, numbers out as arrays. Private; use `sojourn`."""

import sys
from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "InputError",
    "Script",
    "call",
    "canonical",
    "canonical_links",
    "check",
    "engine",
    "nearest",
    "replay",
    "simulate",
    "specs",
    "version",
]

class InputError(ValueError): ...

def version() -> str: ...
def engine() -> str: ...
def call(text: str) -> tuple[str, list[tuple[str, str]]]: ...
def canonical(scenario_json: str) -> str: ...
def canonical_links(links_json: str) -> str: ...
def check(kind: str, json: str) -> None: ...
def nearest(name: str, known: list[str]) -> str | None: ...
def simulate(
    scenario_json: str, progress: Callable[[float, int], bool | None] | None
) -> tuple[str, dict[str, npt.NDArray[Any]]]: ...
def specs() -> str: ...

@final
class Script:
    def __new__(cls, scenario_json: str) -> Script: ...
    def rows(self) -> list[tuple[str, str, bool]]: ...
    def next(self) -> int | None: ...
    def wake(self, now: int) -> tuple[str, int, int, int, bool, bool] | None: ...
    def established(self, flow: int, at: int) -> None: ...
    def received(self, flow: int, at: int) -> None: ...
    def acked(self, flow: int, at: int) -> None: ...
    def finish(self) -> tuple[str, dict[str, npt.NDArray[Any]]]: ...

def replay(
    t_ns: npt.NDArray[np.int64],
    flow: npt.NDArray[np.uint32],
    size: npt.NDArray[np.uint32],
    ecn: npt.NDArray[np.uint8],
    qdisc_json: str,
    rate: str,
    follow_dropped: npt.NDArray[np.uint8] | None,
    follow_marked: npt.NDArray[np.uint8] | None,
    progress: Callable[[float, int], bool | None] | None,
    timer_phase: str | None = None,
    xorshift32: int | None = None,
    htb_burst: str | None = None,
) -> dict[str, npt.NDArray[Any]]: ...

if sys.platform == "linux":
    __all__ += ["Network", "Pump", "check_sample", "enter_network"]

    def check_sample(text: str) -> None: ...
    def enter_network(namespace: int) -> None: ...
    @final
    class Network:
        def __new__(cls, senders: int, receivers: int, scenario_json: str) -> Network: ...
        @property
        def start_ns(self) -> int: ...
        def stop(self) -> tuple[str, dict[str, npt.NDArray[Any]]]: ...

    @final
    class Pump:
        def __new__(
            cls,
            near: int,
            far: int,
            links_json: str,
            seed: int,
            sample: str | None = None,
            pcap: str | None = None,
            head: int = 0,
            packet_log: bool = False,
        ) -> Pump: ...
        def rows(self) -> dict[str, dict[str, npt.NDArray[Any]]]: ...
        def stop(self) -> tuple[str, dict[str, dict[str, npt.NDArray[Any]]]]: ...
