"""Files and folders of a crate, and of the package, do not use each other in a circle."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CRATES = sorted(ROOT.glob("crates/*/src"))
PACKAGES = [ROOT / "python" / "sojourn", ROOT / "lab" / "sojourn_lab"]

Graph = dict[str, set[str]]


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for used in graph.get(node, ()):
            if used not in number:
                visit(used)
                low[node] = min(low[node], low[used])
            elif used in stack:
                low[node] = min(low[node], number[used])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return circles


def without_submodules(uses: Graph, separator: str) -> Graph:
    """Return `uses` without the uses of submodules by their parents."""
    return {a: {b for b in used if not b.startswith(a + separator)} for a, used in uses.items()}


def circles(uses: Graph, separator: str) -> list[list[str]]:
    """Return the circles between modules, and between the children of each folder.

    The use of a submodule by its parent does not count: it is part of the parent.
    """
    below = without_submodules(uses, separator)
    cyclic = cycles(below)
    children: dict[str, Graph] = defaultdict(lambda: defaultdict(set))
    for a, used in below.items():
        for b in used:
            parts, others = a.split(separator), b.split(separator)
            depth = next(
                (
                    i
                    for i, pair in enumerate(zip(parts, others, strict=False))
                    if len(set(pair)) > 1
                ),
                -1,
            )
            if depth >= 0:
                folder = separator.join(parts[:depth])
                names = [separator.join(p[: depth + 1]) for p in (parts, others)]
                children[folder][names[0]].add(names[1])
    for graph in children.values():
        cyclic += [circle for circle in cycles(graph) if circle not in cyclic]
    return cyclic


def use_paths(tree: str, prefix: str = "") -> list[str]:
    """Return the paths of a use tree such as `a::{b, c::{d, e}}`."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(tree):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(tree[start:i])
            start = i + 1
    paths = []
    for part in [*parts, tree[start:]]:
        head, brace, rest = part.strip().partition("{")
        if brace:
            paths += use_paths(rest.rstrip().removesuffix("}"), prefix + head)
        elif head:
            paths.append(prefix + head.split(" as ")[0])
    return paths


def rust_uses(src: Path) -> Graph:
    """Return the modules of a crate, each with those that it uses, without their tests."""
    files = {}
    for path in src.rglob("*.rs"):
        parts = path.relative_to(src).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "mod" else parts
        if parts != ("lib",) and parts[-1] != "tests":
            files["::".join(parts)] = path
    uses: Graph = {}
    for name, path in files.items():
        text = re.sub(r"//.*", "", path.read_text()).split("#[cfg(test)]")[0]
        paths = [p for tree in re.findall(r"\buse ([^;]+);", text) for p in use_paths(tree)]
        paths += re.findall(r"\b(?:crate|super)(?:::\w+)+", text)
        uses[name] = {used for path in paths if (used := _module(path, name, files))} - {name}
    return uses


def _module(path: str, name: str, files: dict[str, Path]) -> str | None:
    """Return the module of this crate that `path`, written in module `name`, leads to."""
    parts, base = path.replace(" ", "").split("::"), name.split("::")
    if parts[0] == "crate":
        parts = parts[1:]
    elif parts[0] in ("super", "self"):
        while parts and parts[0] in ("super", "self"):
            base = base[:-1] if parts[0] == "super" else base
            parts = parts[1:]
        parts = base + parts
    else:
        parts = base + parts
        if "::".join(parts[: len(base) + 1]) not in files:
            return None
    while parts and "::".join(parts) not in files:
        parts = parts[:-1]
    return "::".join(parts) or None


def python_uses(package: Path) -> Graph:
    """Return the modules of a package, each with those that it imports anywhere."""
    modules = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    uses: Graph = {}
    for name, path in modules.items():
        uses[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    uses[name].add(full if full in modules else node.module)
        uses[name] &= set(modules) - {name}
    return uses


@pytest.mark.parametrize("src", CRATES, ids=lambda src: src.parent.name)
def test_modules_of_a_crate_have_no_circle(src: Path) -> None:
    """Neither files nor folders; a parent may use its submodules."""
    uses = rust_uses(src)
    assert len(uses) < 4 or sum(map(len, uses.values())) > len(uses) / 2, "uses are found"
    assert not circles(uses, "::")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_modules_of_a_package_have_no_circle(package: Path) -> None:
    """Neither files nor folders. Imports inside functions and for types count as well."""
    uses = python_uses(package)
    assert sum(map(len, uses.values())) > len(uses)
    assert not circles(uses, ".")


def test_a_circle_is_found(tmp_path: Path) -> None:
    """Between files, between folders, and through a list of names."""
    for name, text in {
        "a/one.rs": "use crate::b::{two::Two, three};",
        "b/two.rs": "use super::three::Three;",
        "b/three.rs": "fn f() -> crate::a::four::Four { todo() }",
        "a/four.rs": "use super::Parent;",
        "a/mod.rs": "mod four;\nmod one;\npub use one::One;",
        "c.rs": "use crate::d::D;",
        "d.rs": "use crate::c;\n#[cfg(test)]\nmod tests { use crate::a; }",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles(rust_uses(tmp_path), "::") == [["c", "d"], ["a", "b"]]
