"""Contents of the report of a paper, for all formats: title, summary, findings, rows of tables."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._util.progress import amount
from sojourn_lab import ROOT
from sojourn_lab.reproduction.judging import OURS, Judged, Kind, count, kind, set_ups, verdict
from sojourn_lab.reproduction.paper import Figure, Outcome
from sojourn_lab.reproduction.parts import Result

HEADS = ("claim", "verdict", "numbers", "relations", "paper", "ours", "reason")
"""Columns of the table of claims at the top of a page."""

OF_PAGE = "verdict of the page"
"""Column of the verdicts of the full runs."""

SET_UPS = ("set-up", "claims that hold", "hold in part", "claims judged with it")
"""Columns of the table of set-ups."""

PARTS = ("claim", "figure", "stated", "part", "measured (95 % interval)", "ns-2", "verdict")
"""Columns of the table of all parts."""

VARIED = ("claim", "setting", "parts that hold", "control", "verdict with it")
"""Columns of the table of settings. The control is our set-up at the setting's seeds and points."""

RESULTS: tuple[Result, ...] = ("fails", "undecided", "not testable", "holds")
"""Results of parts, those to show first."""

LEFT_OUT = ("figure of the paper", "reason")

BRIEF = 3
"""Largest number of parts of a claim that the table at the top shows."""

COUNTED: dict[Kind, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "holds in": ("holds in part", "hold in part"),
    "holds except with": ("holds except with some senders", "hold except with some senders"),
    "depends on": ("depends on a setting", "depend on a setting"),
    "undecided": ("is undecided", "are undecided"),
    "does not hold": ("does not hold", "do not hold"),
    "not testable": ("is not testable", "are not testable"),
    "not judged": ("is not judged by a quick run", "are not judged by a quick run"),
}
"""Words of the summary for one claim, and for several."""


def title(outcome: Outcome) -> str:
    """Return the name of the report."""
    return outcome.paper.title + (", on real packets" if outcome.emulated else "")


def summary(verdicts: Sequence[str], whose: str = "") -> str:
    """Return the result in a sentence: the number of claims with each kind of verdict."""
    numbers = Counter(map(kind, verdicts))
    each = [f"{numbers[one]} {words[numbers[one] > 1]}" for one, words in COUNTED.items()]
    shown = [text for text in each if not text.startswith("0 ")]
    return f"Of {len(verdicts)} claim{'s' * (len(verdicts) > 1)}{whose}, {listing(shown)}."


def listing(words: list[str]) -> str:
    """Join words with commas, and the last one with "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def set_up(outcome: Outcome) -> list[str]:
    """Return the texts on the set-up; the text on the runs on real packets, if any, is first."""
    live, simulated = outcome.paper.live, outcome.paper.about.strip()
    return [live.about.strip(), simulated] if outcome.emulated and live else [simulated]


CONSTANTS = ("constant", "value", "default", "meaning")
"""Columns of the table of constants."""

CONSTANTS_TEXT = "Constants, which `--set constant=value` changes:"


def constant_rows(outcome: Outcome) -> list[list[str]]:
    """Return the rows of the table of constants; the default is listed where it was changed."""
    one = outcome.set_up
    if one is None and outcome.paper.constants is not None and not outcome.emulated:
        one = outcome.paper.constants()
    rows = [] if one is None else one.rows()
    return [[name, value, "" if value == base else base, doc] for name, value, base, doc in rows]


def options(outcome: Outcome) -> str:
    """Return the options of the command that are not its defaults."""
    words = ["--full" if outcome.full else "--quick", *(["--engine live"] * bool(outcome.emulated))]
    words += [f"--figure {number}" for number in outcome.requested]
    words += outcome.set_up.options if outcome.set_up else []
    return " ".join(words)


def repeat(outcome: Outcome) -> str:
    """Return the command that repeats the runs, their number, and the versions."""
    rows = outcome.campaign.rows
    seeds = len({row["seed"] for row in rows})
    return (
        f"sojourn paper run {outcome.paper.id} {options(outcome)} --out DIR\n"
        f"{len(rows)} runs, up to {seeds} seeds each; sojourn {_sojourn.version()}, "
        f"engine {outcome.engine}"
    )


def took(outcome: Outcome) -> str:
    """Return the number and the cost of the runs as text."""
    campaign = outcome.campaign
    runs = f"{campaign.executed} of {len(campaign.rows)} runs made"
    return f"{runs}, {amount(campaign.packets)} packets in {campaign.wall_s:.0f} s"


def file_name(one: Figure) -> str:
    """Return the name of the file of a figure."""
    return "figure-" + re.sub(r"[^\w-]+", "-", one.number.lower())


def data_file(one: Figure) -> str | None:
    """Return the file with the numbers behind a figure; None for a drawing or a table."""
    return f"data/{file_name(one)}.csv" if one.draw is not None and one.needs else None


def heads(outcome: Outcome) -> list[str]:
    """Return the columns of the table of claims; quick runs have the page's verdict too."""
    of_page = [] if page_verdicts(outcome) is None else [OF_PAGE]
    return [*HEADS[:2], *of_page, *HEADS[2:]]


