"""Terminal reports of runs, comparisons, replays and steady states."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from sojourn import metrics
from sojourn._util import units
from sojourn._util.size_table import tables_of
from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn.metrics.overview import Group, completion_times, groups, rows
from sojourn.result.result import Result
from sojourn.result.select import links_by_queue
from sojourn.scenario import describe

if TYPE_CHECKING:
    from sojourn.result.steady_state import Steady


ROWS = describe.MANY
"""Largest number of rows of a table of links or flows; further rows are counted."""


def run_report(result: Result) -> None:
    """Print the tables of a run: links, and groups of flows."""
    out, scenario = console(), result.scenario
    _heading(out, scenario, describe.seeds(scenario["seed"], 1))
    out.print()
    out.print(link_table(result, ROWS), soft_wrap=True)
    _print_lines(out, describe.links(scenario))
    if result.switches:
        out.print()
        out.print(switch_table(result, ROWS), soft_wrap=True)
    out.print()
    out.print(flow_table(result, ROWS), soft_wrap=True)
    sizes = [
        (flow["name"], f"sizes of {file}, mean {units.size(mean)}")
        for flow in scenario["flows"]
        for file, mean in tables_of(flow["source"])
    ]
    _print_lines(out, describe.alike(sizes, "groups"))
    if "live" in result.summary:
        out.print()
        _faithful(result.summary["live"])


def _print_lines(out: Console, lines: Sequence[str]) -> None:
    """Print the first lines, and the number of the others."""
    for line in lines[:ROWS]:
        out.print(line, markup=False)
    if len(lines) > ROWS:
        out.print(f"and {len(lines) - ROWS} more")


def _faithful(live: Mapping[str, Any]) -> None:
    """Print the accuracy of a run on real packets."""
    table = Table("lateness", "50 %", "99 %", "max", "over 1 ms", "processor")
    table.add_row(
        "packets",
        *(_or_dash(live[f"lateness_{what}_s"], units.duration) for what in ("p50", "p99", "max")),
        _or_dash(live["late_share"], units.share),
        _or_dash(live["cpu_share"], units.share),
    )
    applications = (_or_dash(live[f"application_{p}_s"], units.duration) for p in ("p50", "p99"))
    table.add_row("applications", *applications, "", "", "")
    out = console()
    out.print(table, soft_wrap=True)
    for warning in live["warnings"]:
        out.print(f"mind: {warning}", markup=False)
    if not live["warnings"]:
        out.print("real packets; the processor kept up", markup=False)


def _heading(out: Console, scenario: Mapping[str, Any], seeds: str) -> None:
    title = escape(describe.title(scenario))
    out.print(f"[bold]{title}[/]: {describe.window(scenario)}; {seeds}")


def link_table(result: Result, most: int | None = None) -> Table:
    """Return the table of the links of a run, with `most` rows and the number of further links.

    If they are many, the links with the longest queue come first.
    """
    table = Table(
        "link", "utilisation", "loss", "marked", "mean queue", "mean delay", "50 %", "99 %"
    )
    names = links_by_queue(result, ROWS)
    for name in names[:most]:
        link = result.links[name]
        table.add_row(
            name,
            _or_dash(link["utilisation"], units.share),
            _or_dash(link["loss_rate"], units.share),
            _or_dash(link["mark_rate"], units.share),
            _or_dash(link["queue_mean_bytes"], lambda b: f"{units.figures(b / 1000)} kB"),
            _or_dash(link["sojourn_mean_s"], units.duration),
            _or_dash(link["sojourn_p50_s"], units.duration),
            _or_dash(link["sojourn_p99_s"], units.duration),
        )
    _count_others(table, names, most)
    return table


def switch_table(result: Result, most: int | None = None) -> Table:
    """Return the table of shared buffers, with `most` rows and the number of further switches.

    If they are many, the switches whose buffers were fullest come first.
    """
    table = Table("switch", "shared buffer", "most used", "dropped for lack of room")
    names = [*result.switches]
    if most is not None and len(names) > most:
        names.sort(key=lambda name: result.switches[name]["buffer_max_bytes"], reverse=True)
    for name in names[:most]:
        spec, used = result.scenario["switches"][name], result.switches[name]["buffer_max_bytes"]
        dropped = sum(result.links[port]["dropped_buffer_packets"] for port in spec["ports"])
        table.add_row(name, spec["buffer"], units.size(used), units.counted(dropped, "packet"))
    _count_others(table, names, most)
    return table


def _count_others(table: Table, names: Sequence[object], most: int | None) -> None:
    """Add a row with the number of `names` beyond the first `most`."""
    if most is not None and len(names) > most:
        table.add_row(f"and {len(names) - most} more")


def flow_table(result: Result, most: int | None = None) -> Table:
    """Return the table of the groups of flows, with `most` rows and the number of further groups.

    If they are many, the groups with the highest goodput come first.
    """
    headers = ("flows", "source", "goodput", "lost or resent", "outcome")
    table = Table(*headers, left=2, prose=[4])
    listed = groups(result)
    if most is not None and len(listed) > most:
        listed.sort(key=lambda group: group.total("goodput_bps"), reverse=True)
    for group in listed[:most]:
        table.add_row(
            group.title,
            group.source,
            units.rate(group.total("goodput_bps")),
            _lost(group),
            _times(result, group),
        )
    _count_others(table, listed, most)
    return table


def _lost(group: Group) -> str:
    if group.udp:
        return _or_dash(group.loss_rate(), units.share)
    sent = group.total("sent_packets")
    return units.share(group.total("retransmitted_packets") / sent) if sent else "-"


def _times(result: Result, group: Group) -> str:
    """Describe what an application experiences: delay of a call, completion of transfers."""
    if group.source == "call":
        worst = group.worst("frame_delay_p95_s")
        return "-" if worst is None else f"frames {units.duration(worst)} (95 %)"
    if group.udp:
        worst = group.worst("delay_p99_s")
        return "-" if worst is None else f"delay {units.duration(worst)} (99 %)"
    if group.source == "video":
        rate = metrics.video_rate_bps(result, group.name)
        stalled = units.duration(metrics.video_stalled_s(result, group.name))
        return "no segment" if rate is None else f"video {units.rate(rate)}, stalled {stalled}"
    if not group.endless:
        took = completion_times(result, group)
        left = f", {group.unfinished} unfinished" if group.unfinished else ""
        if not len(took):
            return f"none completed{left}"
        return f"{len(took)} done in {units.duration(float(took.mean()))} (mean){left}"
    return units.counted(round(group.total("timeouts")), "timeout")


def _or_dash(value: float | None, write: Any) -> str:
    return "-" if value is None else str(write(value))


def comparison_text(runs: Mapping[str, Sequence[Result]], link: str) -> str:
    """Return the text that `comparison` prints."""
    out = console(file=StringIO())
    with out.capture() as captured:
        comparison(runs, link, out)
    return captured.get().rstrip("\n")


def comparison(runs: Mapping[str, Sequence[Result]], link: str, out: Console | None = None) -> None:
    """Print a comparison: a row per reading, a column per discipline, the best marked."""
    out = out or console()
    _heading(out, next(iter(runs.values()))[0].scenario, comparison_seeds(runs))
    out.print(compared(runs, link))
    out.print()
    table, marked = comparison_table(runs, link)
    out.print(table, soft_wrap=True)
    if len(runs) > 1:
        out.print(ranking(len(next(iter(runs.values()))), marked=marked))


def comparison_seeds(runs: Mapping[str, Sequence[Result]]) -> str:
    """Describe the seeds of a comparison."""
    first = next(iter(runs.values()))
    seeds = describe.seeds(first[0].scenario["seed"], len(first))
    if len(first) == 1:
        return seeds
    return f"means over {seeds}, percentiles over all their values, 95 % intervals"


def compared(runs: Mapping[str, Sequence[Result]], link: str) -> str:
    """Describe the compared link: its name, rate and buffer."""
    by_label = {label: results[0].scenario for label, results in runs.items()}
    scenarios = [*by_label.values()]
    names = describe.differing(scenarios, link)
    what = describe.disciplines(names)
    what += f" differ; {link}" if len(names) > 1 else " differs"
    rate = describe.rate(scenarios[0]["links"][link])
    return f"only the {what}: {rate}, {describe.buffers(by_label, link)}"


def comparison_table(runs: Mapping[str, Sequence[Result]], link: str) -> tuple[Table, bool]:
    """Return the table of a comparison, and True if any row has a marked best value."""
    read = rows(runs, link)
    table = Table("", *runs)
    marked = any(any(row.best) for row in read)
    last = ""
    for row in read:
        if row.like.of != last:
            table.add_heading(row.like.of)
            last = row.like.of
        unit = f", {row.like.unit}" if row.like.unit else ""
        cells = (
            Text(f"{text}*", style="bold green") if best else Text(text + " " * marked)
            for text, best in zip(row.texts, row.best, strict=True)
        )
        table.add_row(f"  {row.like.what}{unit}", *cells)
    return table, marked


def comparison_tree(runs: Mapping[str, Sequence[Result]], link: str) -> list[dict[str, Any]]:
    """Return the table of a comparison for `--json`: rows with an estimate per discipline."""
    return [
        {
            "of": row.like.of,
            "what": row.like.what,
            "unit": row.like.unit,
            "estimates": {
                name: asdict(estimate) for name, estimate in zip(runs, row.estimates, strict=True)
            },
        }
        for row in rows(runs, link)
    ]


def ranking(seeds: int, *, marked: bool) -> str:
    """Explain the stars of a comparison, or why there are none."""
    if seeds == 1:
        return "one seed cannot rank disciplines: 10 seeds give intervals and mark the best"
    if not marked:
        return "in no row does the best separate from all others with 95 % confidence"
    return "* best of its row with 95 % confidence, by differences seed by seed"


def replay_report(summary: Mapping[str, Any], out: Path) -> None:
    """Print the summary of a replay."""
    mean, longest = summary["sojourn_mean_s"], summary["sojourn_max_s"]
    arrived = units.counted(summary["arrived_packets"], "packet")
    console().print(
        f"{arrived}: {summary['departed_packets']} sent, "
        f"{summary['dropped_packets']} dropped, {summary['marked_packets']} marked; waiting "
        f"{_or_dash(mean, units.duration)} on average, {_or_dash(longest, units.duration)} at "
        f"most; every packet is in {escape(str(out))}"
    )


def steady_report(links: "Sequence[Steady]") -> None:
    """Print steady-state means, with the warm-up that was removed."""
    headers = ("link", "quantity", "mean (95 %, 20 batches)", "warm-up cut", "")
    table = Table(*headers, left=2)
    for one in links:
        doubt = "too short to tell" if one.doubtful else ""
        mean = f"{units.with_half(one.mean.mean, one.mean.half)} {one.unit}".rstrip()
        cut = f"{one.cut_s:.3g} of {one.of_s:.3g} s"
        table.add_row(one.link, one.what, mean, cut, doubt)
    console().print()
    console().print(table, soft_wrap=True)
