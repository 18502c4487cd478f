"""Property tests of disciplines, congestion controls and sources in Python: `check`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.public import public
from sojourn.custom import check_aqm, check_control, check_source, check_state
from sojourn.custom.aqm import Aqm
from sojourn.custom.base import Custom
from sojourn.custom.control import CongestionControl
from sojourn.custom.source import TrafficSource

KINDS: tuple[tuple[type[Custom], Any, Mapping[str, Callable[[Any], str]]], ...] = (
    (Aqm, check_aqm.Runs, check_aqm.TESTS),
    (CongestionControl, check_control.Runs, check_control.TESTS),
    (TrafficSource, check_source.Runs, check_source.TESTS),
)
"""Base class, runs of an object of it, and tests."""


@dataclass(frozen=True)
class Check:
    """Result of one test: the property, and why it does not hold (empty if it does)."""

    name: str
    failure: str = ""


@public
@dataclass(frozen=True)
class Checks:
    """Results of the property tests of a class; true if all properties hold."""

    subject: str
    """The object, with its parameters."""
    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """Failed tests."""
        return tuple(one for one in self.checks if one.failure)

    def __repr__(self) -> str:
        width = max((len(one.name) for one in self.checks), default=0)
        lines = [
            f"  {one.name:{width}}  {f'FAILS: {one.failure}' if one.failure else 'holds'}"
            for one in self.checks
        ]
        return "\n".join([f"{self.subject}:", *lines])


@public
def check(subject: Any, *, packets: int = 1000) -> Checks:
    """Run property tests on a discipline, congestion control or source that is written in Python.

    A discipline has the tests that every discipline of sojourn passes: light, heavy and irregular
    traffic goes through a link, and the fate of every packet is examined (conservation, order,
    buffer limit, marks on ECN-capable packets only). A control transfers data on a lossy link, with
    timeouts, with marks, and on an idle link. A source is asked for arrivals, over UDP and TCP. All
    must raise no exception, give the same results with the same seed, draw random numbers from
    their own stream, have a bounded state, and continue in the same way when copied. A compiled
    class must have the results of its plain form.

    Parameters
    ----------
    subject : type or object
        A subclass of `Aqm`, `CongestionControl` or `TrafficSource`, or an object of one with its
        parameters.
    packets : int, optional
        Number of packets or arrivals per test, at least 100.

    Returns
    -------
    Checks
        One result per property; true if all hold. Its text is a table.

    Raises
    ------
    InputError
        If the class cannot be built with its parameters, or is not of one of these kinds.

    Examples
    --------
    >>> import sojourn as sj
    >>> class TailDrop(sj.Aqm):
    ...     def on_enqueue(self, packet, queue):
    ...         return sj.DROP if queue.packets > 20 else sj.PASS
    >>> bool(sj.check(TailDrop))
    True
    """
    kind = subject if isinstance(subject, type) else type(subject)
    row = next((one for one in KINDS if issubclass(kind, one[0]) and kind is not one[0]), None)
    if row is None:
        names = ", ".join(f"sojourn.{base.__name__}" for base, _, _ in KINDS)
        raise InputError(f"{kind.__name__} is not a subclass of one of: {names}")
    if packets < 100:
        raise InputError(f"packets is {packets}, allowed: at least 100")
    one = subject() if isinstance(subject, type) else subject
    runs, checks = row[1](one, packets), list[Check]()
    tests = dict(row[2])
    if vars(one).get("compiled"):
        plain = row[1](one.replace(compiled=False), packets)
        tests["runs like plain Python"] = lambda runs: check_state.unlike_plain(runs, plain)
    for name, test in tests.items():
        try:
            failure = test(runs)
        except Exception as error:
            failure = check_state.text_of(error)
        checks.append(Check(name, failure))
        if failure and len(checks) == 1:
            break  # all others would fail for this reason
    return Checks(repr(one), tuple(checks))
