"""Reasons why a discipline did better than another in the same scenario, by the numbers of both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn._util.paths import links_of
from sojourn._util.public import public
from sojourn._util.units import duration, rate, share
from sojourn.explanation import queues
from sojourn.explanation.finding import Finding
from sojourn.result import select
from sojourn.result.result import Result

APART = 1.2
"""Ratio of two delays, or completion times, from which their difference has a reason."""

GOODPUT_APART = 1.05
"""Ratio of two goodputs from which their difference has a reason."""

LOSS_APART = 0.005
"""Difference of two loss rates from which it has a reason."""


@dataclass(frozen=True)
class Run:
    """A run of a comparison: its label and result."""

    label: str
    result: Result

    def link(self, name: str) -> Mapping[str, Any]:
        """Return the summary of a link."""
        return self.result.links[name]

    def qdisc(self, name: str) -> Mapping[str, Any]:
        """Return the canonical discipline of a link."""
        table: Mapping[str, Any] = self.result.scenario["links"][name]["qdisc"]
        return table


@dataclass(frozen=True)
class Gap:
    """A value of a group or link that two runs differ in; `better` has the better one."""

    metric: str
    better: Run
    worse: Run
    values: tuple[float, float]

    def finding(self, text: str) -> Finding:
        """Return the finding of this gap."""
        names = (self.better.label, self.worse.label)
        evidence = {f"{n}: {self.metric}": v for n, v in zip(names, self.values, strict=True)}
        return Finding(f"why {self.metric}", text, evidence, "fact")


@public
def explain_difference(
    results: Mapping[str, Result], metric: str | None = None
) -> dict[str, list[Finding]]:
    """Explain why disciplines did better or worse in the same scenario.

    Parameters
    ----------
    results : mapping of str to Result
        A run of each discipline with the same seed, by label. Each is compared with the first one.
    metric : str, optional
        Only this difference, like "call.delay_p99_s", "short.fct_mean_s", "bulk.goodput_bps" or
        "up.utilisation".

    Returns
    -------
    dict of str to list of Finding
        Findings by label, without the first one. Each names the better run, the mechanism, and the
        values of both.

    Raises
    ------
    InputError
        If no run has the metric.

    Examples
    --------
    >>> import sojourn as sj
    >>> both = sj.compare("home_uplink", ["droptail", "fq_codel"])
    >>> one_each = {name: runs[0] for name, runs in both.items()}
    >>> (why,) = sj.explain_difference(one_each, "call.delay_p99")["fq_codel"]
    >>> why.rule
    'why call.delay_p99_s'
    """
    (first, base), *others = results.items()
    values = {name: _values(result) for name, result in results.items()}
    if metric is not None:
        known = list(dict.fromkeys(one for each in values.values() for one in each))
        full = [one for one in known if metric in (one, one.removesuffix("_s"), one[:-4])]
        if not full:
            raise InputError(f"--metric: {shown(metric)} is not compared{near(metric, known)}")
        metric = full[0]
    reasons = {}
    for label, result in others:
        two = (Run(first, base), Run(label, result))
        each = (values[first], values[label])
        gaps = [_gap(name, two, each) for name in each[0] if metric in (None, name)]
        reasons[label] = [one for gap in gaps if gap is not None for one in _reasons(gap)]
        if metric is not None and not reasons[label]:
            reasons[label] = [_alike(metric, two, each)]
    return reasons


def _values(result: Result) -> dict[str, float | None]:
    """Return the values of a result that differences are explained for, in the order of flows."""
    values: dict[str, float | None] = {}
    for name, group in result.groups.items():
        flows = select.flows_of(result, name)
        if not flows:
            continue
        if flows[0]["kind"] == "udp":
            values[f"{name}.delay_p99_s"] = group["delay_p99_s"]
            values[f"{name}.loss_rate"] = group["loss_rate"]
        elif group.get("completed"):
            values[f"{name}.fct_mean_s"] = group["fct_mean_s"]
        else:
            values[f"{name}.goodput_bps"] = group["goodput_bps"]
    return values


def _gap(
    name: str, runs: tuple[Run, Run], values: tuple[Mapping[str, float | None], ...]
) -> Gap | None:
    """Return the difference of two runs in a value; None if it is small."""
    ours, theirs = (one.get(name) for one in values)
    if ours is None or theirs is None:
        return None
    low, high = min(ours, theirs), max(ours, theirs)
    more_is_better = name.endswith("goodput_bps")
    if name.endswith("loss_rate"):
        small = high - low < LOSS_APART
    else:
        small = high < (GOODPUT_APART if more_is_better else APART) * low
    if small or high == 0.0:
        return None
    first_wins = (ours > theirs) == more_is_better
    better, worse = runs if first_wins else runs[::-1]
    return Gap(name, better, worse, (ours, theirs) if first_wins else (theirs, ours))


def differences(base: Result, other: Result) -> list[tuple[str, float, float]]:
    """Return what differs between two results: the metric, and its values in both."""
    runs, values = (Run("", base), Run("", other)), (_values(base), _values(other))
    rows = [
        (name, float(values[0][name] or 0), float(values[1][name] or 0))
        for name in values[0]
        if _gap(name, runs, values) is not None
    ]
    for name, link in base.links.items():
        for what in ("sojourn_p50_s", "utilisation"):
            pair = (link[what], other.links[name][what])
            if None not in pair and max(pair) > GOODPUT_APART * min(pair):
                rows.append((f"{name}.{what}", *pair))
    return rows


def _alike(
    name: str, runs: tuple[Run, Run], values: tuple[Mapping[str, float | None], ...]
) -> Finding:
    ours, theirs = (one.get(name) for one in values)
    evidence = {f"{run.label}: {name}": v for run, v in zip(runs, (ours, theirs), strict=True)}
    return Finding(f"why {name}", f"{name} is about the same under both.", evidence, "fact")


def _reasons(gap: Gap) -> Iterator[Finding]:
    """Explain a gap by the link on the path where the two runs differ most."""
    name, _, what = gap.metric.rpartition(".")
    spec = next(one for one in gap.better.result.scenario["flows"] if one["name"] == name)
    link = max(links_of(spec), key=lambda one: _difference(gap, one))
    yield gap.finding(f"{_headline(gap, name, what)} {_mechanism(gap, name, link, what)}")


def _difference(gap: Gap, link: str) -> float:
    ours, theirs = (run.link(link)["sojourn_p99_s"] or 0.0 for run in (gap.better, gap.worse))
    return abs(float(theirs) - float(ours))


def _headline(gap: Gap, name: str, what: str) -> str:
    write = {"loss_rate": share, "goodput_bps": rate}.get(what, duration)
    noun = {
        "delay_p99_s": "one packet in a hundred took",
        "loss_rate": "lost",
        "fct_mean_s": "a transfer took on average",
        "goodput_bps": "got",
    }[what]
    better, worse = (write(value) for value in gap.values)
    return f"{name}: {noun} {better} under {gap.better.label}, {worse} under {gap.worse.label}."


def _mechanism(gap: Gap, name: str, link: str, what: str) -> str:
    """Return what made the difference at a link."""
    better, worse = gap.better, gap.worse
    apart = [queues.has_queue_per_flow(run.qdisc(link)) for run in (better, worse)]
    if what in ("delay_p99_s", "fct_mean_s"):
        parts = [_queueing(gap, name, link, apart)]
        if what == "fct_mean_s":
            parts.append(_resent(gap, name))
        return " ".join(filter(None, parts)) or _unknown(link)
    if what == "loss_rate":
        return " ".join(f"{_drops(run, link)}" for run in (better, worse))
    return _share(gap, name, link, apart)


def _queueing(gap: Gap, name: str, link: str, apart: list[bool]) -> str:
    """Return how the two queues of a link differ."""
    medians = [run.link(link)["sojourn_p50_s"] for run in (gap.better, gap.worse)]
    if None in medians:
        return ""
    if apart == [True, False]:
        return (
            f"At {link}, {gap.worse.label} has no queue for each flow: half of all packets waited "
            f"{duration(medians[1])} or longer. {_cause(gap.worse, link)} {gap.better.label} "
            f"has one for each flow, so packets of {name} do not wait behind other packets."
        )
    if note := _classes(gap, name, link):
        return note
    if max(medians) < APART * min(medians):
        return ""
    return (
        f"At {link} half of the packets waited {duration(medians[0])} or longer under "
        f"{gap.better.label}, {duration(medians[1])} under {gap.worse.label}. "
        f"{_cause(gap.better, link)} {_cause(gap.worse, link)}"
    )


def _cause(run: Run, link: str) -> str:
    spec = run.result.scenario["links"][link]
    median = run.link(link)["sojourn_p50_s"]
    return queues.cause(spec, median) if median is not None else ""


def _resent(gap: Gap, name: str) -> str:
    """Return how often the group sent packets again in both runs."""
    shares = []
    for run in (gap.better, gap.worse):
        flows = select.flows_of(run.result, name)
        sent = sum(one["sent_packets"] for one in flows)
        shares.append(sum(one["retransmitted_packets"] for one in flows) / sent if sent else 0.0)
    if abs(shares[0] - shares[1]) < LOSS_APART:
        return ""
    return (
        f"{name} sent {share(shares[0])} of its packets again under {gap.better.label}, "
        f"{share(shares[1])} under {gap.worse.label}."
    )


def _drops(run: Run, link: str) -> str:
    """Return which part of the packets a link dropped, and where."""
    of = run.link(link)
    arrived, full = of["arrived_packets"], of["dropped_full_packets"]
    if not arrived or not of["dropped_packets"]:
        return f"{run.label} dropped nothing at {link}."
    where = "at its full buffer" if full > 0.5 * of["dropped_packets"] else "by its decisions"
    return f"{run.label} dropped {share(of['dropped_packets'] / arrived)} at {link}, {where}."


def _share(gap: Gap, name: str, link: str, apart: list[bool]) -> str:
    """Return why a group of endless flows got more: use of the link, or its share of it."""
    better, worse = gap.better, gap.worse
    use = [run.link(link)["utilisation"] for run in (better, worse)]
    if None not in use and use[0] > GOODPUT_APART * use[1]:
        return (
            f"{better.label} used {link} for {share(use[0])} of the time, {worse.label} for "
            f"{share(use[1])}. {_drops(better, link)} {_drops(worse, link)}"
        )
    rest = [rate(_rest(run, name, link)) for run in (better, worse)]
    text = (
        f"The other groups of {link} got {rest[0]} under {better.label}, {rest[1]} under "
        f"{worse.label}."
    )
    if note := _classes(gap, name, link):
        return f"{text} {note}"
    if apart[0] != apart[1]:
        one, other = (better, worse) if apart[0] else (worse, better)
        return (
            f"{text} {one.label} gives each flow a queue and an equal share; under {other.label} "
            "senders compete for one queue."
        )
    return f"{text} {_drops(better, link)} {_drops(worse, link)}"


def _rest(run: Run, name: str, link: str) -> float:
    """Return the goodput of the other groups that cross a link."""
    flows = run.result.scenario["flows"]
    others = [one["name"] for one in flows if link in links_of(one) and one["name"] != name]
    return float(sum(run.result.groups[one]["goodput_bps"] or 0.0 for one in others))


def _classes(gap: Gap, name: str, link: str) -> str:
    """Return which of the two runs sorts packets into classes, if the flows have several."""
    flows = [one for one in gap.better.result.scenario["flows"] if link in links_of(one)]
    own = next(one["class"] for one in flows if one["name"] == name)
    sorts = [queues.has_classes(run.qdisc(link)) for run in (gap.better, gap.worse)]
    if len({one["class"] for one in flows}) < 2 or sorts[0] == sorts[1]:
        return ""
    run = gap.better if sorts[0] else gap.worse
    return f"{run.label} sorts packets by their class (DSCP); {name} has class {own}."


def _unknown(link: str) -> str:
    return f"The queue of {link} was alike under both; these numbers do not show the reason."
