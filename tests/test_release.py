"""A release is complete: one version, a changelog, and CI jobs that run every target."""

import re
import subprocess
import tomllib
from pathlib import Path

from conftest import LONG

ROOT = Path(__file__).resolve().parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_all_files_state_one_version() -> None:
    """The version of the crates, the laboratory, the citation and the newest release agree."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    ours = {name: entry for name, entry in workspace["dependencies"].items() if "path" in entry}
    assert {entry["version"] for entry in ours.values()} == {version}
    lab = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())
    assert lab["project"]["version"] == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## (\d\S*)", CHANGELOG, re.MULTILINE)[0] == version


def test_the_changelog_begins_with_unreleased_changes() -> None:
    """Changes that follow the newest release have a section of their own."""
    assert re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)[0] == "Unreleased"


def test_release_notes_are_the_section_of_the_version() -> None:
    """The command of the workflow prints one section, without its heading."""
    workflow = (ROOT / ".github/workflows/release.yml").read_text()
    command = re.search(r"awk .* CHANGELOG\.md", workflow)
    assert command is not None
    notes = subprocess.run(
        ["bash", "-c", command[0]],
        env={"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": "v0.1.0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    section = CHANGELOG.split("\n## 0.1.0", 1)[1].split("\n", 1)[1].split("\n## ", 1)[0]
    assert notes.strip() == section.strip()
    assert len(notes.split()) > 50


def test_parallel_jobs_run_every_target_of_ci() -> None:
    """Jobs on GitHub and `.ci/run` have the same targets, all tests and checks among them."""
    script = (ROOT / ".ci/run").read_text()
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    (serial,) = re.findall(r"\|\| set -- ((?:.*\\\n)*.*)", script)
    (jobs,) = re.findall(r"targets: \[(.*)\]", workflow)
    (parts,) = re.findall(r"^test: (.*?)  ##", makefile, re.MULTILINE)
    targets = re.findall(r"[\w-]+", serial)
    assert sorted(targets) == sorted(re.findall(r"[\w-]+", jobs))
    assert {"check", *parts.split()} <= set(targets)


def test_files_that_are_tested_first_exist() -> None:
    """A renamed file would be tested last, by one process alone."""
    files = {path.stem for folder in ("tests", "lab/tests") for path in (ROOT / folder).iterdir()}
    assert files >= set(LONG)
