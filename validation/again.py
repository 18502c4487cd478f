"""The recorded rows that differ, beside ns-2 itself run again on the set-up as it was told.

One thing is changed: the simulator. What ns-2 finds when it is run again with other seeds is what
the recorded rows would be if nothing but chance set them apart from the told set-up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from validation.cases import CHANGED, FILES, RERUN, TOLD, Case, File, Metric
from validation.play import compared, verdict
from validation.report import mean, table
from validation.statistics import Array, Compared, compare, compare_with_known_spread

Played = Mapping[str, Sequence[tuple[Case, Mapping[str, Array]]]]

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
"""By a recorded file and what was changed of it, our runs of ns-2 on the same set-up."""

WORDS = """### Recorded rows that differ, beside ns-2 run again

One thing is changed: the simulator. Where the runs of ns-2 that we made ourselves (`again`) have
the row's set-up, the recorded mean is held against theirs, with their scatter, and ours too.
*chance*: the row lies where ns-2's own runs on that set-up do, and those agree with ours.
*set-up*: ns-2 run again agrees with us (or is close), and the row lies outside of what ns-2 finds
on that set-up: it was recorded on another (or, once in twenty, is chance all the same). *ours*:
ns-2 run again differs from us.

"""


def slug(file: File) -> str:
    """Give the name of a file in `causes.md`."""
    again = file in RERUN
    name = file.name.replace("reruns/", "again_")
    return name + ("_changed" if file.changed and not again else "")


def counts(played: Played) -> dict[str, int]:
    """Count the verdicts of each file, and of each group of files."""
    numbers: Counter[str] = Counter()
    for file in FILES:
        group = "again" if file in RERUN else "changed" if file in CHANGED else "told"
        for case, ours in played[file.title]:
            for metric in file.metrics:
                word = verdict(metric, compared(case, metric, ours[metric.column]))
                for key in (slug(file), group):
                    for counted in (word, "all"):
                        numbers[f"{key}_{counted}"] += 1
    return {
        f"{key}_{word}": numbers[f"{key}_{word}"]
        for key in [*map(slug, FILES), "told", "changed", "again"]
        for word in ("agrees", "close", "differs", "all")
    }


def again(played: Played) -> tuple[str, dict[str, int]]:
    """Give the table, and how often each word stands in it."""
    head = ["file and case", "metric", "recorded", "ns-2 again", "sojourn"]
    head += ["recorded - again", "sojourn - again", "so"]
    lines, words = [], Counter[str]()
    for file, case, metric, known, mine in _differing(played):
        recorded = case.theirs(metric)
        theirs = compare_with_known_spread(known, recorded)
        ours = compare(known, mine)
        so = _so(metric, theirs, ours)
        for key in (slug(file), "again"):
            words[f"{key}_{so}"] += 1
        lines.append(
            [
                f"{file.title}: {case.name}",
                metric.label,
                f"{recorded.mean():{metric.form}} ({len(recorded)})",
                f"{mean(ours.theirs, ours.theirs_half, metric.form)} ({len(known)})",
                f"{mean(ours.ours, ours.ours_half, metric.form)} ({len(mine)})",
                f"{theirs.difference:+{metric.form}} ± {theirs.half:{metric.form}}",
                f"{ours.difference:+{metric.form}} ± {ours.half:{metric.form}}",
                so,
            ]
        )
    kinds = ("chance", "set-up", "ours")
    keys = [slug(f) for f in TOLD + CHANGED] + ["again"]
    told = {f"{key}_{so.replace('-', '')}": words[f"{key}_{so}"] for key in keys for so in kinds}
    verdicts = counts(played)
    for key in keys:
        told[f"{key}_alone"] = verdicts[f"{key}_differs"] - sum(words[f"{key}_{k}"] for k in kinds)
    return WORDS + table(head, lines), told


def _differing(played: Played) -> Iterator[tuple[File, Case, Metric, Array, Array]]:
    """Give the rows that differ with ns-2's values again and ours, where there are such."""
    for file in TOLD + CHANGED:
        name = PAIRS.get(file.name + (f", {file.changed}" if file.changed else ""))
        other = next((f for f in RERUN if f.name == name), None)
        if other is None:
            continue
        for case, ours in played[file.title]:
            for metric in file.metrics:
                differs = verdict(metric, compared(case, metric, ours[metric.column])) == "differs"
                for twin, mine in played[other.title]:
                    if differs and twin.key == case.key and metric.column in mine:
                        yield file, case, metric, twin.theirs(metric), mine[metric.column]


def _so(metric: Metric, theirs: Compared, ours: Compared) -> str:
    if verdict(metric, ours) == "differs":
        return "ours"
    return "chance" if abs(theirs.difference) <= theirs.half else "set-up"