def claim_rows(outcome: Outcome) -> list[list[str]]:
    """Return the rows of the table of claims, in the columns of `heads`."""
    of_page = page_verdicts(outcome)
    return [
        [
            _named(one),
            one.verdict,
            *([] if of_page is None else [of_page.get(one.claim.id, "")]),
            one.shown(is_number=True),
            one.shown(is_number=False),
            one.claim.stated,
            _ours(one),
            reason(one),
        ]
        for one in outcome.claims
    ]


def is_page(outcome: Outcome) -> bool:
    """Return True if all runs of the page were made, with the constants of the page."""
    return outcome.full and not outcome.requested and outcome.set_up is None


def page_verdicts(outcome: Outcome) -> dict[str, str] | None:
    """Return the verdicts of the paper's page by claim, for runs that are not the page's.

    None for the runs of the page, and without the file, which only the repository has.
    """
    folder = outcome.paper.id + ("-live" if outcome.emulated else "")
    path = ROOT / "reports/papers" / folder / "claims.json"
    if is_page(outcome) or not path.exists():
        return None
    tree = json.loads(path.read_text(encoding="utf-8"))
    return {claim["id"]: claim["verdict"] for claim in tree["claims"]}


def set_up_rows(outcome: Outcome) -> list[list[str]]:
    """Return the rows of the table of set-ups, best first; none if there is only ours."""
    rows = [[one.name, str(one.hold), str(one.in_part), str(one.judged)]
            for one in set_ups(outcome.claims)]  # fmt: skip
    return rows if len(rows) > 1 else []


def best_set_up(outcome: Outcome) -> str:
    """Return in a sentence how many claims hold at once in the best single set-up."""
    counts = set_ups(outcome.claims)
    best, ours = counts[0], next(one for one in counts if one.name == OURS)
    of = len(outcome.claims)
    if best is ours:
        return f"In our set-up {ours.hold} of {of} claims hold, with no single setting more."
    return (
        f"In our set-up {ours.hold} of {of} claims hold, with the setting "
        f'"{best.name}" alone {best.hold}.'
    )


def rules() -> str:
    """Return the rules of judging, in Markdown."""
    return Path(__file__).with_name("rules.md").read_text(encoding="utf-8").strip()


def _named(one: Judged) -> str:
    return f"{one.claim.id}: {one.claim.says}"


def _ours(one: Judged) -> str:
    """Return the measurement, briefly: all of few parts, otherwise the first that does not hold."""
    if len(one.parts) <= BRIEF:
        return "; ".join(part.brief or part.measured for part in one.parts)
    first = min(one.parts, key=lambda part: RESULTS.index(part.result))
    return f"{first.what}: {first.brief or first.measured}"


def reason(one: Judged) -> str:
    """Return the reason of a verdict other than `holds`, if the claim was judged."""
    return "" if kind(one.verdict) in ("holds", "not judged") else one.claim.why


def part_rows(one: Judged) -> list[list[str]]:
    """Return the rows of a claim in the columns of `PARTS`; the first one has the verdict."""
    claim, parts = one.claim, one.parts
    head = [_named(one), claim.figure, claim.stated]
    if not parts:
        return [[*head, "", claim.how, "", one.verdict]]
    rows = [[*head, p.what, p.measured, p.ns2, p.result] for p in parts]
    if len(parts) == 1:
        rows[0][6] = one.verdict
    else:
        rows.insert(0, [*head, "", "", "", one.verdict])
    return rows


def setting_rows(outcome: Outcome) -> list[list[str]]:
    """Return a row for each claim and setting that was varied, in the columns of `VARIED`."""
    rows = []
    for one in outcome.claims:
        if one.tried:
            rows.append([one.claim.id, OURS, str(count(one.parts)), "", verdict(one.parts)])
        for name, it in one.tried.items():
            there = verdict(it.parts)
            if name not in one.settings:
                there = f"tried on {len(it.parts)} of {len(one.parts)} parts"
            rows.append([one.claim.id, name, str(count(it.parts)), str(count(it.control)), there])
    return rows


def numbers_and_relations(outcome: Outcome) -> str:
    """Return how many numbers and how many relations hold, in a sentence."""
    parts = [part for one in outcome.claims for part in one.parts]
    numbers, relations = (count([p for p in parts if p.is_number is it]) for it in (True, False))
    each = [
        f"{one.hold} of {one.of} {what} hold ({one.undecided} undecided)"
        for what, one in (("numbers", numbers), ("relations", relations))
        if one.of
    ]
    return f"Of the parts of the claims, {listing(each)}."


def cell(value: Any) -> str:
    """Return the text of a cell of a table of results."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
