"""Findings of a report: measured texts in place of names, without paragraphs that did not run."""

import re
from collections.abc import Mapping

from sojourn_lab.reproduction.paper import Outcome

NAME = re.compile(r"\{([^{}\n]+)\}")
"""Name of a measured text, in braces."""

LEFT_OUT = "Left out"
"""Start of the line about paragraphs that are left out."""

OF_FULL_RUNS = "The findings are from the full runs, the numbers in them from these quick ones."

CLAIM = re.compile(r"(?<![\w-])C\d+(?!\w)")
"""Number of a claim in the prose."""


def filled(outcome: Outcome) -> str:
    """Return the findings with a measured text in place of each name in braces.

    {ID.n} is the measured text of part n of a claim, {ID.n.brief} the same without the interval.
    {ID} is the verdict on a claim. Other names are the FACTS of the paper. Paragraphs with a name
    that was not measured are left out, and their number is stated. With requested figures, so are
    paragraphs about no claim that was judged, or about one that was not. With other constants no
    finding applies.
    """
    paper = outcome.paper
    prose = paper.live_findings if outcome.emulated else paper.findings
    paragraphs = re.split(r"\n\s*\n", prose.strip())
    known = _measured(outcome, prose)
    kept = [one for one in paragraphs if _ran(one, outcome, known)]
    texts = [NAME.sub(lambda match: known[match[1]], one) for one in kept]
    if texts and not outcome.full:
        texts.insert(0, OF_FULL_RUNS)
    if left_out := len(paragraphs) - len(kept):
        several = "s" * (left_out > 1)
        texts.append(f"{LEFT_OUT}: {left_out} paragraph{several} that these runs do not measure.")
    return "\n\n".join(texts)


def _ran(paragraph: str, outcome: Outcome, known: Mapping[str, str]) -> bool:
    """Return True if this run measured what a paragraph is about."""
    names = set(NAME.findall(paragraph))
    if outcome.set_up is not None or not names <= set(known):
        return False
    if not outcome.requested:
        return True
    judged = {one.claim.id.rpartition("-")[2] for one in outcome.claims}
    about = set(CLAIM.findall(paragraph))
    return bool(names or about) and about <= judged


def _measured(outcome: Outcome, prose: str) -> dict[str, str]:
    """Return the measured texts by the names that stand for them."""
    known: dict[str, str] = {}
    for one in outcome.claims:
        known[one.claim.id] = one.verdict
        for n, part in enumerate(one.parts, 1):
            known[f"{one.claim.id}.{n}"] = part.measured
            known[f"{one.claim.id}.{n}.brief"] = part.brief or part.measured
    for name, fact in outcome.paper.facts.items():
        if f"{{{name}}}" in prose:
            try:
                known[name] = fact(outcome.runs)
            except KeyError:  # runs that quick mode omits, or that no requested figure needs
                continue
    return known
