"""HTML of scenarios, results and comparisons for notebooks.

The notebook's colours and fonts are used, light or dark. All text is escaped.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.units import counted, duration, figures, rate, share, short
from sojourn.display.summary import (
    compared,
    comparison_seeds,
    comparison_table,
    flow_table,
    link_table,
    ranking,
)
from sojourn.display.table import Table
from sojourn.engines.stepping import Simulation
from sojourn.result.result import Result
from sojourn.scenario import describe
from sojourn.scenario.keys import Scenario
from sojourn.scenario.load import canonical
from sojourn.sweeps.compare import Comparison

ROWS = 30
"""Largest number of rows of a table; further rows are counted."""

LINE = "1px solid rgba(128, 128, 128, 0.5)"
"""Border that is visible on light and dark pages."""


def html(shown: object) -> str | None:
    """Return a scenario, result, comparison or simulation as HTML; None for any other object."""
    if isinstance(shown, Simulation):
        return of_simulation(shown)
    if isinstance(shown, Result):
        return of_result(shown)
    if isinstance(shown, Comparison):
        return of_comparison(shown)
    return of_scenario(shown) if isinstance(shown, Scenario) else None


def of_scenario(scenario: Scenario) -> str:
    """Return tables of the links and flows of a scenario, and the number of its changes."""
    try:
        tree = canonical(scenario)
    except InputError as error:
        message = f"This scenario is not valid: {error}"
        return f"<div><p>{escape(message)}</p><pre>{escape(repr(scenario)[:2000])}</pre></div>"
    links = Table("link", "rate, one-way delay, discipline", left=2)
    for name in tree["links"]:
        links.add_row(name, describe.link(tree, name))
    flows = Table("flows", "source", "TCP", "path", "round trip", left=5)
    for flow in tree["flows"]:
        title = f"{flow['name']} ({flow['count']})" if flow["count"] > 1 else flow["name"]
        back = f"; back by {', '.join(flow['return_path'])}" if flow["return_path"] else ""
        flows.add_row(
            title,
            flow["source"]["name"],
            flow["tcp"]["name"] if "tcp" in flow else "UDP",
            ", ".join(flow["path"]) + back,
            flow.get("rtt", "that of its links"),
        )
    changes = counted(len(tree.get("changes", ())), "change")
    below = [f"{changes} during the run"] if "changes" in tree else []
    return _page(tree, describe.seeds(tree["seed"], 1), [links, flows], below)


def of_result(result: Result) -> str:
    """Return the tables of a result that `sojourn run` prints."""
    below = [f"{name}: {describe.link(result.scenario, name)}" for name in result.links]
    if len(below) > ROWS:
        below = []
    below += [f"warning: {text}" for text in result.warnings]
    seeds = describe.seeds(result.scenario["seed"], 1)
    return _page(result.scenario, seeds, [link_table(result), flow_table(result)], below)


def of_comparison(runs: Comparison) -> str:
    """Return the table of a comparison that `sojourn compare` prints."""
    if not runs:
        return f"<div>{escape(repr(runs))}</div>"
    table, marked = comparison_table(runs, runs.link)
    below = [compared(runs, runs.link)]
    if len(runs) > 1:
        below.append(ranking(len(next(iter(runs.values()))), marked=marked))
    return _page(runs.scenario, comparison_seeds(runs), [table], below)


def of_simulation(sim: Simulation) -> str:
    """Return the time of a simulation, and tables of the states of its links and flows."""
    if "_compiled" not in vars(sim):
        return f"<div>{escape(repr(sim))}</div>"
    links = Table("link", "rate", "queue", "queue, packets", "utilisation", "gauges", left=1)
    for name, link in sim.links.items():
        used = "" if link.utilisation is None else share(link.utilisation)
        gauges = ", ".join(f"{gauge} {short(value)}" for gauge, value in link.gauges.items())
        size = f"{figures(link.queue_bytes / 1e3)} kB"
        links.add_row(name, rate(link.rate_bps), size, str(link.queue_packets), used, gauges)
    flows = Table("flows", "number", "cwnd, packets", "round trip", "delivered", "timeouts")
    for name, flow in sim.flows.items():
        window = "" if flow.cwnd_packets is None else figures(flow.cwnd_packets)
        trip = "" if flow.srtt_s is None else duration(flow.srtt_s)
        size = f"{figures(flow.delivered_bytes / 1e6)} MB"
        flows.add_row(name, str(flow.flows), window, trip, size, str(flow.timeouts))
    head = f"{escape(describe.title(sim.scenario))}: {sim.now:g} s of {sim.end:g} s"
    return f'<div style="color:inherit"><p><b>{head}</b></p>{_table(links)}{_table(flows)}</div>'


def _page(
    scenario: Mapping[str, Any], seeds: str, tables: Sequence[Table], below: Sequence[str]
) -> str:
    """Return a heading, tables, and lines below them."""
    window = f"{describe.window(scenario)}; {seeds}"
    head = f"<p><b>{escape(describe.title(scenario))}</b>: {escape(window)}</p>"
    lines = "<br>".join(map(escape, below))
    foot = f'<p style="opacity:0.75">{lines}</p>' if below else ""
    return f'<div style="color:inherit">{head}{"".join(map(_table, tables))}{foot}</div>'


def _table(table: Table) -> str:
    """Return a table as HTML."""
    total = len(table.columns[0].cells)
    head = "".join(_cell("th", escape(c.header), left=c.left) for c in table.columns)
    rows = []
    for n in range(min(total, ROWS)):
        if n in table.headings:
            span = f'<th colspan="{len(table.columns)}" style="text-align:left">'
            rows.append(f"<tr>{span}{escape(table.headings[n].plain)}</th></tr>")
        cells = []
        for column in table.columns:
            text = escape(column.cells[n].plain.strip())
            bold = "bold" in str(column.cells[n].style)
            cells.append(_cell("td", f"<b>{text}</b>" if bold else text, left=column.left))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if total > ROWS:
        more = f'<td colspan="{len(table.columns)}">and {total - ROWS} more</td>'
        rows.append(f"<tr>{more}</tr>")
    style = "border-collapse:collapse;background:transparent;margin:0.5em 0"
    return (
        f'<table style="{style}"><thead style="border-bottom:{LINE}"><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(tag: str, text: str, *, left: bool) -> str:
    side = "left" if left else "right"
    return f'<{tag} style="text-align:{side};padding:0.1em 0.8em 0.1em 0">{text}</{tag}>'
