"""Mutation testing of Python modules with mutmut: `make mutants-python MODULE=recommendation`.

mutmut mutates the functions of a copy in target/mutants-python/MODULE, and runs the tests of
`MODULES` on each mutant: those that call its function. Survivors that `python.toml` does not list,
and listed ones that are caught by now, are printed, and the exit code is 1.

mutmut leaves out functions with decorators, so in the copy `@metric(...)` before a function becomes
`name = metric(...)(name)` after it. Strings and arguments are not mutated (messages are words, and
most arguments are checked by mypy); nor are constants of modules.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn_lab import ROOT

STAGES = ROOT / "target" / "mutants-python"
ALLOWED = Path(__file__).with_name("python.toml")


@dataclass(frozen=True)
class Module:
    """Files of python/sojourn, their nearest tests, and words of tests that take too long."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    slow: tuple[str, ...] = ()


MODULES: Mapping[str, Module] = {
    "recommendation": Module(
        ("recommendation/*.py",),
        ("test_recommend.py", "test_recommend_parts.py", "test_recommend_answers.py",
         "test_recommend_line.py"),
        ("answers_of_the_docs", "other_seeds", "same_seed", "how_sure", "both_directions",
         "a_function_can", "prints_the_answer", "has_no_shaper"),
    ),
    "explanation": Module(
        ("explanation/*.py",),
        ("test_explain.py", "test_explain_rules.py", "test_explain_limits.py",
         "test_explain_flows.py", "test_stored.py"),
        ("a_live_link_is_explained", "on_real_packets"),
    ),
    "tc": Module(("tc.py", "cli/tc.py"), ("test_tc.py", "test_tc_links.py")),
    "metrics": Module(
        tuple(
            f"metrics/{name}.py"
            for name in ("completion", "delay", "dynamics", "loss", "media", "registry",
                         "throughput")
        ),
        ("test_metrics.py", "test_metrics_of_transfers.py", "test_completion.py"),
    ),
    "statistics": Module(
        ("result/statistics.py",),
        ("test_statistics.py", "test_statistics_worked.py"),
        ("of_scipy", "contain_the_truth"),
    ),
}  # fmt: skip
"""Modules by name."""

RUN = """\
import sys
from mutmut.mutation import file_mutation, mutators
left_out = (mutators.operator_string, mutators.operator_arg_removal)
file_mutation.mutation_operators = [
    pair for pair in file_mutation.mutation_operators if pair[1] not in left_out
]
from mutmut.__main__ import cli
from mutmut.state import state
from mutmut.workers.isolation import ForkServerRunner
submit = ForkServerRunner.submit
def fastest_first(self, name, tests, *limits):
    submit(self, name, sorted(tests, key=state().duration_by_test.__getitem__), *limits)
ForkServerRunner.submit = fastest_first
sys.path.insert(0, "mutants/tools")
cli(sys.argv[1:])
"""
"""The command mutmut without two of its operators; the fastest tests of a mutant come first."""

SHOW = """\
import sys
from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant
for name in sys.argv[1:]:
    print(get_diff_for_mutant(name, path=find_mutant(name).path), end="\\0")
"""
"""Differences of mutants."""

CONFIG = """\
[tool.mutmut]
source_paths = ["src"]
only_mutate = {files}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-m", "not live", "-k", {left_out}]
process_isolation = "forkserver"
timeout_constant = 4.0
"""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

CAUGHT = (1, 3, 24, 36, -24, -9, 152)
"""Exit codes of mutmut for a mutant that is caught: a test fails, or its time is over."""


def undecorated(text: str) -> str:
    """Return a module in which functions are decorated by a call after their definition."""
    lines = text.splitlines(keepends=True)
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    for node in sorted(functions, key=lambda node: -node.lineno):
        calls = [ast.unparse(one) for one in node.decorator_list]
        if {"staticmethod", "classmethod", "overload"} & set(calls) or ".setter" in str(calls):
            continue
        first = min(one.lineno for one in node.decorator_list) - 1
        called = node.name
        for call in reversed(calls):
            called = f"{call}({called})"
        assert node.end_lineno is not None
        lines.insert(node.end_lineno, f"{' ' * node.col_offset}{node.name} = {called}\n")
        del lines[first : node.lineno - 1]
    return "".join(lines)


