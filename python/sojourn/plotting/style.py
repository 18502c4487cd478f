"""Options of figures: title, axis labels, size, matplotlib style sheet."""

import logging
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near
from sojourn._util.look import Look as Look

INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
"""Units of a size, in inches."""

SIZE_MIN, SIZE_MAX = 1.0, 100.0
"""Smallest and largest side of a figure, in inches."""

NAMES_MAX = 26
"""Longest name that a legend shows in full, in characters."""


def size_of(size_text: str | tuple[float, float]) -> tuple[float, float]:
    """Return a size in inches. Raises InputError if it is invalid or out of range."""
    if isinstance(size_text, str):
        number = r"(\d+(?:\.\d+)?)"
        match = re.fullmatch(rf"{number}\s*x\s*{number}\s*(in|cm|mm|pt)?", size_text.strip())
        if not match:
            example = "write it as 6.5x4in or 16x10cm"
            raise InputError(f'--size: "{brief(size_text)}" is not a size: {example}')
        unit = INCHES[match[3] or "in"]
        size = float(match[1]) * unit, float(match[2]) * unit
    else:
        size = float(size_text[0]), float(size_text[1])
    if not all(SIZE_MIN <= side <= SIZE_MAX for side in size):
        raise InputError(
            f"--size: {size[0]:.4g} by {size[1]:.4g} inches is out of range, allowed: "
            f"{SIZE_MIN:g} to {SIZE_MAX:g} each"
        )
    return size


def check(look: Look) -> None:
    """Raise InputError if the size or the style is invalid; call it before a long run."""
    if (size := look.get("size")) is not None:
        size_of(size)
    if (style := look.get("style")) is not None:
        import matplotlib as mpl

        with mpl.rc_context(), sheet(style):
            pass


@contextmanager
def sheet(style: str | Path | None) -> Iterator[None]:
    """Apply a matplotlib style sheet, given by name or file, to the current settings."""
    if style is None:
        yield
        return
    import matplotlib as mpl
    import matplotlib.style

    known = matplotlib.style.available
    if Path(style).is_file():
        # Matplotlib only logs invalid lines; a file without any valid one is not a style sheet.
        log = logging.getLogger("matplotlib")
        level = log.level
        log.setLevel(logging.CRITICAL)
        try:
            chosen = mpl.rc_params_from_file(style, fail_on_error=True, use_default_template=False)
        except (OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"--style: {style} cannot be read: {reason}") from None
        finally:
            log.setLevel(level)
        if not chosen:
            raise InputError(f"--style: {style} has no settings of matplotlib")
        mpl.rcParams.update(chosen)
    elif str(style) == "default" or str(style) in known:
        matplotlib.style.use(style)
    else:
        nearest = near(brief(str(style)), [one for one in known if not one.startswith("_")])
        raise InputError(f'--style: "{brief(str(style))}" is neither a file nor a style{nearest}')
    yield


def wrapped(text: str, inches: float, points: float = 9) -> str:
    """Wrap `text` to a width in inches at a font size in points."""
    # The average width of a character is 0.6 times the font size.
    room = max(6, int(inches * 72 / (0.6 * points)))
    text = text.replace(" %", "\N{NO-BREAK SPACE}%")
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, room))


def legend_name(name: str, most: int = NAMES_MAX) -> str:
    """Shorten a name for a legend to `most` characters, by removing its middle."""
    if len(name) <= most:
        return name
    return name[: (most - 1) // 2] + "…" + name[len(name) - most // 2 :]
