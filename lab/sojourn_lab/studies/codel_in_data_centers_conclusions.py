"""The conclusions of `codel_in_data_centers`, each with whether it holds in the runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sojourn_lab.studies.codel_in_data_centers import MAIN, OTHERS, SENDERS, Campaign, Case
from sojourn_lab.studies.home_line import figure

Statements = list[tuple[str, bool]]
TIMEOUTS = "timeouts"


def main_case(queue: str, sender: str = "DCTCP") -> Case:
    """Return a case with the sizes and the load of `MAIN`."""
    return (*MAIN, sender, queue)


@dataclass(frozen=True)
class Comparison:
    """Comparison of cases of a campaign, seed by seed."""

    campaign: Campaign

    def below(self, one: Case, other: Case, *measures: str) -> bool:
        """Return whether all measures of a case are below another's, with 95 % confidence."""
        return all(self.campaign.gap(one, other, what).high < 0 for what in measures)

    def ordered(self, sender: str, what: str, *queues: str) -> bool:
        """Return whether a measure grows from one discipline to the next."""
        some = [main_case(queue, sender) for queue in queues]
        return all(self.below(a, b, what) for a, b in pairwise(some))

    def same(self, one: Case, other: Case, what: str) -> bool:
        """Return whether two cases have the same numbers in every run."""
        return np.array_equal(self.campaign.values(one, what), self.campaign.values(other, what))

    def text(self, what: str, queue: str, sender: str = "DCTCP") -> str:
        """Return the mean of a measure as text."""
        return figure(self.campaign.mean(main_case(queue, sender), what).mean)


def statements(campaign: Campaign, shares: Mapping[str, float]) -> Statements:
    """Return the conclusions, each with whether it holds in `campaign`.

    "Below" and "above" are paired by seed, with a 95 % interval that does not contain zero.
    """
    by = Comparison(campaign)
    return [
        _defaults(by, shares),
        *_marking(by),
        *_queues_per_flow(by),
        _queries(by),
        _swift(by),
        *_hpcc(by),
        _sizes(by),
    ]


def _defaults(by: Comparison, shares: Mapping[str, float]) -> tuple[str, bool]:
    rfc = ("CoDel, RFC", "PIE, RFC")
    same = all(
        by.same((*at, sender, queue), (*at, sender, "droptail"), what)
        for at in (MAIN, *OTHERS)
        for sender in SENDERS
        for queue in rfc
        for what in ("small_p99", "large_gbit", "query_p99_ms", "queue_us", TIMEOUTS)
    )
    most = by.campaign.values(main_case("droptail"), "queue_max_kb").max() * 8e3 / 10e9 * 1e3
    return (
        "**CoDel and PIE with the defaults of their RFCs** (targets of 5 and 15 ms) give the same "
        "numbers as drop-tail, with every sender and all sizes. Their targets cannot be reached: "
        f"the longest queue of a port takes {figure(most)} ms, since the shared buffer admits no "
        "more. They marked nothing in 250 ms either.",
        same and most < 5 and all(shares[f"{queue}: marked"] == 0 for queue in rfc),
    )


