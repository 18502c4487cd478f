"""No reader ends otherwise than in a result or in one line, whatever its input.

`make fuzz-files` runs 10,000 mutants of each; the suite runs fewer.
"""

import os
import shutil
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from mutation import altered
from readers import READERS, Reader

MUTANTS = int(os.environ.get("SOJOURN_MUTANTS", "60"))
"""Mutants of each reader."""

LONGEST = 2500
"""Longest message, in characters."""

pytestmark = pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")


def ending(reader: Reader, value: Any, about: str) -> str:
    """Use an input; return "used", "refused", or the name of the fault."""
    try:
        reader.use(value)
    except sj.InputError as error:
        message = str(error)
        if "\n" in message or len(message) > LONGEST or not message.isprintable():
            return f"message of several lines or characters: {message[:300]!r}"
        is_named = any(part in message for part in (about, "links.up.trace", "flows.f.source"))
        return "refused" if is_named else f"message without {about}: {message[:300]}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        at = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "sojourn" in f.filename]
        return f"{type(error).__name__} at {' '.join(at[-2:])}: {str(error)[:200]}"
    return "used"


def endings(reader: Reader, folder: Path) -> tuple[Counter[str], dict[str, int]]:
    """Return the number of mutants by their ending, and the first seed of each fault."""
    count: Counter[str] = Counter()
    faults: dict[str, int] = {}
    good, work = folder / "good", folder / "work"
    good.mkdir()
    files = reader.make(good)
    if not reader.texts:
        shutil.copytree(good, work)
    for seed in range(MUTANTS):
        if reader.texts:
            text = reader.texts[seed % len(reader.texts)]
            end = ending(reader, altered(text.encode(), seed).decode(errors="replace"), "")
        else:
            path = files[seed % len(files)]
            place = work / path.relative_to(good)
            place.write_bytes(reader.mutate(path, path.read_bytes(), seed // len(files)))
            end = ending(reader, work if reader.whole else place, str(work))
            if reader.whole:
                shutil.rmtree(work)
                shutil.copytree(good, work)
        kind = end if end in ("used", "refused") else "fault"
        count[kind] += 1
        if kind == "fault":
            faults.setdefault(end[:90], seed)
    return count, faults


@pytest.mark.parametrize("name", READERS)
def test_mutants_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """The message names the file."""
    reader = READERS[name]
    count, faults = endings(reader, tmp_path)
    print(f"\n{name}: {MUTANTS} mutants, {dict(count)}")
    assert not faults, f"{name}: {faults}"
    assert reader.forgiving or count["refused"] > MUTANTS // 10


@pytest.mark.parametrize("name", READERS)
def test_valid_inputs_are_read(name: str, tmp_path: Path) -> None:
    """Otherwise mutants would prove nothing."""
    reader = READERS[name]
    for text in reader.texts:
        reader.use(text)
    for path in reader.make(tmp_path):
        reader.use(tmp_path if reader.whole else path)