def prepare(module: str) -> Path:
    """Copy the package and the tests into the stage of `module`; return its folder."""
    chosen = MODULES[module]
    stage = STAGES / module
    fresh = stage / "src"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(ROOT / "python", fresh, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (path for pattern in chosen.files for path in fresh.glob(f"sojourn/{pattern}")):
        path.write_text(undecorated(path.read_text()))
    inner = stage / "mutants"
    (inner / "src").mkdir(parents=True, exist_ok=True)  # Python remembers that a folder is missing
    for path in ROOT.iterdir():
        if path.name not in ("target", ".git", ".venv", "out", "dist", "pyproject.toml"):
            (inner / path.name).unlink(missing_ok=True)
            (inner / path.name).symlink_to(path)
    settings = (ROOT / "pyproject.toml").read_text()
    files = [f"src/sojourn/{pattern}" for pattern in chosen.files]
    tests = [f"tests/{name}" for name in chosen.tests]
    # At least one word: pytest refuses an empty expression.
    left_out = " and ".join(f"not {word}" for word in ("fuzzing", *chosen.slow))
    own = CONFIG.format(
        files=json.dumps(files), tests=json.dumps(tests), left_out=json.dumps(left_out)
    )
    (stage / "pyproject.toml").write_text(settings + "\n" + own)
    return stage


def mutmut(stage: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mutmut in a stage, with its output in a file."""
    paths = [stage / "mutants/src", stage / "mutants/tests", stage / "mutants"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    environment["POLARS_MAX_THREADS"] = "1"
    command = ["nice", "-n", "10", sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, cwd=stage, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def results(stage: Path) -> Iterator[tuple[str, int | None]]:
    """Yield each mutant with the exit code of its tests (None: not run)."""
    for path in sorted((stage / "mutants/src").rglob("*.meta")):
        yield from json.loads(path.read_text())["exit_code_by_key"].items()


def names_of(stage: Path, mutants: Sequence[str]) -> list[str]:
    """Return names that survive changes elsewhere: function, old line and new line."""
    named = []
    shown = mutmut(stage, SHOW, *mutants).stdout.split("\0") if mutants else []
    for mutant, diff in zip(mutants, shown, strict=False):
        old, new = (
            " ".join(
                line[1:].strip()
                for line in diff.splitlines()
                if line[:1] == sign and line[:3] != 3 * sign
            )
            for sign in "-+"
        )
        function = mutant.rpartition("__mutmut_")[0].removeprefix("sojourn.")
        function = function.replace("xǁ", "").replace("ǁ", ".").replace(".x_", ".")
        named.append(f"{function}: {old} -> {new}")
    return named


def tested(module: str) -> bool:
    """Run mutmut on a module and list its survivors; return True if they are those listed."""
    stage = prepare(module)
    survivors = [name for name, code in results(stage) if code not in (None, *CAUGHT)]
    for names in ([], survivors) if survivors else ([],):  # new mutants, earlier survivors
        out = mutmut(stage, RUN, "run", "--max-children", "1", *names)
        if out.returncode:
            lines = [line for line in re.split(r"[\r\n]+", out.stdout) if line[:1] not in SPINNER]
            raise SystemExit("\n".join(lines[-40:]))
    codes = dict(results(stage))
    missed = set(names_of(stage, [name for name, code in codes.items() if code not in CAUGHT]))
    allowed = {name for entry in allowed_in(module) for name in entry["mutants"]}
    for line in sorted(missed - allowed):
        print(line)
    for line in sorted(allowed - missed):
        print(f"listed in {ALLOWED.name}, but no survivor: {line}")
    print(f"{module}: {len(codes)} mutants, {len(missed)} survive, {len(missed - allowed)} new")
    return missed == allowed


def allowed_in(module: str) -> list[dict[str, Any]]:
    """Return the listed survivors of a module: `why`, and the names of `mutants`."""
    listed: list[dict[str, Any]] = tomllib.loads(ALLOWED.read_text()).get(module, [])
    return listed


def main() -> None:
    """Test the modules named on the command line."""
    modules = sys.argv[1:]
    if not modules or not set(modules) <= set(MODULES):
        raise SystemExit(f"usage: {sys.argv[0]} MODULE...; modules: {', '.join(MODULES)}")
    raise SystemExit(1 if [module for module in modules if not tested(module)] else 0)


if __name__ == "__main__":
    main()
