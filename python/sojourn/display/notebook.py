"""HTML of scenarios, results, comparisons and disciplines for notebooks.

The notebook's colours and fonts are used, light or dark. All text is escaped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.text import Text

from sojourn._sojourn import InputError
from sojourn._util.base import Model
from sojourn._util.html import escape
from sojourn._util.paths import described
from sojourn._util.units import counted, duration, figures, rate, share, short
from sojourn.custom.base import Custom
from sojourn.display import parameters
from sojourn.display.sparkline import sparkline
from sojourn.display.summary import (
    ROWS,
    compared,
    comparison_seeds,
    comparison_table,
    flow_table,
    link_table,
    ranking,
)
from sojourn.display.table import Table
from sojourn.engines.stepping import Simulation, State
from sojourn.metrics.overview import groups
from sojourn.result.result import Array, Columns, Result
from sojourn.result.select import links_by_queue
from sojourn.scenario import describe
from sojourn.scenario.draft import canonical
from sojourn.scenario.keys import Scenario
from sojourn.sweeps.compare import Comparison

LINE = "1px solid rgba(128, 128, 128, 0.5)"
"""Border that is visible on light and dark pages."""


def html(shown: object) -> str | None:
    """Return an object of this package as HTML; None for one that its repr describes."""
    if isinstance(shown, Simulation):
        return of_simulation(shown)
    if isinstance(shown, Result):
        return of_result(shown)
    if isinstance(shown, Comparison):
        return of_comparison(shown)
    if isinstance(shown, Model | Custom):
        return of_model(shown)
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
        back = f"; back by {described(flow['return_path'])}" if flow["return_path"] else ""
        flows.add_row(
            title,
            flow["source"]["name"],
            flow["tcp"]["name"] if "tcp" in flow else "UDP",
            described(flow["path"]) + back,
            flow.get("rtt", "as its links"),
        )
    changes = counted(len(tree.get("changes", ())), "change")
    below = [f"{changes} during the run"] if "changes" in tree else []
    return _page(
        tree, describe.seeds(tree["seed"], 1), [table_html(links), table_html(flows)], below
    )


def of_result(result: Result) -> str:
    """Return the tables of a result that `sojourn run` prints, with lines of the series."""
    below = describe.links(result.scenario)
    if len(below) > ROWS:
        below = []
    below += [f"warning: {text}" for text in result.warnings]
    seeds = describe.seeds(result.scenario["seed"], 1)
    delays = _delays({name: result.links[name].series for name in links_by_queue(result, ROWS)})
    tables = [
        table_html(link_table(result), column=("queueing delay over time", delays)),
        table_html(flow_table(result), column=("goodput over time", _goodputs(result))),
    ]
    return _page(result.scenario, seeds, tables, below)


def _delays(series: Mapping[str, Columns], most: float | None = None) -> list[str]:
    """Return a line of the queueing delay of each link or discipline, if there are series."""
    lines = []
    for name, columns in series.items():
        values, top = _delay(columns)
        label = f"queueing delay of {name}, 0 to {duration(top if most is None else most)}"
        lines.append(sparkline(values, label, most))
    return lines if any(lines) else []


def _delay(series: Columns) -> tuple[Array, float]:
    """Return the queueing delay over time, and its largest value; empty without series."""
    values = series.get("sojourn_s", np.zeros(0))
    return values, float(np.nanmax(values, initial=0.0))


def _goodputs(result: Result) -> list[str]:
    """Return a line of the goodput of each group of flows, if there are series."""
    if not result.sampled or len(result.time_s) < 2:
        return []
    step_s = float(result.time_s[1] - result.time_s[0])
    lines = []
    for group in groups(result):
        columns = [
            flow.series.get("delivered_bytes")
            for flow in result.flows.values()
            if flow["group"] == group.name
        ]
        bps = sum((one * 8 / step_s for one in columns if one is not None), np.zeros(1))
        label = f"goodput of {group.name}, 0 to {rate(float(bps.max()))}"
        lines.append(sparkline(bps, label) if bps.max() > 0 else "")
    return lines if any(lines) else []


def of_comparison(runs: Comparison) -> str:
    """Return the table of a comparison that `sojourn compare` prints, with lines of the delay."""
    if not runs:
        return f"<div>{escape(repr(runs))}</div>"
    table, marked = comparison_table(runs, runs.link)
    below = [compared(runs, runs.link)]
    if len(runs) > 1:
        below.append(ranking(len(next(iter(runs.values()))), marked=marked))
    series = {name: results[0].links[runs.link].series for name, results in runs.items()}
    top = max(_delay(one)[1] for one in series.values())
    lines = _delays(series, top)
    row = [f"  queueing delay over time, 0 to {duration(top)}", *lines] if lines else []
    return _page(runs.scenario, comparison_seeds(runs), [table_html(table, row=row)], below)


def of_model(model: Model | Custom) -> str:
    """Return the parameters of a discipline, TCP or source: value, default and description."""
    described = parameters.described(model)
    table = Table("parameter", "value", "default", "description", left=4)
    for one in described.rows:
        value = Text(one.value, style="bold") if one.given else Text(one.value)
        table.add_row(one.name, value, one.default if one.given else "", one.about)
    head = f"<p><b>{escape(described.name)}</b>: {escape(described.about)}</p>"
    foot = f'<p style="opacity:0.75">{escape(described.source)}</p>' if described.source else ""
    return f'<div style="color:inherit">{head}{table_html(table)}{foot}</div>'


def of_simulation(sim: Simulation) -> str:
    """Return the time of a simulation, and tables of the states of its links and flows."""
    if "_compiled" not in vars(sim):
        return f"<div>{escape(repr(sim))}</div>"
    links = Table("link", "rate", "queue", "queue, packets", "utilisation", "gauges", left=1)
    for name, link in sim.links.items():
        used = "" if link.utilisation is None else share(link.utilisation)
        size = f"{figures(link.queue_bytes / 1e3)} kB"
        links.add_row(name, rate(link.rate_bps), size, str(link.queue_packets), used, _gauges(link))
    heads = ["flows", "number", "cwnd, packets", "round trip", "delivered", "timeouts"]
    shows = any(flow.gauges for flow in sim.flows.values())
    flows = Table(*heads, *(["gauges"] if shows else []))
    for name, flow in sim.flows.items():
        window = "" if flow.cwnd_packets is None else figures(flow.cwnd_packets)
        trip = "" if flow.srtt_s is None else duration(flow.srtt_s)
        size = f"{figures(flow.delivered_bytes / 1e6)} MB"
        cells = [str(flow.flows), window, trip, size, str(flow.timeouts)]
        gauges = [_gauges(flow)] if shows else []
        flows.add_row(name, *cells, *gauges)
    head = f"{escape(describe.title(sim.scenario))}: {sim.now:g} s of {sim.end:g} s"
    tables = f"{table_html(links)}{table_html(flows)}"
    return f'<div style="color:inherit"><p><b>{head}</b></p>{tables}</div>'


def _gauges(state: State) -> str:
    """Return the gauges of a link or of flows in one line."""
    return ", ".join(f"{gauge} {short(value)}" for gauge, value in state.gauges.items())


def _page(
    scenario: Mapping[str, Any], seeds: str, tables: Sequence[str], below: Sequence[str]
) -> str:
    """Return a heading, tables, and lines below them."""
    window = f"{describe.window(scenario)}; {seeds}"
    head = f"<p><b>{escape(describe.title(scenario))}</b>: {escape(window)}</p>"
    lines = "<br>".join(map(escape, below))
    foot = f'<p style="opacity:0.75">{lines}</p>' if below else ""
    return f'<div style="color:inherit">{head}{"".join(tables)}{foot}</div>'


def table_html(
    table: Table, *, column: tuple[str, Sequence[str]] = ("", ()), row: Sequence[str] = ()
) -> str:
    """Return a table as HTML; a last `column`, and a last `row` after its name, are HTML."""
    total = len(table.columns[0].cells)
    title, last = column
    head = "".join(_cell("th", escape(c.header), left=c.left) for c in table.columns)
    head += _cell("th", escape(title), left=True) if last else ""
    rows = []
    for n in range(min(total, ROWS)):
        if n in table.headings:
            span = f'<th colspan="{len(table.columns)}" style="text-align:left">'
            rows.append(f"<tr>{span}{escape(table.headings[n].plain)}</th></tr>")
        cells = []
        for one in table.columns:
            text = escape(one.cells[n].plain.strip())
            bold = "bold" in str(one.cells[n].style)
            cells.append(_cell("td", f"<b>{text}</b>" if bold else text, left=one.left))
        if last:
            cells.append(_cell("td", last[n], left=True))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if row:
        name, *drawn = row
        cells = [_cell("td", escape(name.strip()), left=True)]
        cells += [_cell("td", one, left=False) for one in drawn]
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
