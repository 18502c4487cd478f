"""Sizes of small programs are read from ELF files and compared with bounds; features are listed."""

import importlib.util
import re
import struct
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    """Import `tools/sizes.py`, which is no package."""
    spec = importlib.util.spec_from_file_location("sizes", ROOT / "tools/sizes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elf(*sections: tuple[str, int, int, int]) -> bytes:
    """Return a file with these sections: name, type, flags and size in bytes."""
    named = (*sections, (".shstrtab", 3, 0, 0))
    names = b"".join(name.encode() + b"\0" for name, *_ in named)
    headers, at = b"", 0
    for name, kind, flags, size in named:
        offset = 52 if name == ".shstrtab" else 0
        headers += struct.pack("<10I", at, kind, flags, 0, offset, size, 0, 0, 0, 0)
        at += len(name) + 1
    start = 52 + len(names)
    ident = b"\x7fELF\x01\x01" + bytes(10)
    head = ident + bytes(16) + struct.pack("<I", start) + bytes(10)
    head += struct.pack("<3H", 40, len(named), len(named) - 1)
    return head + names + headers


def test_code_constants_and_initial_values_count(sizes: ModuleType) -> None:
    """Zeroed memory, comments and tables for unwinding take no flash memory."""
    file = elf((".text", 1, 6, 1000), (".rodata", 1, 2, 200), (".data", 1, 3, 30))
    assert sizes.flash_bytes(file) == 1230
    more = elf(
        (".text", 1, 6, 1000), (".bss", 8, 3, 65536), (".comment", 1, 48, 77),
        (".eh_frame", 1, 2, 500), (".ARM.exidx", 0x70000001, 2, 16),
    )  # fmt: skip
    assert sizes.flash_bytes(more) == 1000


@pytest.mark.parametrize("file", [b"", b"\x7fELF\x02\x01" + bytes(60), b"MZ" + bytes(60)])
def test_other_files_are_refused(sizes: ModuleType, file: bytes) -> None:
    """An executable of the host, or none at all, is no measurement."""
    with pytest.raises(ValueError, match="not a little-endian 32-bit ELF file"):
        sizes.flash_bytes(file)


def test_a_program_above_its_bound_is_named(sizes: ModuleType) -> None:
    """A program at its bound, and one without a bound, pass."""
    rows = [("codel", 12_001, 12_000), ("link", 20_000, 20_000), ("text, all", 1_000_000, None)]
    (fault,) = sizes.faults("thumbv7em-none-eabihf", rows)
    assert fault == "codel for thumbv7em-none-eabihf has 12,001 bytes of code, more than 12,000"


def test_bounds_exist_for_every_program_and_target(sizes: ModuleType) -> None:
    """The Makefile builds the library for the same targets."""
    programs = {path.stem for path in (ROOT / "tests/sizes/programs").glob("*.rs")}
    assert all(set(bounds) == programs for bounds in sizes.BOUNDS.values())
    (bare,) = re.findall(r"^BARE := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert bare.split() == list(sizes.BOUNDS)


def test_the_page_has_the_measured_sizes_below_their_bounds(sizes: ModuleType) -> None:
    """The table has a row per program, in the order of the bounds, and one without a bound."""
    page = (ROOT / "docs/how-to/embed.md").read_text()
    table = page.split("| program | " + " | ".join(sizes.BOUNDS) + " |\n")[1].split("\n\n")[0]
    rows = [re.findall(r"\| ([\d,]+)(?= \|)", row) for row in table.splitlines()[1:]]
    measured = [[int(number.replace(",", "")) for number in row] for row in rows]
    bounds = [list(column.values()) for column in sizes.BOUNDS.values()]
    assert len(measured) == len(bounds[0]) + 1
    for row, *limits in zip(measured, *bounds, strict=False):
        assert all(size <= limit for size, limit in zip(row, limits, strict=True))


def features() -> dict[str, list[str]]:
    """Return the features of `sojourn-aqm` with the features that each enables."""
    manifest = tomllib.loads((ROOT / "crates/aqm/Cargo.toml").read_text())
    enabled: dict[str, list[str]] = manifest["features"]
    return enabled


def test_the_page_lists_every_feature_with_its_disciplines() -> None:
    """The list in `families.rs`, which names the feature to enable, agrees with the page."""
    text = (ROOT / "docs/how-to/embed.md").read_text()
    page = text.split("## Small builds")[1].split("`droptail`")[0]
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", page, re.MULTILINE))
    assert set(features()) - {"default"} == set(rows)
    families = (ROOT / "crates/aqm/src/registry/families.rs").read_text()
    entries = re.findall(r'^    \("(\w+)", &\[(.*)\]\),$', families, re.MULTILINE)
    assert len(entries) > 50
    for name, needs in entries:
        last = re.findall(r'"([a-z0-9-]+)"', needs)[-1]
        assert f"`{name}`" in rows[last], f"{name} in the row of {last}"


def test_full_has_every_feature_but_those_that_change_no_discipline() -> None:
    """A new family is in the default build."""
    enabled = features()
    others = {"default", "descriptions", "full", "messages", "snapshot", "std"}
    assert set(enabled["full"]) == set(enabled) - others
    assert set(enabled["default"]) == {"descriptions", "full", "messages", "snapshot"}
