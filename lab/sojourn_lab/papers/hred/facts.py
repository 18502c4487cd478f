"""Measured texts of the findings that are not parts of claims."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sojourn_lab.papers.hred.checks import RULES, STATED_SHARES, places
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.papers.hred.extras import CORRECTIONS, GROUPS, P_INITS, PATHS, RATIOS
from sojourn_lab.papers.hred.runs import FEW
from sojourn_lab.papers.hred.settings import FASTER_PIC, PIC, SIZES, STARTED_PIC, WIDE, WIDE_AND_50
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.parts import short
from sojourn_lab.reproduction.side_by_side import largest_difference, ratio_text


def _percent(runs: Runs, of: str, column: str, /, **labels: Any) -> str:
    return f"{short(100 * mean(runs[of], column, **labels))} %"


def pic_later(runs: Runs) -> str:
    """Return PIC's mean queue at T 600 with 300 kB after the longer warm-up."""
    return _percent(runs, "late", "mean", buffer=300, T=600)


def pic_faster(runs: Runs) -> str:
    """Return PIC's mean queue at T 600 with 300 kB with each of PIC's settings."""
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
    """Return the response times of the faster PIC."""
    return _responses(runs, "step settings", setting=FASTER_PIC)


def pic_started_response(runs: Runs) -> str:
    """Return the response times of PIC from another initial probability."""
    return _responses(runs, "step settings", setting=STARTED_PIC)


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


def hred_by_ratio(runs: Runs) -> str:
    """Return HRED's mean queue with 200 kB and T 100 by K_beta over K_alpha."""
    texts = []
    for up, down in ((400, 200), (200, 200), (200, 400)):
        own = {"buffer": 200, "T": 100, "t_alpha": up, "t_beta": down}
        texts.append(f"{_percent(runs, 'ratio', 'mean', **own)} with {up}/{down} ms")
    return ", ".join(texts)


def hred_heavy_by_ratio(runs: Runs) -> str:
    """Return the range of HRED's mean queue with 1000 kB and T 600 over all ratios."""
    means = [
        100 * mean(runs["ratio"], "mean", buffer=1000, T=600, t_alpha=up, t_beta=down)
        for up, down in RATIOS
    ]
    return f"{short(min(means))} to {short(max(means))} %"


def _by_correction(runs: Runs, column: str, band: str, unit: str) -> str:
    each = (short(mean(runs["overflow"], column, band=band, correction=one)) for one in CORRECTIONS)
    return f"{', '.join(each)}{unit}"


def overflows_asymmetric(runs: Runs) -> str:
    """Return HRED's overflows without correction, with a step, and with a reset."""
    return _by_correction(runs, "drops", "asymmetric", "")


def overflows_symmetric(runs: Runs) -> str:
    """Return the same for symmetric thresholds."""
    return _by_correction(runs, "drops", "symmetric", "")


def full_asymmetric(runs: Runs) -> str:
    """Return the time at 0.95 B or more without correction, with a step, and with a reset."""
    return _by_correction(runs, "full_s", "asymmetric", " s")


def pic_by_start(runs: Runs) -> str:
    """Return PIC's mean queue by its initial drop probability."""
    texts = []
    for t in FEW:
        each = (short(100 * mean(runs["p_init"], "mean", T=t, p_init=p)) for p in P_INITS)
        texts.append(f"{', '.join(each)} % at T {t}")
    return "; ".join(texts)


def ecn_loss(runs: Runs) -> str:
    """Return the loss with marks at T 600."""
    texts = (
        f"{NAMES[one]} {short(100 * mean(runs['ecn'], 'loss', signal='marks', qdisc=one, T=600))}"
        for one in RULES
    )
    return f"{', '.join(texts)} %"


def xcp_share(runs: Runs) -> str:
    """Return the shares of the short paths in table 2's network under XCP and HRED."""
    texts = (_percent(runs, "xcp", "share", qdisc=one, each=150) for one in ("xcp", "hred"))
    return " and ".join(texts)


def xcp_queue(runs: Runs) -> str:
    """Return XCP's mean queue by the number of flows of each round-trip time."""
    each = [(n, _percent(runs, "xcp", "mean", qdisc="xcp", each=n)) for n in GROUPS]
    return ", ".join(f"{text} with {2 * n} flows" for n, text in each)


def xcp_loss(runs: Runs) -> str:
    """Return the largest loss of any run with XCP."""
    each = (values(runs["xcp"], "loss", qdisc="xcp"), values(runs["xcp sweep"], "loss"))
    return f"{short(100 * max(float(one.max()) for one in each))} %"


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
    "pic-started-response": pic_started_response,
    "shares-500": shares_500,
    "goodput-500": goodput_500,
    "shares-sizes": shares_sizes,
    "tail-drop-50": tail_drop_50,
    "shares-by-path": shares_by_path,
    "red-slower": red_slower,
    "rem-faster": rem_faster,
    "hred-by-ratio": hred_by_ratio,
    "hred-heavy-by-ratio": hred_heavy_by_ratio,
    "overflows-asymmetric": overflows_asymmetric,
    "overflows-symmetric": overflows_symmetric,
    "full-asymmetric": full_asymmetric,
    "pic-by-start": pic_by_start,
    "ecn-loss": ecn_loss,
    "xcp-share": xcp_share,
    "xcp-queue": xcp_queue,
    "xcp-loss": xcp_loss,
    "live-queue": live_queue,
    "live-utilisation": live_utilisation,
    "live-loss": partial(ratio_text, of="testbed", column="loss"),
}
