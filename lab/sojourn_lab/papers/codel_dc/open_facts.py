"""Numbers of the findings about the paper's open question."""

from collections.abc import Callable, Mapping

from sojourn.result.statistics import paired
from sojourn_lab.papers.codel_dc.open_question import (
    ALL,
    ASKED,
    LOADS,
    NEWER,
    PARTS,
    SIZES,
    together,
)
from sojourn_lab.papers.codel_dc.series import known_mean, times
from sojourn_lab.papers.codel_dc.set_up import SCHEMES
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.parts import short


def compared(
    part: int, place: int, sooner: bool, names: Mapping[str, str]
) -> Callable[[Runs], str]:
    """Return the fact: algorithms that are significantly faster (or slower) than CoDel, and times.

    The interval of the difference, paired by seed, excludes 0.
    """

    def fact(runs: Runs) -> str:
        base, other, axis = PARTS[part]
        frame, chosen = together(runs, base, other, axis), []
        for name, label in names.items():
            theirs, ours = times(frame, name, "codel", **{axis: place})
            if not len(ours):
                continue
            gap = paired(ours, theirs)
            if (gap.low > 0) if sooner else (gap.high < 0):
                chosen.append((float(theirs.mean()), label))
        each = [f"{label} {short(1e3 * took)}" for took, label in sorted(chosen)]
        return ", ".join(each) + " ms" if each else "none"

    return fact


FACTS: dict[str, Callable[[Runs], str]] = {
    f"{group}-{word}-{place}": compared(part, place, word == "faster", names)
    for part, places in enumerate((SIZES, LOADS))
    for place in places
    for word in ("faster", "slower")
    for group, names in (("asked" if part == 0 else "asked-load", ASKED),
                         ("newer" if part == 0 else "newer-load", NEWER))
}  # fmt: skip


def _of_codel(part: int, place: int) -> Callable[[Runs], str]:
    """Return the fact: CoDel's mean time in this comparison."""

    def fact(runs: Runs) -> str:
        frame, axis = together(runs, *PARTS[part]), PARTS[part][2]
        took = known_mean(1e3 * values(frame, "afct_s", scheme="codel", **{axis: place}))
        return f"{short(took or 0.0)} ms"

    return fact


def _value(what: str, scale: float, unit: str, kb: int, *names: str) -> Callable[[Runs], str]:
    """Return the fact: a column of several algorithms with answers of one size."""

    def fact(runs: Runs) -> str:
        frame = together(runs, *PARTS[0])
        each = ((ALL[x], known_mean(scale * values(frame, what, scheme=x, kB=kb))) for x in names)
        return ", ".join(f"{label} {short(mean or 0.0)}{unit}" for label, mean in each)

    return fact


def _changed(word: str, kb: int, *names: str) -> Callable[[Runs], str]:
    """Return the fact: mean times with another gain."""

    def fact(runs: Runs) -> str:
        frame = runs["other gains"]
        each = (
            (ALL[x], known_mean(1e3 * values(frame, "afct_s", scheme=x, gain=word, kB=kb)))
            for x in names
        )
        return ", ".join(f"{label} {short(mean or 0.0)} ms" for label, mean in each)

    return fact


FACTS |= {f"codel-{kb}": _of_codel(0, kb) for kb in SIZES}
FACTS |= {f"codel-load-{x}": _of_codel(1, x) for x in LOADS}
FACTS |= {
    "tenth-10": _changed("a tenth", 10, "choke", "fred"),
    "open-loss": _value("loss", 100, " %", 10, *SCHEMES, *ASKED, *NEWER),
    "open-used": _value("utilisation", 100, " %", 10, *SCHEMES, *ASKED, *NEWER),
    "open-stalled": _value("in_timeout", 1, "", 10, *SCHEMES, *ASKED, *NEWER),
}
