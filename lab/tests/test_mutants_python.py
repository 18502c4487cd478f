"""Mutation testing of Python: the copy that is mutated, and the list of survivors."""

import tomllib

import pytest

from sojourn_lab import ROOT
from sojourn_lab.mutation.python import ALLOWED, MODULES, undecorated

TEXT = '''
@first
@metric("s", needs="sample")
def one():
    """Return 1."""
    return 1


class Two:
    @property
    def two(self):
        return 2

    @classmethod
    def three(cls):
        return 3
'''


def test_decorators_become_calls_after_the_function() -> None:
    """Functions with decorators are left out by mutmut, but for class methods."""
    text = undecorated(TEXT)
    assert "one = first(metric('s', needs='sample')(one))\n" in text
    assert "    two = property(two)\n" in text
    assert "@classmethod" in text
    assert text.count("@") == 1
    names: dict[str, object] = {"first": lambda f: ("first", f)}
    names["metric"] = lambda unit, needs: lambda f: (unit, needs, f())
    exec(compile(text, "x", "exec"), names)
    assert names["one"] == ("first", ("s", "sample", 1))
    assert names["Two"]().two == 2  # type: ignore[operator]


@pytest.mark.parametrize("name", MODULES)
def test_the_files_and_tests_of_a_module_exist(name: str) -> None:
    """Also after files were moved."""
    module = MODULES[name]
    assert all([*(ROOT / "python/sojourn").glob(pattern)] for pattern in module.files)
    assert all((ROOT / "tests" / file).is_file() for file in module.tests)


def test_each_listed_survivor_has_a_reason_and_is_on_the_page() -> None:
    """reports/mutation.md gives the reasons."""
    listed = tomllib.loads(ALLOWED.read_text())
    page = " ".join((ROOT / "reports/mutation.md").read_text().split())
    assert set(listed) <= set(MODULES)
    for entry in (entry for entries in listed.values() for entry in entries):
        assert entry["mutants"]
        assert entry["why"] in page
