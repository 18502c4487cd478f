"""Dependencies come from named sources, at pinned versions."""

import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import sbom

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def uses(text: str) -> list[str]:
    """Return the actions that a workflow uses, with their comments."""
    return re.findall(r"^[\s-]*uses:\s*(.*?)\s*$", text, re.MULTILINE)


def test_each_action_is_pinned_to_a_commit() -> None:
    """A tag can be moved to other code, a commit cannot; the comment is what Dependabot updates."""
    actions = [(path.name, use) for path in WORKFLOWS for use in uses(path.read_text())]
    assert len(actions) >= 14
    assert [action for action in actions if not PINNED.fullmatch(action[1])] == []


def test_one_action_has_one_version() -> None:
    """All workflows use the same commit of an action."""
    commits: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for use in uses(path.read_text()):
            action, _, commit = use.partition("@")
            commits.setdefault(action, set()).add(commit)
    assert {action: hashes for action, hashes in commits.items() if len(hashes) > 1} == {}


@pytest.mark.parametrize("folder", [".", "fuzz"])
def test_crates_come_from_crates_io_with_checksums(folder: str) -> None:
    """No package of a lock file is from git or another registry, except our own crates."""
    packages = tomllib.loads((ROOT / folder / "Cargo.lock").read_text())["package"]
    foreign = [package for package in packages if "source" in package]
    assert len(foreign) > 20
    assert {package["source"] for package in foreign} == {CRATES_IO}
    assert [package["name"] for package in foreign if len(package["checksum"]) != 64] == []
    ours = {package["name"] for package in packages} - {package["name"] for package in foreign}
    assert {name for name in ours if not name.startswith("sojourn")} == set()


def wheel(folder: Path, parts: dict[str, str]) -> Path:
    """Write a wheel whose bill of materials names `parts`."""
    path = folder / "sojourn-0.1.0-cp311-abi3-linux_x86_64.whl"
    bill = {"components": [{"name": name, "version": at} for name, at in parts.items()]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"sojourn-0.1.0.dist-info/sboms/{sbom.NAME}", json.dumps(bill))
    return path


def test_a_bill_of_materials_names_all_crates_at_their_versions(tmp_path: Path) -> None:
    """A bill that lacks a requirement, or names another version, fails `make wheel`."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    locked = {package["name"]: package["version"] for package in lock}
    assert sbom.faults(sbom.components(wheel(tmp_path, locked))) == []
    stale = locked | {"pyo3": "0.1.0"}
    del stale["numpy"]
    named = sbom.components(wheel(tmp_path, stale))
    assert sbom.faults(named) == ["pyo3 0.1.0: not in Cargo.lock", "numpy: missing"]


def test_a_wheel_without_a_bill_of_materials_is_refused(tmp_path: Path) -> None:
    """The message names the file that is missing."""
    path = tmp_path / "sojourn.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sojourn-0.1.0.dist-info/METADATA", "")
    with pytest.raises(SystemExit, match=r"sojourn\.whl: no sojourn-py\.cyclonedx\.json"):
        sbom.components(path)
