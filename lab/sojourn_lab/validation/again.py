"""Compare the recorded rows that differ with our own runs of ns-2 on the documented set-up.

Only the simulator differs. Our own runs of ns-2 with other seeds show the scatter that the recorded
rows would have on the documented set-up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sojourn_lab.validation.cases import Case, File, Metric
from sojourn_lab.validation.files import CHANGED, DESCRIBED, FILES, RERUN
from sojourn_lab.validation.report import mean, table
from sojourn_lab.validation.simulate import compared, verdict
from sojourn_lab.validation.statistics import Array, Compared, compare, compare_with_known_spread

Results = Mapping[str, Sequence[tuple[Case, Mapping[str, Array]]]]

PAIRS = {
    "td_red_ftp": "reruns/bulk_data",
    "td_red_ftp, one more link": "reruns/bulk_data_trunk",
    "drr_wfq_fair3": "reruns/fair",
    "drr_wfq_fair5": "reruns/fair5",
    "codel_dc_incast": "reruns/switch_told",
    "codel_dc_vary": "reruns/switch_told",
    "drr_dumbbell": "reruns/two_way",
    "drr_dumbbell, receivers on the hosts": "reruns/two_way_hosts",
}
"""Recorded file, with its change, and our own runs of ns-2 on the same set-up."""

WORDS = """### Recorded rows that differ, against our own runs of ns-2

Our own runs of ns-2 ("rerun") have the documented set-up of the row. They are compared with the
recorded mean and with sojourn. The cause is

- *scatter*: the recorded mean is within the scatter of the rerun, which agrees with sojourn;
- *set-up*: the rerun agrees with sojourn or is close, and the recorded mean is outside of the
  scatter of the rerun. It was recorded with another set-up (or, once in twenty, is scatter);
- *sojourn*: the rerun differs from sojourn.

"""

CAUSES = {"chance": "scatter", "set-up": "set-up", "ours": "sojourn"}
"""Causes of a difference as the page names them."""


def slug(file: File) -> str:
    """Return the name of a file in `causes.md`."""
    again = file in RERUN
    name = file.name.replace("reruns/", "again_")
    return name + ("_changed" if file.changed and not again else "")


def counts(results: Results) -> dict[str, int]:
    """Count the verdicts of each file, and of each group of files."""
    numbers: Counter[str] = Counter()
    for file in FILES:
        group = "again" if file in RERUN else "changed" if file in CHANGED else "described"
        for case, ours in results[file.title]:
            for metric in file.metrics:
                word = verdict(metric, compared(case, metric, ours[metric.column]))
                for key in (slug(file), group):
                    for counted in (word, "all"):
                        numbers[f"{key}_{counted}"] += 1
    return {
        f"{key}_{word}": numbers[f"{key}_{word}"]
        for key in [*map(slug, FILES), "described", "changed", "again"]
        for word in ("agrees", "close", "differs", "all")
    }


def again(results: Results) -> tuple[str, dict[str, int | str]]:
    """Return the table, and for `causes.md` the numbers of rows per cause."""
    head = ["file and case", "metric", "recorded", "rerun of ns-2", "sojourn"]
    head += ["recorded - rerun", "sojourn - rerun", "cause"]
    lines, words, named = [], Counter[str](), []
    for file, case, metric, known, mine in _differing(results):
        recorded = case.theirs(metric)
        theirs = compare_with_known_spread(known, recorded)
        ours = compare(known, mine)
        so = _so(metric, theirs, ours)
        for key in (slug(file), "again"):
            words[f"{key}_{so}"] += 1
        if so == "ours":
            named.append(f"{metric.label} of {file.title}: {case.name}")
        lines.append(
            [
                f"{file.title}: {case.name}",
                metric.label,
                f"{recorded.mean():{metric.form}} ({len(recorded)})",
                f"{mean(ours.theirs, ours.theirs_half, metric.form)} ({len(known)})",
                f"{mean(ours.ours, ours.ours_half, metric.form)} ({len(mine)})",
                f"{theirs.difference:+{metric.form}} ± {theirs.half:{metric.form}}",
                f"{ours.difference:+{metric.form}} ± {ours.half:{metric.form}}",
                CAUSES[so],
            ]
        )
    kinds = ("chance", "set-up", "ours")
    keys = [slug(f) for f in DESCRIBED + CHANGED] + ["again"]
    numbers: dict[str, int | str] = {"again_ours_named": "; ".join(named) or "none"}
    numbers |= {
        f"{key}_{so.replace('-', '')}": words[f"{key}_{so}"] for key in keys for so in kinds
    }
    verdicts = counts(results)
    for key in keys:
        numbers[f"{key}_alone"] = verdicts[f"{key}_differs"] - sum(
            words[f"{key}_{k}"] for k in kinds
        )
    return WORDS + table(head, lines), numbers


def _differing(results: Results) -> Iterator[tuple[File, Case, Metric, Array, Array]]:
    """Yield the rows that differ, with the values of the rerun and of sojourn."""
    for file in DESCRIBED + CHANGED:
        name = PAIRS.get(file.name + (f", {file.changed}" if file.changed else ""))
        other = next((f for f in RERUN if f.name == name), None)
        if other is None:
            continue
        for case, ours in results[file.title]:
            for metric in file.metrics:
                differs = verdict(metric, compared(case, metric, ours[metric.column])) == "differs"
                for twin, mine in results[other.title]:
                    if differs and twin.key == case.key and metric.column in mine:
                        yield file, case, metric, twin.theirs(metric), mine[metric.column]


def _so(metric: Metric, theirs: Compared, ours: Compared) -> str:
    if verdict(metric, ours) == "differs":
        return "ours"
    return "chance" if abs(theirs.difference) <= theirs.half else "set-up"
