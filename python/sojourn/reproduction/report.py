"""The report of a paper: report.html (whole in itself), claims.json, report.md, the figures."""

import html
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn
from sojourn._util.files import naming, replacing
from sojourn._util.progress import amount
from sojourn.plotting.run import new_figure, styled, write
from sojourn.reproduction import side_by_side
from sojourn.reproduction.claims import Claim, Part, verdict
from sojourn.reproduction.paper import Figure, Outcome

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("claim", "figure", "stated", "what", "measured (95 % interval)", "ns-2", "verdict")

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;font-size:13px;margin:1rem 0}
td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top}
th{background:#f3f3f3} pre{background:#f6f6f6;padding:.7rem;overflow:auto;font-size:13px}
figure{margin:1.5rem 0} figcaption{font-size:13px;color:#555} svg{max-width:100%;height:auto}
.holds{color:#006b3c;font-weight:600}.partly{color:#8a5a00;font-weight:600}
.does{color:#b00020;font-weight:600}.not{color:#555;font-weight:600}
"""


def write_report(outcome: Outcome, directory: Path) -> None:
    """Write the report into `directory`; a figure that was not asked for stays as it was."""
    places = directory / "figures"
    with naming(places):
        places.mkdir(parents=True, exist_ok=True)
    for one in outcome.figures:
        if one.draw is not None:
            _draw(one, outcome, places)
    for name, text in (
        ("report.html", as_html(outcome, places)),
        ("report.md", as_markdown(outcome)),
        ("claims.json", json.dumps(as_json(outcome), indent=2, allow_nan=False) + "\n"),
    ):
        with replacing(directory / name) as part:
            part.write_text(text, encoding="utf-8")


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Give the claims with what was measured, as data."""
    return {
        "sojourn": _sojourn.version(),
        "engine": outcome.engine,
        "paper": outcome.paper.id,
        "mode": "full" if outcome.full else "quick",
        "runs": len(outcome.made.rows),
        **({"live": dict(outcome.played.numbers)} if outcome.played else {}),
        "claims": [
            {
                "id": claim.id,
                "says": claim.says,
                "figure": claim.figure,
                "stated": claim.stated,
                "how": claim.how,
                "verdict": verdict(parts),
                "parts": [_part(part) for part in parts],
            }
            for claim, parts in outcome.claims
        ],
    }


def as_html(outcome: Outcome, places: Path) -> str:
    """Give the whole report as one page, its figures inside."""
    paper, e = outcome.paper, html.escape
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{e(title(outcome))}</title>",
        f"<style>{STYLE}</style><h1>{e(title(outcome))}</h1><p>{e(paper.reference)}</p>",
    ]
    if outcome.played:
        parts.append(_paragraphs(outcome.played.intro))
    if prose := filled(outcome):
        parts.append("<h2>What we found</h2>" + _paragraphs(prose))
    if outcome.claims:
        parts += ["<h2>Claims</h2>", _claims_html(outcome)]
    parts.append("<h2>Figures and tables</h2>")
    for one in outcome.figures:
        if one.tabulate is not None:
            parts.append(f"<h3>{e(one.number)}: {e(one.title)}</h3>")
            parts.append(_frame_html(one.tabulate(outcome.runs)))
            continue
        svg = (places / f"{file_name(one)}.svg").read_text(encoding="utf-8")
        drawn = _own_ids(svg[svg.index("<svg") :], file_name(one))
        caption = f"Figure {e(one.number)}: {e(one.title)}"
        parts.append(f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>")
    parts += ["<h2>Set-up</h2>", *(f"<pre>{e(told)}</pre>" for told in _about(outcome))]
    parts += ["<h2>How to repeat it</h2>", f"<pre>{e(repeat(outcome))}</pre>", "</html>\n"]
    return "\n".join(parts)


def as_markdown(outcome: Outcome) -> str:
    """Give the page for the docs; figures are beside it, in figures/."""
    paper = outcome.paper
    lines = [f"# {title(outcome)}", "", paper.reference, ""]
    if outcome.played:
        lines += [outcome.played.intro, ""]
    if prose := filled(outcome):
        lines += ["## What we found", "", prose.strip(), ""]
    if outcome.claims:
        lines += ["## Claims", "", _row(COLUMNS), _row(["---"] * len(COLUMNS))]
    for claim, parts in outcome.claims:
        for n, row in enumerate(_rows(claim, parts)):
            lines.append(_row(row if n == 0 else ["", "", "", *row[3:6], row[6]]))
    if outcome.claims:
        lines += ["", "How each is measured:", ""]
        lines += [f"- **{claim.id}** {claim.says} {claim.how}" for claim, _ in outcome.claims]
        lines.append("")
    lines += ["## Figures and tables", ""]
    for one in outcome.figures:
        lines += [f"### {one.number}: {one.title}", ""]
        if one.tabulate is not None:
            frame = one.tabulate(outcome.runs)
            lines += [_row(frame.columns), _row(["---"] * len(frame.columns))]
            lines += [_row([_cell(value) for value in row]) for row in frame.iter_rows()]
        else:
            lines.append(f"![{one.number}](figures/{file_name(one)}.svg)")
        lines.append("")
    lines += ["## Set-up", ""]
    for told in _about(outcome):
        lines += ["```text", told, "```", ""]
    lines += ["## How to repeat it", "", "```text", repeat(outcome), "```", ""]
    return "\n".join(lines)


def filled(outcome: Outcome) -> str:
    """Give the prose, with what was measured in the place of {ID.n}; unknown ones stay."""
    told = {
        f"{claim.id}.{n}": part.measured
        for claim, parts in outcome.claims
        for n, part in enumerate(parts, 1)
    }
    paper = outcome.paper
    prose = paper.live_prose if outcome.played else paper.prose
    return re.sub(r"\{([\w-]+\.\d+)\}", lambda m: told.get(m[1], m[0]), prose)


def title(outcome: Outcome) -> str:
    """Return the name of the report."""
    return outcome.paper.title + (", on real packets" if outcome.played else "")


def _about(outcome: Outcome) -> list[str]:
    """Give the set-up: of real packets first, where they are."""
    live, simulated = outcome.paper.live, outcome.paper.about.strip()
    return [live.about.strip(), simulated] if outcome.played and live else [simulated]


def repeat(outcome: Outcome) -> str:
    """Say how the runs are made again, and with what they were made."""
    mode = ("full" if outcome.full else "quick") + (" --engine live" if outcome.played else "")
    rows = outcome.made.rows
    seeds = len({row["seed"] for row in rows})
    return (
        f"sojourn paper run {outcome.paper.id} --{mode} --out DIR\n"
        f"{len(rows)} runs, up to {seeds} seeds each; sojourn {_sojourn.version()}, "
        f"engine {outcome.engine}"
    )


def took(outcome: Outcome) -> str:
    """Say what the runs took."""
    made = outcome.made
    return (
        f"{made.made} of {len(made.rows)} runs made, {amount(made.packets)} packets "
        f"in {made.wall_s:.0f} s"
    )


def file_name(one: Figure) -> str:
    """Return the name of the file of a figure."""
    return "figure-" + re.sub(r"[^\w-]+", "-", one.number.lower())


def _draw(one: Figure, outcome: Outcome, places: Path) -> None:
    assert one.draw is not None
    with styled():
        figure = new_figure(*one.size)
        ax = figure.subplots()
        one.draw(outcome.runs, ax)
        if outcome.played:
            side_by_side.draw(one, outcome, ax)
        if not ax.get_title():
            ax.set_title(one.title)
        for end in ("svg", "png"):
            write(figure, places / f"{file_name(one)}.{end}")


def _rows(claim: Claim, parts: list[Part]) -> list[list[str]]:
    """Give the lines of a claim in the table; the verdict stands in the first."""
    head = [f"{claim.id}: {claim.says}", claim.figure, claim.stated]
    judged = verdict(parts)
    if not parts:
        return [[*head, "", claim.how, "", judged]]
    rows = [[*head, p.what, p.measured, p.ns2, "yes" if p.holds else "no"] for p in parts]
    if len(parts) == 1:
        rows[0][6] = judged
    else:
        rows.insert(0, [*head, "", "", "", judged])
    return rows


def _claims_html(outcome: Outcome) -> str:
    e = html.escape
    lines = ["<table><tr>" + "".join(f"<th>{e(c)}</th>" for c in COLUMNS) + "</tr>"]
    for claim, parts in outcome.claims:
        rows = _rows(claim, parts)
        for n, row in enumerate(rows):
            cells = [f"<td>{e(cell)}</td>" for cell in row[3:6]]
            judged = f"<td class={row[6].split()[0]}>{e(row[6])}</td>"
            head = ""
            if n == 0:
                how = f"<br><small>{e(claim.how)}</small>"
                first = f"<td rowspan={len(rows)}>{e(row[0])}{how}</td>"
                head = first + "".join(f"<td rowspan={len(rows)}>{e(c)}</td>" for c in row[1:3])
            lines.append("<tr>" + head + "".join(cells) + judged + "</tr>")
    return "\n".join([*lines, "</table>"])


def _frame_html(frame: "pl.DataFrame") -> str:
    e = html.escape
    lines = ["<table><tr>" + "".join(f"<th>{e(c)}</th>" for c in frame.columns) + "</tr>"]
    cells = (("".join(f"<td>{e(_cell(v))}</td>" for v in row)) for row in frame.iter_rows())
    lines += [f"<tr>{row}</tr>" for row in cells]
    return "\n".join([*lines, "</table>"])


def _paragraphs(text: str) -> str:
    """Turn what the prose uses of markdown into HTML: paragraphs, lists, `code`, **bold**."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip()):
        told = html.escape(block)
        told = re.sub(r"`([^`]+)`", r"<code>\1</code>", told)
        told = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", told)
        if told.startswith("- "):
            items = re.split(r"\n- ", told[2:])
            blocks.append("<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>")
        elif told.startswith("#"):
            blocks.append(f"<h3>{told.lstrip('# ')}</h3>")
        else:
            blocks.append(f"<p>{told}</p>")
    return "\n".join(blocks)


def _own_ids(svg: str, prefix: str) -> str:
    """Make the names inside a drawing its own, since several stand in one page."""
    svg = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', svg)
    return re.sub(r'(href="|url\()#', rf"\1#{prefix}-", svg)


def _part(part: Part) -> dict[str, Any]:
    value = part.value
    low_high = value is not None and not math.isnan(value.half)
    return {
        "what": part.what,
        "stated": part.stated,
        "measured": part.measured,
        "mean": None if value is None or math.isnan(value.mean) else value.mean,
        "low": value.low if value is not None and low_high else None,
        "high": value.high if value is not None and low_high else None,
        "ns2": part.ns2 or None,
        "holds": part.holds,
    }


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _row(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
