"""Deep tables and long keys are refused in one line, whatever reads them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Command
from sojourn.scenario.parsing import DEPTH_MAX, PARTS, parse_toml, read_value
from support.refusals import one_line


def keys(depth: int) -> str:
    """Return TOML with a dotted key."""
    return ".".join(["a"] * depth) + " = 1\n"


def quoted(depth: int) -> str:
    """Return TOML with a dotted key of quoted parts."""
    return " . ".join(['"a b"', "'c'"] * (depth // 2)) + " = 1\n"


def header(depth: int) -> str:
    """Return TOML with a table of a long name."""
    return "[" + ".".join(["a"] * depth) + "]\nx = 1\n"


def inline(depth: int) -> str:
    """Return TOML with inline tables."""
    return "a = " + "{ b = " * depth + "1" + " }" * depth + "\n"


def lists(depth: int) -> str:
    """Return TOML with nested lists."""
    return "a = " + "[" * depth + "]" * depth + "\n"


DEPTHS = (DEPTH_MAX + 2, 500, 900, 5_000, 100_000)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("write", [keys, quoted, header, inline, lists])
def test_deep_toml_is_refused(
    write: Callable[[int], str], depth: int, tmp_path: Path, sojourn: Command
) -> None:
    """By every command that reads a scenario or a sweep."""
    path = tmp_path / "deep.toml"
    path.write_text(write(depth))
    for words in (("run", path), ("explain", path), ("compare", path, "--qdisc", "red"),
                  ("sweep", path, "--out", tmp_path / "out")):  # fmt: skip
        one_line(sojourn(*words), "nested too deeply")


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_json_is_refused(depth: int, tmp_path: Path, sojourn: Command) -> None:
    """Also where Python's own parser accepts it."""
    path = tmp_path / "deep.json"
    path.write_text('{"a":' * depth + "1" + "}" * depth)
    one_line(sojourn("run", path), "nested too deeply")
    path.write_text('{"a":' + "[" * depth + "]" * depth + "}")
    one_line(sojourn("run", path), "nested too deeply")


def test_deep_values_of_options_are_refused(sojourn: Command) -> None:
    """Deep values of an option are text, which is no value."""
    for text in (f"{{{keys(5000).strip()}}}", "[" * 900 + "]" * 900, "{a=" * 200 + "1" + "}" * 200):
        assert read_value(text) == text
        one_line(sojourn("run", "rrul", "--set", f"up.qdisc={text}"))
    one_line(sojourn("run", "rrul", "--set", keys(5000).strip().replace(" ", "")))


def test_numbers_and_long_words_are_no_keys() -> None:
    """Lists of fractions on one line, and addresses, are read."""
    line = json.dumps([i / 7 for i in range(5000)])
    assert len(parse_toml(f"t_s = {line}")["t_s"]) == 5000
    text = f't_s = {line}\nx = "{"1.2.3, " * 99}"\ny = "{"w" * 100_000}"\n'
    assert PARTS.search(text) is None
    assert set(parse_toml(text)) == {"t_s", "x", "y"}