def _marking(by: Comparison) -> Statements:
    text, below = by.text, by.below
    tail, step, codel, pie, red = (
        main_case(queue)
        for queue in ("droptail", "step marking", "CoDel, scaled", "PIE, scaled", "RED")
    )
    dual = main_case("DualPI2, scaled")
    marked = [
        (*at, sender, "step marking") for at in (MAIN, *OTHERS) for sender in ("DCTCP", "CUBIC")
    ]
    return [
        (
            "**CoDel scaled to the round trip** (50 and 500 us) helps senders that react to marks: "
            f"99 % of the small flows have a slowdown up to {text('small_p99', 'CoDel, scaled')} "
            f"with DCTCP ({text('small_p99', 'droptail')} with drop-tail) and "
            f"{text('small_p99', 'CoDel, scaled', 'CUBIC')} with CUBIC "
            f"({text('small_p99', 'droptail', 'CUBIC')}). The mean queue of DCTCP is "
            f"{text('queue_us', 'CoDel, scaled')} us instead of {text('queue_us', 'droptail')}.",
            below(codel, tail, "small_p99", "queue_us")
            and by.ordered("CUBIC", "small_p99", "CoDel, scaled", "droptail"),
        ),
        (
            f"**Step marking** helps more: {text('small_p99', 'step marking')} with DCTCP and "
            f"{text('small_p99', 'step marking', 'CUBIC')} with CUBIC, with queues of "
            f"{text('queue_us', 'step marking')} and {text('queue_us', 'step marking', 'CUBIC')} "
            "us. No run of the two with it had a timeout.",
            below(step, codel, "small_p99", "queue_us")
            and by.ordered("CUBIC", "small_p99", "step marking", "CoDel, scaled")
            and all(by.campaign.values(case, TIMEOUTS).max() == 0 for case in marked),
        ),
        (
            "**PIE, scaled** by the same rule has a shorter queue than CoDel, "
            f"{text('queue_us', 'PIE, scaled')} us with DCTCP, but {text(TIMEOUTS, 'PIE, scaled')} "
            f"timeouts per run (CoDel {text(TIMEOUTS, 'CoDel, scaled')}), since it drops packets "
            "that cannot be marked, as SYNs are. Small flows have "
            f"{text('small_p99', 'PIE, scaled')}.",
            below(pie, codel, "queue_us")
            and below(codel, pie, TIMEOUTS)
            and below(pie, tail, "small_p99"),
        ),
        (
            "**DualPI2, scaled**, with DCTCP in its queue L, is better than step marking for small "
            f"flows: {text('small_p99', 'DualPI2, scaled')}. With the defaults of the RFC: "
            f"{text('small_p99', 'DualPI2, RFC')}. CUBIC, in the queue C, has "
            f"{text('small_p99', 'DualPI2, scaled', 'CUBIC')} and "
            f"{text(TIMEOUTS, 'DualPI2, scaled', 'CUBIC')} timeouts.",
            below(dual, step, "small_p99")
            and below(dual, main_case("DualPI2, RFC"), "small_p99")
            and by.ordered("CUBIC", "small_p99", "step marking", "DualPI2, scaled"),
        ),
        (
            f"**RED** has {text(TIMEOUTS, 'RED')} timeouts per run with DCTCP, "
            f"{text(TIMEOUTS, 'RED', 'CUBIC')} with CUBIC and {text(TIMEOUTS, 'RED', 'Swift')} "
            "with Swift. It drops packets that cannot be marked "
            "([measured](../docs/how-to/data-centres.md#marking-in-switches)).",
            below(step, red, TIMEOUTS, "dropped")
            and by.ordered("CUBIC", TIMEOUTS, "step marking", "RED")
            and by.ordered("Swift", TIMEOUTS, "step marking", "RED"),
        ),
    ]


def _queues_per_flow(by: Comparison) -> Statements:
    text, below = by.text, by.below
    step, fq, ewfq = (main_case(q) for q in ("step marking", "FQ-CoDel, scaled", "EWFQ"))
    isolated = by.campaign.values(main_case("FQ-CoDel, RFC"), "small_p99")
    each = [text("small_p99", "FQ-CoDel, scaled", sender) for sender in SENDERS]
    return [
        (
            "**FQ-CoDel, scaled** protects small flows best of all that mark: "
            f"{', '.join(each[:-1])} and {each[-1]} with {', '.join(list(SENDERS)[:-1])} and "
            f"{list(SENDERS)[-1]}, though the queue of DCTCP is longer than with step marking. "
            "Isolation does that: with the defaults of the RFC the median over seeds is "
            f"{figure(float(np.median(isolated)))} with DCTCP, but some seeds have timeouts of "
            f"small flows, and the mean is {text('small_p99', 'FQ-CoDel, RFC')}. The scaled target "
            f"helps medium flows: {text('medium_p99', 'FQ-CoDel, scaled')} instead of "
            f"{text('medium_p99', 'FQ-CoDel, RFC')}.",
            all(
                by.ordered(sender, "small_p99", "FQ-CoDel, scaled", other)
                for sender in SENDERS
                for other in ("step marking", "CoDel, scaled", "PIE, scaled", "DualPI2, scaled")
            )
            and below(step, fq, "queue_us")
            and bool(np.median(isolated) < by.campaign.values(step, "small_p99").min())
            and below(fq, main_case("FQ-CoDel, RFC"), "medium_p99"),
        ),
        (
            f"**EWFQ** protects small flows as well ({text('small_p99', 'EWFQ')} with DCTCP), but "
            f"drops {text('dropped', 'EWFQ')} % of the packets, since it does not mark, and large "
            f"flows get {text('large_gbit', 'EWFQ')} Gbit/s (step marking "
            f"{text('large_gbit', 'step marking')}).",
            below(ewfq, step, "small_p99", "large_gbit"),
        ),
    ]


def _queries(by: Comparison) -> tuple[str, bool]:
    tail, step, codel, fq = (
        main_case(q) for q in ("droptail", "step marking", "CoDel, scaled", "FQ-CoDel, scaled")
    )
    text = by.text
    return (
        "**Queries** with 24 answers of DCTCP: 99 % take up to "
        f"{text('query_p99_ms', 'droptail')} ms with drop-tail, "
        f"{text('query_p99_ms', 'CoDel, scaled')} with scaled CoDel, "
        f"{text('query_p99_ms', 'FQ-CoDel, scaled')} with scaled FQ-CoDel and "
        f"{text('query_p99_ms', 'step marking')} with step marking, which leaves room in the "
        "buffer and so has no timeouts.",
        by.below(codel, tail, "query_p99_ms")
        and by.below(fq, tail, "query_p99_ms")
        and by.below(step, fq, "query_p99_ms"),
    )


