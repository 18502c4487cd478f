"""Measured texts of the findings that are not parts of claims."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sojourn_lab.papers.hred.checks import STATED_SHARES, places
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.papers.hred.runs import PATHS, PIC, SIZES, WIDE, WIDE_AND_50
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.parts import short
from sojourn_lab.reproduction.side_by_side import largest_difference, ratio_text


def _percent(runs: Runs, of: str, column: str, /, **labels: Any) -> str:
    return f"{short(100 * mean(runs[of], column, **labels))} %"


def pic_later(runs: Runs) -> str:
    """Return PIC's mean queue at T 600 with 300 kB after the longer warm-up."""
    return _percent(runs, "late", "mean", buffer=300, T=600)


def pic_faster(runs: Runs) -> str:
    """Return PIC's mean queue at T 600 with 300 kB for each faster PIC."""
    own: dict[str, Any] = {"qdisc": "pi", "buffer": 300, "T": 600}
    texts = (_percent(runs, "sweep settings", "mean", setting=one, **own) for one in PIC)
    return " and ".join(texts)


def _responses(runs: Runs, of: str, **labels: Any) -> str:
    """Return the times of PIC's responses to the smallest and to the largest step, up and down."""
    own = {"qdisc": "pi", **labels}
    sizes = places(runs[of], "size", **own)
    ends = []
    for column in ("rise_about_s", "fall_about_s"):
        few, many = (mean(runs[of], column, size=sizes[i], **own) for i in (0, -1))
        ends.append(f"{short(few)} to {short(many)} s")
    return f"{ends[0]} up and {ends[1]} down for steps of {sizes[0]} to {sizes[-1]} %"


def pic_faster_response(runs: Runs) -> str:
    """Return the response times of the fastest PIC."""
    return _responses(runs, "step settings", setting=list(PIC)[-1])


def pic_later_response(runs: Runs) -> str:
    """Return PIC's response times with the step at 300 s."""
    return _responses(runs, "late_step")


def _shares(runs: Runs, column: str, setting: str) -> str:
    texts = (
        f"{NAMES[one]} "
        f"{short(100 * mean(runs['shares settings'], column, qdisc=one, setting=setting))}"
        for one in STATED_SHARES
    )
    return ", ".join(texts)


def shares_500(runs: Runs) -> str:
    """Return the shares of table 2 with 500 kB."""
    return _shares(runs, "share", WIDE)


def goodput_500(runs: Runs) -> str:
    """Return the goodputs of table 2 with 500 kB."""
    return _shares(runs, "goodput", WIDE)


def shares_sizes(runs: Runs) -> str:
    """Return the shares of table 2 with packets of several sizes."""
    return _shares(runs, "share", SIZES)


def tail_drop_50(runs: Runs) -> str:
    """Return the share of the short paths under tail drop with 50 packets."""
    return _percent(runs, "shares settings", "share", qdisc="droptail", setting=WIDE_AND_50)


def shares_by_path(runs: Runs) -> str:
    """Return the range of shares under tail drop with other paths."""
    each = [100 * mean(runs["paths"], "share", what=one) for one in PATHS]
    return f"{short(min(each))} to {short(max(each))} %"


def red_slower(runs: Runs) -> str:
    """Return the utilisation of the testbed's RED with a tenth of its weight, and not gentle."""
    each = ("w_q 0.0002", "not gentle")
    return " and ".join(_percent(runs, "reds", "utilisation", what=one, flows=50) for one in each)


def rem_faster(runs: Runs) -> str:
    """Return REM's deviations at T 100, 300 and 600 with ten times the gain."""
    texts = (short(100 * mean(runs["rem settings"], "std", T=t)) for t in (100, 300, 600))
    return f"{', '.join(texts)} % of B"


def live_queue(runs: Runs) -> str:
    """Return the largest difference of the mean queue on real packets from the simulated one."""
    return f"{short(50 * largest_difference(runs, 'testbed', 'mean'))} kB"


def live_utilisation(runs: Runs) -> str:
    """Return the largest difference of the utilisation on real packets from the simulated one."""
    return f"{short(100 * largest_difference(runs, 'testbed', 'utilisation'))} points"


FACTS: Mapping[str, Callable[[Runs], str]] = {
    "pic-later": pic_later,
    "pic-faster": pic_faster,
    "pic-faster-response": pic_faster_response,
    "pic-later-response": pic_later_response,
    "shares-500": shares_500,
    "goodput-500": goodput_500,
    "shares-sizes": shares_sizes,
    "tail-drop-50": tail_drop_50,
    "shares-by-path": shares_by_path,
    "red-slower": red_slower,
    "rem-faster": rem_faster,
    "live-queue": live_queue,
    "live-utilisation": live_utilisation,
    "live-loss": partial(ratio_text, of="testbed", column="loss"),
}
