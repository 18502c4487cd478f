"""Scorecard: one HTML page without network access, a table for the terminal, Parquet and JSON."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn
from sojourn._util.files import naming, parquet, replacing, write_text
from sojourn._util.html import escape
from sojourn._util.units import counted, short, with_half
from sojourn.evaluation.cases import CASES, CHOICES
from sojourn.evaluation.figures import colour, figures
from sojourn.evaluation.lines import Answer, Line
from sojourn.evaluation.result import REFERENCE
from sojourn.plotting.run import COLOURS
from sojourn.result import folders
from sojourn.scenario.variants import labels

if TYPE_CHECKING:
    from sojourn.display.table import Table
    from sojourn.evaluation.result import Evaluation

SIGNS = {"better": "▲", "worse": "▼", "no difference": "=", "too few seeds": "?", "": ""}
"""Signs of the comparison with drop-tail, readable without colour."""

STYLE = """
:root{color-scheme:light dark;--ink:#1d1d1f;--page:#fff;--soft:#f2f3f5;--rule:#d0d3d8;--grid:#dcdfe3;
--better:#006b3c;--worse:#b00020;--dim:#5f6368;--link:#0057a8}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e8;--page:#15171a;--soft:#22252a;--rule:#3a3e45;
--grid:#33373d;--better:#5fd39a;--worse:#ff8a94;--dim:#a3a8b0;--link:#7ab8ff}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);
max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0} h2{font-size:1.15rem;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:1.2rem 0 .2rem} p,li{max-width:46rem} a{color:var(--link)}
.dim,figcaption{color:var(--dim);font-size:.85rem}
.scroll{overflow-x:auto} table{border-collapse:collapse;font-size:.9rem;width:100%}
th,td{padding:.3rem .55rem;text-align:right;border-bottom:1px solid var(--rule);
font-variant-numeric:tabular-nums;vertical-align:top}
th:first-child,td:first-child{text-align:left;min-width:11rem} thead th{background:var(--soft)}
@media screen{.scroll th:first-child,.scroll td:first-child{position:sticky;left:0;
background:var(--page)} .scroll thead th:first-child{background:var(--soft)}}
td{white-space:nowrap} td:first-child{white-space:normal}
td small{display:block} .better{color:var(--better)} .worse{color:var(--worse)}
.same{color:var(--dim)} .best{font-weight:650}
figure{margin:0;break-inside:avoid} figure svg{width:100%;height:auto;color:var(--ink)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,21rem),1fr));gap:1.2rem}
.names{display:flex;flex-wrap:wrap;gap:.3rem 1rem;padding:0;list-style:none}
.names i{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.35em}
pre{background:var(--soft);padding:.7rem;overflow-x:auto;font-size:.85rem}
@media (max-width:38rem){body{font-size:15px;padding:.7rem}
table,thead,tbody,tr,td,th{display:block} thead{display:none}
tr{border-bottom:1px solid var(--rule);padding:.4rem 0} td,td:first-child{border:0;padding:.1rem 0;
text-align:left;min-width:0} td:first-child{font-weight:600} td[data-name]::before{content:attr(data-name) ": ";
color:var(--dim)} td{white-space:normal}
td small{display:inline;margin-left:.4em}}
@media print{:root{--ink:#000;--page:#fff;--soft:#f2f3f5;--rule:#bbb;--grid:#ddd;--better:#006b3c;
--worse:#b00020;--dim:#444} body{max-width:none;font-size:10pt} .scroll{overflow:visible}
h2,h3,h3+p{break-after:avoid} tr{break-inside:avoid} pre{white-space:pre-wrap;overflow-wrap:anywhere}}
"""  # noqa: E501

WIDE = 5
"""Number of disciplines above which a scorecard is printed in landscape and small letters."""

WIDE_STYLE = """
@media print{@page{size:landscape;margin:1cm} table{font-size:6.5pt} td{white-space:normal}
th,td{padding:.15rem .25rem} th:first-child,td:first-child{min-width:5rem}}
"""


def begin(directory: Path) -> None:
    """Create the directory of an evaluation and its marker.

    Raises InputError if it holds files that are not of an evaluation.
    """
    folders.claim(directory, "evaluation", {}, force=False)
    if folders.kind_of(directory) is None:
        with naming(directory):
            directory.mkdir(parents=True, exist_ok=True)
        marker = {"sojourn": _sojourn.version(), "evaluation": {"finished": False}}
        write_text(directory / "summary.json", json.dumps(marker) + "\n")


def write(evaluation: "Evaluation", directory: Path) -> None:
    """Write scorecard.html, summary.json, lines.parquet into `directory`."""
    begin(directory)
    summary = evaluation.summary()
    write_text(directory / "scorecard.html", page(evaluation))
    with replacing(directory / "lines.parquet") as file:
        file.write(parquet(evaluation.frame(), compression="zstd"))
    text = json.dumps(summary, indent=1, allow_nan=False)
    write_text(directory / "summary.json", text + "\n")


def counts(evaluation: "Evaluation", label: str) -> dict[str, int]:
    """Return how often a discipline is better, worse, or not different from drop-tail."""
    stands = [line.answers[label].stands for line in evaluation.lines if label in line.answers]
    return {word: stands.count(word) for word in ("better", "worse", "no difference")}


def difference(answer: Answer, unit: str) -> str:
    """Return the difference from drop-tail in words, like "▲ -45.1 ± 1.2 ms"."""
    if not answer.stands or answer.difference != answer.difference:
        return ""
    value = with_half(answer.difference, answer.half, short)
    sign = "+" if answer.difference > 0 else ""
    unit = "points" if unit == "%" else unit
    return f"{SIGNS[answer.stands]} {sign}{value}{' ' if unit else ''}{unit}"


def table(evaluation: "Evaluation") -> "Table":
    """Return the scorecard for a terminal."""
    from sojourn.display.table import Table

    answers = Table("asked", *evaluation.qdiscs, prose=[0])
    last: tuple[str, str] | None = None
    for line in evaluation.lines:
        if (line.case.id, line.rate) != last:
            last = (line.case.id, line.rate)
            at = f" at {line.rate}" if len(evaluation.rates) > 1 else ""
            answers.add_heading(f"{line.case.id} {line.case.title} ({line.case.section}){at}")
        cells = []
        for label in evaluation.qdiscs:
            answer = line.answers.get(label)
            sign = SIGNS[answer.stands] if answer else ""
            cells.append("-" if answer is None else f"{answer.text} {sign}".rstrip())
        answers.add_row(_asked(line), *cells)
    return answers


def notebook(evaluation: "Evaluation") -> str:
    """Return the scorecard as HTML for notebooks: counts, and the table of the terminal."""
    from sojourn.display.notebook import table_html
    from sojourn.display.table import Table

    summary = Table("discipline", "better than drop-tail", "worse", "no difference")
    for label in evaluation.qdiscs:
        if label != REFERENCE:
            summary.add_row(label, *map(str, counts(evaluation, label).values()))
    mode = "shortened" if evaluation.quick else "full"
    seeds = counted(evaluation.rows["seed"].n_unique(), "seed")
    head = escape(f"RFC 7928, {mode}, at {', '.join(evaluation.rates)}, {seeds}")
    legend = "▲ better than drop-tail, ▼ worse, = no difference (95 % confidence)"
    return (
        f'<div style="color:inherit"><p><b>{head}</b></p>{table_html(summary)}'
        f'{table_html(table(evaluation))}<p style="opacity:0.75">{legend}</p></div>'
    )


def _asked(line: Line) -> str:
    unit = f", {line.question.unit}" if line.question.unit else ""
    variant = f" ({line.variant})" if line.variant else ""
    return f"{line.question.asked}{unit}{variant}"


def page(evaluation: "Evaluation") -> str:
    """Return the scorecard as one page of HTML."""
    e = escape
    names = ", ".join(label for label in evaluation.qdiscs if label != REFERENCE) or REFERENCE
    title = f"Scorecard of {names}"
    mode = "shortened (--quick)" if evaluation.quick else "full"
    seeds = evaluation.rows["seed"].n_unique()
    style = STYLE + WIDE_STYLE * (len(evaluation.qdiscs) > WIDE)
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>{e(title)}</title><style>{style}</style></head><body>",
        f"<h1>{e(title)}</h1>",
        f"<p>The test suite of RFC 7928, {mode}, at {e(', '.join(evaluation.rates))}: "
        f"{len(evaluation.rows)} simulated runs, up to {seeds} seeds each. Every discipline is "
        "compared with drop-tail on the same seeds.</p>",
        _result(evaluation),
        _legend(evaluation),
    ]
    for rate in evaluation.rates:
        parts += [f"<h2>Answers at {e(rate)}</h2>", _lines(evaluation, rate)]
    for rate in evaluation.rates:
        parts.append(f"<h2>Figures at {e(rate)}</h2><div class=figures>")
        for caption, drawn in figures(evaluation.rows, list(evaluation.qdiscs), rate):
            parts.append(f"<figure>{drawn}<figcaption>{e(caption)}</figcaption></figure>")
        parts.append("</div>")
    parts += ["<h2>Choices that the RFC leaves open</h2><ul>"]
    parts += [f"<li>{e(choice)}</li>" for choice in CHOICES]
    parts += ["</ul><h2>Disciplines</h2>", f"<pre>{e(_disciplines(evaluation))}</pre>"]
    parts += [
        "<h2>Reproduce it</h2>",
        f"<pre>{e(command(evaluation))}</pre>",
        f"<p class=dim>sojourn {e(_sojourn.version())}, engine {e(_sojourn.engine())}</p>",
        "</body></html>\n",
    ]
    return "\n".join(parts)


def command(evaluation: "Evaluation") -> str:
    """Return the command that repeats the evaluation."""
    names = [
        _given(label, table) for label, table in evaluation.qdiscs.items() if label != REFERENCE
    ] or [REFERENCE]
    quick = " --quick" if evaluation.quick else ""
    labels = ",".join(names)
    tried = evaluation.rows["case"].unique().to_list()
    usual = [case.id for case in CASES if not case.ecn]
    if not set(usual) <= set(tried):
        quick += f" --only {','.join(sorted(tried))}"
    rates = ",".join(evaluation.rates)
    return f"sojourn evaluate --qdisc {shlex.quote(labels)} --rate {rates}{quick} --out DIR"


def _given(label: str, table: Mapping[str, Any]) -> str:
    """Return a discipline as it is given on the command line, with its label if it has one."""
    usual = labels([dict(table)])[0]
    return usual if usual == label else f"{label}={usual}"


def _disciplines(evaluation: "Evaluation") -> str:
    return "\n".join(
        f"{label}: {json.dumps(dict(table), ensure_ascii=False)}"
        for label, table in evaluation.qdiscs.items()
    )


def _result(evaluation: "Evaluation") -> str:
    """Return the summary: how often each discipline is better and worse than drop-tail."""
    e = escape
    rows = []
    for label in evaluation.qdiscs:
        if label == REFERENCE:
            continue
        numbers = counts(evaluation, label)
        best = sum(line.answers[label].best for line in evaluation.lines if label in line.answers)
        rows.append(
            f"<tr><td>{e(label)}</td><td data-name=better class=better>{numbers['better']}</td>"
            f"<td data-name=worse class=worse>{numbers['worse']}</td>"
            f"<td data-name='no difference'>{numbers['no difference']}</td>"
            f"<td data-name='not beaten by another'>{best}</td></tr>"
        )
    if not rows:
        return ""
    return (
        "<h2>Compared with drop-tail</h2><div class=scroll><table><thead><tr><th>discipline</th>"
        "<th>better</th><th>worse</th><th>no difference</th><th>not beaten by another</th></tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
        "<p class=dim>Number of answers. The questions are not of equal weight: choose those that "
        "matter for your traffic.</p>"
    )


def _legend(evaluation: "Evaluation") -> str:
    e = escape
    items = []
    for n, label in enumerate(evaluation.qdiscs):
        shade = "currentColor" if colour(n) == colour(6) else colour(n)
        hollow = f"border:.2em solid {shade}" if n >= len(COLOURS) else f"background:{shade}"
        items.append(f'<li><i style="{hollow}"></i>{e(label)}</li>')
    dashed = " A ring: dashed lines." * (len(evaluation.qdiscs) > len(COLOURS))
    return (
        f"<ul class=names>{''.join(items)}</ul><p class=dim>Mean ± half of the 95 % interval. "
        "Below it: difference from drop-tail, ▲ better, ▼ worse, = no difference (the "
        "interval includes zero, or it is below 1 %). Bold: no other discipline is better with "
        f"95 % confidence.{dashed}</p>"
    )


def _lines(evaluation: "Evaluation", rate: str) -> str:
    e = escape
    heads = "".join(f"<th>{e(label)}</th>" for label in evaluation.qdiscs)
    parts: list[str] = []
    last = ""
    for line in evaluation.lines:
        if line.rate != rate:
            continue
        if line.case.id != last:
            parts += ["</tbody></table></div>"] * bool(last)
            last = line.case.id
            case = line.case
            parts.append(
                f"<h3>{e(case.id)} {e(case.title)}</h3><p class=dim>RFC 7928, {e(case.section)} "
                f"({e(case.weight)}): {e(case.flows)}.</p><div class=scroll><table><thead><tr>"
                f"<th>asked</th>{heads}</tr></thead><tbody>"
            )
        cells = []
        for label in evaluation.qdiscs:
            answer = line.answers.get(label)
            if answer is None:
                cells.append(f'<td data-name="{e(label)}">-</td>')
                continue
            kind = {"better": "better", "worse": "worse"}.get(answer.stands, "same")
            gap = difference(answer, line.question.unit)
            small = f"<small class={kind}>{e(gap)}</small>" if gap else ""
            bold = " class=best" * answer.best
            cells.append(f'<td data-name="{e(label)}"{bold}>{e(answer.text)}{small}</td>')
        parts.append(f"<tr><td>{e(_asked(line))}</td>{''.join(cells)}</tr>")
    return "\n".join([*parts, "</tbody></table></div>"] if last else parts)
