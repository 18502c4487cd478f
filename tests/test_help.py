"""Every public class and function has a help page, a signature and type hints that resolve."""

import inspect
import pydoc
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from types import GenericAlias, ModuleType
from typing import Any

import pytest

import sojourn as sj

MODULES = (*sj.MODULES, *sj.TOOLS, "embed", "metrics", "gym")
"""Modules that the documentation tells users to import."""


def modules() -> Iterator[ModuleType]:
    """Return the package and its public modules that are installed."""
    yield sj
    for name in MODULES:
        try:
            yield import_module(f"sojourn.{name}")
        except ImportError as error:
            if error.name != "gymnasium":  # an optional dependency
                raise


def own(value: Any) -> bool:
    """Return True for a class or function of this package."""
    if isinstance(value, GenericAlias):  # of a compiled class
        return False
    return callable(value) and str(getattr(value, "__module__", "")).startswith("sojourn")


def members(kind: type) -> Iterator[Any]:
    """Return the public methods and properties of a class, as functions."""
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if name.startswith("_") or not own(base):
                continue
            value = value.fget if isinstance(value, property) else value
            value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(value):
                yield value


def parts(hint: Any) -> Iterator[Any]:
    """Return a type hint and the types that it is composed of."""
    yield hint
    for part in typing.get_args(hint):
        yield from parts(part)


def hints(value: Any) -> dict[str, Any]:
    """Return the resolved type hints of a class or function."""
    try:
        if value.__module__ == "sojourn.gym":  # bases of Gymnasium have hints that do not resolve
            return inspect.get_annotations(value, eval_str=True)
        return typing.get_type_hints(value)
    except Exception as error:
        raise AssertionError(f"{value.__module__}.{value.__qualname__}: {error!r}") from error


def public() -> dict[str, Any]:
    """Return all public classes and functions, and the classes of the package in their hints."""
    waiting = [
        getattr(module, name)
        for module in modules()
        for name in getattr(module, "__all__", vars(module))
        if not name.startswith("_")
    ]
    objects: dict[str, Any] = {}
    while waiting:
        value = waiting.pop()
        if not own(value):
            continue
        name = f"{value.__module__}.{value.__qualname__}"
        if name in objects:
            continue
        objects[name] = value
        inner = [value, *(members(value) if isinstance(value, type) else ())]
        waiting += [p for i in inner for hint in hints(i).values() for p in parts(hint)]
    return objects


def test_hints_resolve_and_reach_the_types_of_results() -> None:
    """The walk covers the package: each class that a public function returns is in it."""
    objects = public()
    for kind in ("Flow", "Link", "Result", "Comparison", "Evaluation", "Recommendation"):
        assert getattr(sj, kind) in objects.values()
    assert sj.qdisc.Cake in objects.values()
    assert sj.simulate in objects.values()


@pytest.mark.parametrize("render", [pydoc.render_doc, inspect.signature])
def test_help_and_signature(render: Callable[[Any], object]) -> None:
    """help() and inspect.signature answer for all of them."""
    for name, value in public().items():
        builtin = isinstance(value, type) and issubclass(value, Exception | dict)
        if builtin and render is inspect.signature:
            continue  # Python has no signature of dict and of exceptions either
        try:
            render(value)
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error


def test_help_of_the_package_lists_its_names() -> None:
    """help(sojourn) and `from sojourn import *` have all public names."""
    assert set(sj.__all__) <= set(dir(sj))
    text = pydoc.plain(pydoc.render_doc(sj))
    assert "class Flow" in text
    assert "simulate(" in text
