"""Report of a paper: report.html (self-contained), report.md, data.md, claims.json, figures.

`data` has the numbers behind each figure, and `checksums.txt` a checksum of each run.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._util.files import naming, write_text
from sojourn.plotting.run import new_figure, styled, write
from sojourn_lab.reproduction import checksums, figure_data, side_by_side
from sojourn_lab.reproduction.contents import data_file, file_name, reason
from sojourn_lab.reproduction.judging import count, set_ups, verdict
from sojourn_lab.reproduction.page_html import as_html
from sojourn_lab.reproduction.page_markdown import as_data, as_markdown
from sojourn_lab.reproduction.paper import Figure, Outcome, needs_figures
from sojourn_lab.reproduction.parts import Part

DATA = "data"
"""Folder of the numbers behind the figures, one CSV file each."""


def write_report(outcome: Outcome, directory: Path) -> None:
    """Write the report into `directory`; figures that were not requested are left unchanged."""
    places = directory / "figures"
    with naming(places):
        places.mkdir(parents=True, exist_ok=True)
    for one in outcome.figures:
        if one.draw is not None:
            _draw(one, outcome, places)
    if outcome.checksums:
        write_text(directory / checksums.FILE, outcome.checksums)
    for name, text in (
        ("report.html", as_html(outcome, places)),
        ("report.md", as_markdown(outcome)),
        ("data.md", as_data(outcome)),
        ("claims.json", json.dumps(as_json(outcome), indent=2, allow_nan=False) + "\n"),
    ):
        write_text(directory / name, text)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the claims with their measured values, as data for JSON."""
    return {
        "sojourn": _sojourn.version(),
        "engine": outcome.engine,
        "paper": outcome.paper.id,
        "mode": "full" if outcome.full else "quick",
        "runs": len(outcome.campaign.rows),
        "core_s": dict(outcome.core_s),
        **({"set": outcome.set_up.changed} if outcome.set_up else {}),
        **({"live": dict(outcome.emulated.numbers)} if outcome.emulated else {}),
        "set_ups": [asdict(one) for one in set_ups(outcome.claims)],
        "claims": [
            {
                "id": one.claim.id,
                "says": one.claim.says,
                "figure": one.claim.figure,
                "stated": one.claim.stated,
                "how": one.claim.how,
                "verdict": one.verdict,
                **_counts(one.parts),
                "why": reason(one) or None,
                "parts": [_part(part) for part in one.parts],
                "settings": {
                    name: {
                        "verdict": verdict(it.parts),
                        **_counts(it.parts),
                        "control": {"verdict": verdict(it.control), **_counts(it.control)},
                    }
                    for name, it in one.tried.items()
                },
            }
            for one in outcome.claims
        ],
        **({"not_judged": _not_judged(outcome)} if outcome.in_part else {}),
    }


def _not_judged(outcome: Outcome) -> list[dict[str, str]]:
    return [{"id": one.id, "why": needs_figures(one)} for one in outcome.in_part]


def _draw(one: Figure, outcome: Outcome, places: Path) -> None:
    assert one.draw is not None
    with styled():
        figure = new_figure(*one.size)
        ax = figure.subplots()
        one.draw(outcome.runs, ax)
        if outcome.emulated:
            side_by_side.draw(one, outcome, ax)
        if not ax.get_title():
            ax.set_title(one.title)
        if (data := data_file(one)) is not None:
            with naming(places.with_name(DATA)):
                places.with_name(DATA).mkdir(exist_ok=True)
            write_text(places.parent / data, figure_data.as_csv(figure.axes))
        for end in ("svg", "png"):
            write(figure, places / f"{file_name(one)}.{end}")


def _counts(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the numbers of parts that hold or are undecided: all, numbers, relations."""

    def counts(some: Sequence[Part]) -> dict[str, int]:
        counted = count(some)
        return {"holds": counted.hold, "undecided": counted.undecided, "of": counted.of}

    numbers, relations = ([p for p in parts if p.is_number is it] for it in (True, False))
    return {**counts(parts), "numbers": counts(numbers), "relations": counts(relations)}


def _part(part: Part) -> dict[str, Any]:
    value = part.value
    low_high = value is not None and not math.isnan(value.half)
    return {
        "what": part.what,
        "stated": part.stated,
        "measured": part.measured,
        "mean": None if value is None or math.isnan(value.mean) else value.mean,
        "low": value.low if value is not None and low_high else None,
        "half": value.half if value is not None and low_high else None,
        "high": value.high if value is not None and low_high else None,
        "ns2": part.ns2 or None,
        "number": part.is_number,
        "result": part.result,
    }
