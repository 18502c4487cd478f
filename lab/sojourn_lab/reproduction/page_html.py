"""Report of a paper as one HTML page with embedded figures."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn._util.html import escape
from sojourn_lab.reproduction.contents import (
    CONSTANTS,
    CONSTANTS_TEXT,
    LEFT_OUT,
    PARTS,
    SET_UPS,
    VARIED,
    best_set_up,
    cell,
    claim_rows,
    constant_rows,
    file_name,
    heads,
    numbers_and_relations,
    part_rows,
    repeat,
    rules,
    set_up,
    set_up_rows,
    setting_rows,
    summary,
    title,
)
from sojourn_lab.reproduction.findings import filled
from sojourn_lab.reproduction.judging import kind
from sojourn_lab.reproduction.paper import Outcome

if TYPE_CHECKING:
    import polars as pl

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:13px;margin:1rem 0}
td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top}
th{background:#f3f3f3} pre{background:#f6f6f6;padding:.7rem;overflow:auto;font-size:13px}
figure{margin:1.5rem 0} figcaption{font-size:13px;color:#555} svg{max-width:100%;height:auto}
.holds{color:#006b3c;font-weight:600}
.holds-in,.holds-except-with,.depends-on{color:#8a5a00;font-weight:600}
.undecided{color:#0a5c8a;font-weight:600}.fails,.does-not-hold{color:#b00020;font-weight:600}.not-testable,.not-judged{color:#555;font-weight:600}
"""


def as_html(outcome: Outcome, places: Path) -> str:
    """Return the whole report as one page with embedded figures."""
    paper, e = outcome.paper, escape
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{e(title(outcome))}</title>",
        f"<style>{STYLE}</style><h1>{e(title(outcome))}</h1><p>{e(paper.reference)}</p>",
    ]
    if outcome.claims:
        parts.append(f"<p><b>{e(summary([one.verdict for one in outcome.claims]))}</b></p>")
        parts.append(f"<p>{e(numbers_and_relations(outcome))}</p>")
    if outcome.emulated:
        parts.append(_paragraphs(outcome.emulated.intro))
    for one in outcome.figures:
        if one.tabulate is not None and one.front:
            parts += [f"<h2>{e(one.title)}</h2>", _frame_html(one.tabulate(outcome.runs))]
    if outcome.claims:
        parts += ["<h2>Result</h2>", _table_html(heads(outcome), claim_rows(outcome), shade=1)]
    if counted := set_up_rows(outcome):
        parts += ["<h2>The best single set-up</h2>", f"<p>{e(best_set_up(outcome))}</p>"]
        parts.append(_table_html(SET_UPS, counted))
    if findings := filled(outcome):
        parts.append("<h2>Findings</h2>" + _paragraphs(findings))
    if outcome.claims:
        parts += ["<h2>Claims</h2>", _claims_html(outcome)]
    if varied := setting_rows(outcome):
        parts += ["<h2>Settings varied</h2>", _table_html(VARIED, varied)]
    if outcome.claims:
        parts += ["<h2>Rules</h2>", _paragraphs(rules())]
    parts.append("<h2>Figures and tables</h2>")
    for one in outcome.figures:
        if one.front:
            continue
        if one.tabulate is not None:
            parts.append(f"<h3>{e(one.number)}: {e(one.title)}</h3>")
            parts.append(_frame_html(one.tabulate(outcome.runs)))
            continue
        svg = (places / f"{file_name(one)}.svg").read_text(encoding="utf-8")
        drawn = _own_ids(svg[svg.index("<svg") :], file_name(one))
        caption = f"Figure {e(one.number)}: {e(one.title)}"
        parts.append(f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>")
    if left_out := outcome.paper.left_out:
        parts += ["<h3>Figures left out</h3>", _table_html(LEFT_OUT, list(left_out.items()))]
    parts += ["<h2>Set-up</h2>", *(f"<pre>{e(text)}</pre>" for text in set_up(outcome))]
    if constants := constant_rows(outcome):
        parts += [_paragraphs(CONSTANTS_TEXT), _table_html(CONSTANTS, constants)]
    parts += ["<h2>Reproduce it</h2>", f"<pre>{e(repeat(outcome))}</pre>", "</html>\n"]
    return "\n".join(parts)


def _claims_html(outcome: Outcome) -> str:
    e = escape
    lines = ["<table><tr>" + "".join(f"<th>{e(c)}</th>" for c in PARTS) + "</tr>"]
    for one in outcome.claims:
        claim, rows = one.claim, part_rows(one)
        for n, row in enumerate(rows):
            cells = [f"<td>{e(text)}</td>" for text in row[3:6]]
            judged = f"<td class={_css_class(row[6])}>{e(row[6])}</td>"
            head = ""
            if n == 0:
                how = f"<br><small>{e(claim.how)}</small>"
                first = f"<td rowspan={len(rows)}>{e(row[0])}{how}</td>"
                head = first + "".join(f"<td rowspan={len(rows)}>{e(c)}</td>" for c in row[1:3])
            lines.append("<tr>" + head + "".join(cells) + judged + "</tr>")
    return "\n".join([*lines, "</table>"])


def _css_class(judged: str) -> str:
    """Return the CSS class of a verdict on a claim, or of the result of a part."""
    return judged if judged == "fails" else kind(judged).replace(" ", "-")


def _table_html(
    heads: Sequence[str], rows: Sequence[Sequence[str]], shade: int | None = None
) -> str:
    """Return a table in HTML; the column `shade` has verdicts."""
    e = escape
    lines = ["<table><tr>" + "".join(f"<th>{e(c)}</th>" for c in heads) + "</tr>"]
    for row in rows:
        cells = (
            f"<td class={_css_class(v)}>{e(v)}</td>" if n == shade else f"<td>{e(v)}</td>"
            for n, v in enumerate(row)
        )
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _frame_html(frame: "pl.DataFrame") -> str:
    e = escape
    lines = ["<table><tr>" + "".join(f"<th>{e(c)}</th>" for c in frame.columns) + "</tr>"]
    cells = (("".join(f"<td>{e(cell(v))}</td>" for v in row)) for row in frame.iter_rows())
    lines += [f"<tr>{row}</tr>" for row in cells]
    return "\n".join([*lines, "</table>"])


def _paragraphs(text: str) -> str:
    """Convert the Markdown of the prose to HTML: paragraphs, lists, `code`, **bold**, *italic*."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        text = escape(block)
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
        text = re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text)
        if text.startswith("- "):
            items = re.split(r"\n- ", text[2:])
            blocks.append("<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>")
        elif text.startswith("#"):
            blocks.append(f"<h3>{text.lstrip('# ')}</h3>")
        else:
            blocks.append(f"<p>{text}</p>")
    return "\n".join(blocks)


def _own_ids(svg: str, prefix: str) -> str:
    """Prefix the ids of a drawing, since one page holds several drawings."""
    svg = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', svg)
    return re.sub(r'(href="|url\()#', rf"\1#{prefix}-", svg)
