"""Requirements of the package, of the laboratory and of `make demo`; the targets of make."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """Return the packages of a list of requirements."""
    matches = (re.match(r"[\w-]+", one) for one in requirements)
    return {one[0] for one in matches if one}


def imported(path: Path) -> set[str]:
    """Return the top-level modules that a file imports, wherever in it."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules.add(node.module.split(".")[0])
    return modules


def test_the_package_imports_what_it_declares() -> None:
    """No more and no less; what is optional is in the extras, of which dev is not imported."""
    files = (ROOT / "python/sojourn").rglob("*.py")
    outside = set().union(*map(imported, files)) - sys.stdlib_module_names - {"sojourn"}
    extras = PROJECT["optional-dependencies"]
    optional = set().union(*(names(extras[extra]) for extra in extras if extra != "dev"))
    assert outside - optional == names(PROJECT["dependencies"])
    assert not names(PROJECT["dependencies"]) & names(PROJECT["optional-dependencies"]["dev"])


def test_help_lists_every_target() -> None:
    """Each with its text; targets of the laboratory come last."""
    command = ["make", "--silent", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  ([\w-]+) +\S", done.stdout, re.MULTILINE)
    texts = [(ROOT / name).read_text() for name in ("Makefile", "lab/lab.mk")]
    targets = [one for text in texts for one in re.findall(r"^([a-z][\w-]*):", text, re.MULTILINE)]
    assert listed == [one for one in targets if one != "dev"]
    declared = re.findall(r"^\.PHONY: (.+)", "\n".join(texts), re.MULTILINE)
    assert sorted(targets) == sorted(" ".join(declared).split())


def test_the_laboratory_imports_what_sojourn_requires() -> None:
    """Besides sojourn itself and packages that only its development needs."""
    files = (ROOT / "lab/sojourn_lab").rglob("*.py")
    outside = set().union(*map(imported, files)) - sys.stdlib_module_names
    known = names(PROJECT["dependencies"]) | names(PROJECT["optional-dependencies"]["dev"])
    assert outside - known <= {"sojourn", "sojourn_lab", "examples", "mutmut"}
    lab = tomllib.loads((ROOT / "lab/pyproject.toml").read_text())["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert lab["version"] == workspace["package"]["version"]


def recipe(target: str) -> list[str]:
    """Return the commands that make would run for `target` in a clean clone."""
    command = ["make", "--dry-run", "--always-make", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_demo_installs_nothing_for_development() -> None:
    """Only tests and checks do; wheels and benchmarks use the release build."""
    demo = "\n".join(recipe("demo"))
    assert ".venv/dev.txt" not in demo
    assert "--profile develop" in demo
    assert "--seeds 30" in demo
    for target in ("test", "check", "gen"):
        assert ".venv/dev.txt" in "\n".join(recipe(target))
    for target in ("wheel", "bench-sweep", "kernel-tcp"):
        assert "--release" in "\n".join(recipe(target))