def _swift(by: Comparison) -> tuple[str, bool]:
    text = by.text
    return (
        "**Swift** needs no help of the switch for a short queue: with drop-tail "
        f"{text('queue_us', 'droptail', 'Swift')} us. An AQM only drops its packets: 99 % of the "
        f"queries take up to {text('query_p99_ms', 'CoDel, scaled', 'Swift')} ms with scaled CoDel "
        f"and {text('query_p99_ms', 'RED', 'Swift')} with RED, "
        f"{text('query_p99_ms', 'droptail', 'Swift')} with drop-tail. Queues per flow help small "
        f"flows: {text('small_p99', 'FQ-CoDel, RFC', 'Swift')} instead of "
        f"{text('small_p99', 'droptail', 'Swift')} with FQ-CoDel, whose defaults are right here.",
        by.below(main_case("droptail", "Swift"), main_case("step marking"), "queue_us")
        and by.ordered("Swift", "query_p99_ms", "droptail", "CoDel, scaled", "RED")
        and by.ordered("Swift", "small_p99", "FQ-CoDel, RFC", "droptail")
        and by.ordered("Swift", "query_p99_ms", "FQ-CoDel, RFC", "droptail"),
    )


def _hpcc(by: Comparison) -> Statements:
    text, below = by.text, by.below
    tail, step = main_case("droptail", "HPCC"), main_case("step marking")
    slow, fast = (main_case("droptail", f"HPCC, {rate} Mbit/s") for rate in (10, 400))
    unchanged = all(
        by.same(tail, main_case(queue, "HPCC"), what)
        for queue in ("step marking", "CoDel, RFC", "PIE, RFC")
        for what in ("small_p99", "large_gbit", "query_p99_ms", "queue_us")
    )
    return [
        (
            f"**HPCC** has the shortest queue, {text('queue_us', 'droptail', 'HPCC')} us with "
            f"drop-tail, and small flows have {text('small_p99', 'droptail', 'HPCC')}. Large flows "
            f"get {text('large_gbit', 'droptail', 'HPCC')} Gbit/s. A discipline matters to it only "
            "where a queue forms, in incast: step marking and the defaults of CoDel and PIE change "
            f"no number, RED makes queries slow ({text('query_p99_ms', 'RED', 'HPCC')} ms instead "
            f"of {text('query_p99_ms', 'droptail', 'HPCC')}), and FQ-CoDel, scaled helps small "
            f"flows ({text('small_p99', 'FQ-CoDel, scaled', 'HPCC')}).",
            unchanged
            and below(tail, main_case("droptail", "Swift"), "queue_us")
            and below(tail, step, "small_p99", "large_gbit")
            and by.ordered("HPCC", "query_p99_ms", "droptail", "RED")
            and by.ordered("HPCC", "small_p99", "FQ-CoDel, scaled", "droptail"),
        ),
        (
            "**The lower bound of HPCC's rate** decides how long its queries take: up to "
            f"{text('query_p99_ms', 'droptail', 'HPCC')} ms with the default, a hundredth of the "
            f"line rate, {text('query_p99_ms', 'droptail', 'HPCC, 10 Mbit/s')} with 10 Mbit/s and "
            f"{text('query_p99_ms', 'droptail', 'HPCC, 400 Mbit/s')} with 400.",
            below(fast, tail, "query_p99_ms") and below(tail, slow, "query_p99_ms"),
        ),
    ]


def _sizes(by: Comparison) -> tuple[str, bool]:
    queues = ("step marking", "CoDel, scaled", "droptail")
    by_queue = [
        ("queue_us", at, sender, *pair)
        for at in OTHERS
        for sender in ("DCTCP", "CUBIC")
        for pair in pairwise(queues)
    ]
    by_slowdown = [
        ("small_p99", at, sender, "FQ-CoDel, scaled", other)
        for at in OTHERS
        for sender in ("DCTCP", "CUBIC", "Swift")
        for other in ("step marking", "CoDel, scaled")
    ]
    return (
        "**The order is the same with the sizes of web search and storage**: step marking, scaled "
        "CoDel and drop-tail by the queue of DCTCP and CUBIC, and FQ-CoDel, scaled before the "
        "first two for small flows of DCTCP, CUBIC and Swift.",
        all(
            by.below((*at, sender, one), (*at, sender, other), what)
            for what, at, sender, one, other in [*by_queue, *by_slowdown]
        ),
    )
