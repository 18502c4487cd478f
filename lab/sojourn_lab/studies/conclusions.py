"""Conclusions of a study, each with whether it holds in the runs."""

import textwrap
from collections.abc import Sequence


def as_list(study: str, statements: Sequence[tuple[str, bool]]) -> str:
    """Return the conclusions as a list in Markdown.

    Raises
    ------
    SystemExit
        If one of them does not hold.
    """
    wrong = [text for text, holds in statements if not holds]
    if wrong:
        raise SystemExit(f"{study}: these conclusions do not hold: {wrong}")
    return "\n".join(
        textwrap.fill(f"- {text}", 100, subsequent_indent="  ", break_on_hyphens=False)
        for text, _ in statements
    )
