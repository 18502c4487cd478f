"""Console of standard output: text from files cannot move the cursor or reorder other text."""

import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from sojourn._util.inputs import printable_lines

PIPED_WIDTH = 200
"""Width in characters of output to a file or pipe, unless COLUMNS is set."""


class SafeConsole(Console):
    """Console that prints a blank for each control or direction character of a text.

    Colours are styles of the console, not characters, so they are not affected.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable, with printable text."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable_lines(segment.text)
            yield segment._replace(text=text)


def console(**options: Any) -> Console:
    """Return the console of standard output, with colours only on a terminal.

    `options` are passed on to `rich.console.Console`.
    """
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    usual = {"file": sys.stdout, "width": None if known else PIPED_WIDTH, "soft_wrap": False}
    return SafeConsole(**{**usual, "highlight": False, **options})
