"""Second test of a recommendation: what a setting must gain on other seeds over a default."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from sojourn._util import units
from sojourn.recommendation.line import HELD_OUT, Line, Table
from sojourn.recommendation.objective import Objective
from sojourn.recommendation.search import TIE, Trial, simplest, ties
from sojourn.recommendation.settings import changed, rank
from sojourn.result.statistics import Interval, interval

CHOICE_SEEDS = range(3, 8)
"""Seeds of the test that another setting than the first default must pass, from the answer's."""

HELD_OUT_RTT = {"low": 2**-0.5, "high": 2**0.5}
"""Factors of the round-trip times of the second test, by its load."""

CANDIDATES = 3
"""Largest number of settings that the second test tries."""

MOVED = {
    "use": "use of the line",
    "hosts": "Jain's index of hosts",
    "self_s": "delay of busy connections",
    "worst_s": "the same in the worst window",
    "response_s": "response of new connections",
    "transfer_s": "pages",
    "delay_s": "delay of calls",
    "loss": "loss of calls",
}
"""Facts that the reason for a deviation names."""

SHARES = ("use", "hosts")
"""Facts of which more is better."""


def _usual(line: Line, tried: Sequence[Trial]) -> list[Table]:
    """Return the defaults that the answer falls back to, the last one first by convention.

    These are the simplest of all defaults, and the first discipline of `order` that was tried.
    """
    whole = [one for one in tried if not changed(one.qdisc, line)]
    best = simplest(line, whole).qdisc
    first = min(whole, key=lambda one: rank(one.qdisc, line)).qdisc
    return [best] if best == first else [best, first]


def _candidates(
    line: Line, tried: Sequence[Trial], chosen: Table, usual: Sequence[Table]
) -> list[Table]:
    """Return the settings of the second test, without the reference, which is the last of `usual`.

    These are the simplest one, other defaults, and the settings that equal the best one. A setting
    that equals it in the search can fail by chance where the next one passes.
    """
    wanted = [chosen, *usual[:-1], *ties(line, tried)]
    different = [one for n, one in enumerate(wanted) if one not in wanted[:n]]
    return [one for one in different if one != usual[-1]][:CANDIDATES]


def confirmed(
    line: Line,
    tried: Sequence[Trial],
    cost: Objective,
    first: int,
    test: Callable[..., Sequence[Mapping[str, float]]],
) -> tuple[Table, str]:
    """Return the answer of a search, and its reason.

    A setting with a deviation, or of a discipline that is not the first of `order`, must gain more
    than `TIE` over the first one with its defaults, on other loads, round-trip times and seeds
    (from `first`).
    """
    chosen, usual = simplest(line, tried).qdisc, _usual(line, tried)
    reference = usual[-1]
    name = label(reference)

    def held_out(qdisc: Table) -> list[Mapping[str, float]]:
        facts: list[Mapping[str, float]] = []
        for load, factor in HELD_OUT.items():
            scale = HELD_OUT_RTT[load]
            at = [(factor, first + s) for s in CHOICE_SEEDS]
            facts += test(qdisc, at, rtt_s=(line.rtt_s[0] * scale, line.rtt_s[1] * scale))
        return facts

    if chosen == reference:
        return chosen, f"{name} with its defaults: nothing gains more than 5 % over it"
    theirs, refused = held_out(reference), []
    for one in _candidates(line, tried, chosen, usual):
        ours = held_out(one)
        gained = gain(ours, theirs, cost)
        sure = f"{gained.mean:.2f} ± {gained.half:.2f} of the objective over {name}"
        if gained.low > TIE:
            better, worse = _moved(means(theirs), means(ours))
            price = f", at the price of {worse}" if worse else ", without a price"
            return one, f"{label(one)} gains {sure} by {better}{price}"
        refused.append(f"{label(one)} gained {sure}")
    return reference, f"{name} with its defaults: {'; '.join(refused)}, which is not enough"


def gain(
    ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]], cost: Objective
) -> Interval:
    """Return the cost of other runs minus the cost of ours: mean over loads, interval over seeds.

    The runs are in the order of the loads of `HELD_OUT`, and of seeds within each load.
    """
    seeds = len(ours) // len(HELD_OUT)
    each = [cost(b) - cost(a) for a, b in zip(ours, theirs, strict=True)]
    return interval([fmean(each[n::seeds]) for n in range(seeds)])


def _moved(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, str]:
    """Return the facts that a setting improves, and those it makes worse, by more than 5 %."""
    words: dict[bool, list[str]] = {True: [], False: []}
    for key, text in MOVED.items():
        change = after[key] - before[key]
        if abs(change) > 0.05 * max(after[key], before[key]):
            ends = f"{text} from {_shown(key, before[key])} to {_shown(key, after[key])}"
            words[(change > 0) == (key in SHARES)].append(ends)
    better, worse = (" and ".join(words[kind]) for kind in (True, False))
    return better or "many small differences", worse


def _shown(key: str, value: float) -> str:
    if key.endswith("_s"):
        return units.duration(value)
    return f"{value:.3f}" if key == "hosts" else units.share(value)


def label(qdisc: Table) -> str:
    """Return the name of a setting, with what differs from its defaults."""
    from sojourn.scenario.variants import labels

    return labels([qdisc])[0]


def means(facts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each fact."""
    return {key: fmean(one[key] for one in facts) for key in facts[0]}
