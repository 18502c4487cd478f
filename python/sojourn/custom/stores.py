"""Assignments to fields of compiled objects: refuse values that the type of the field would cut."""

import ast
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn.custom.base import Custom

REMEDY = {"i": "0.0", "b": "0"}
"""First value that makes a field a float or an int, by the kind of its present type."""


class Stores:
    """Checks of the values that the methods of a class assign to its fields.

    A field of a compiled object has the type of the value that `start` assigns. Plain Python
    changes the type with the value; native code would store 0.7 in an int field as 0.
    """

    def __init__(self, numba: Any, cls: type[Custom], layout: np.dtype[Any]) -> None:
        self.numba, self.cls = numba, cls
        self.fields = layout.names or ()
        types = {name: field[0] for name, field in (layout.fields or {}).items()}
        self.kinds = {name: one.kind for name, one in types.items() if one.shape == ()}
        """Kind (i, f or b) of the type of each field that is not an array."""
        self.refused: list[str] = []
        """Messages about values that do not fit, with their lines."""

    def rewrite(self, tree: ast.FunctionDef, own: str, file: str, scope: dict[str, Any]) -> None:
        """Check each value that a method assigns to a field; add the checks to `scope`."""
        _Rewrite(self, own, file, scope).visit(tree)

    def check(self, name: str, place: str) -> Any:
        """Return a function for native code that returns its argument if the field can hold it."""

        @self.numba.extending.intrinsic  # type: ignore[untyped-decorator]
        def fitting(_context: Any, value: Any) -> Any:
            plain = self.numba.types.unliteral(value)
            if not self._fits(name, getattr(plain, "type", plain)):
                self.refused.append(f"{place}: {self._message(name, plain)}")
                raise self.numba.errors.TypingError(self.refused[-1])

            def generate(_context: Any, _builder: Any, _signature: Any, values: Any) -> Any:
                return values[0]

            return plain(plain), generate

        return fitting

    def _fits(self, name: str, value: Any) -> bool:
        types = self.numba.types
        if self.kinds[name] == "i":
            return not isinstance(value, types.Float)
        return not isinstance(value, types.Float | types.Integer)

    def _message(self, name: str, value: Any) -> str:
        kind = self.kinds[name]
        field = {"i": "an int", "b": "a bool"}[kind]
        stored = "a float" if isinstance(value, self.numba.types.Float) else f"of type {value}"
        whole = {"i": "int(...)", "b": "bool(...)"}[kind]
        first = (
            "" if name in self.cls._parameters else f"self.{name} = {REMEDY[kind]} in start, or "
        )
        text = f"{self.cls.__name__}.{name} is {field}, and this value is {stored}"
        return f"{text}: write {first}{whole} here; without compiled it can be anything"


class _Rewrite(ast.NodeTransformer):
    """Change `self.x = value` to `self.x = check(value)` for fields of int and bool."""

    def __init__(self, stores: Stores, own: str, file: str, scope: dict[str, Any]) -> None:
        self.stores, self.own, self.file, self.scope = stores, own, file, scope

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        """Check the value of an assignment, or each value of one with several targets."""
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            node.value = self._checked(node.targets[0], node.value)
            return node
        return self._apart(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Check the value of an assignment with a type."""
        if node.value is not None:
            node.value = self._checked(node.target, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Check the new value of a field that is changed."""
        if not self._is_field(node.target):
            return node
        assert isinstance(node.target, ast.Attribute)
        old = ast.copy_location(
            ast.Attribute(node.target.value, node.target.attr, ast.Load()), node.target
        )
        new = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], self._checked(node.target, new)), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        """Refuse a field as a loop variable, where its value is not checked."""
        for one in ast.walk(node.target):
            if isinstance(one, ast.Attribute) and self._is_field(one):
                text = f"self.{one.attr} is a loop variable, use a local one"
                raise InputError(f"compiled: {self.file}:{node.lineno}: {text}")
        return self.generic_visit(node)

    def _apart(self, node: ast.Assign) -> list[ast.stmt]:
        """Assign to local variables first, and then to the fields."""
        fields = [one for target in node.targets for one in ast.walk(target) if self._is_field(one)]
        names = _Names(self._is_field)
        node.targets = [names.visit(target) for target in node.targets]
        after: list[ast.stmt] = []
        for field in fields:
            assert isinstance(field, ast.Attribute)
            local = ast.copy_location(ast.Name(f"_stored_{field.attr}", ast.Load()), field)
            value = self._checked(field, local)
            after.append(ast.copy_location(ast.Assign([field], value), field))
        return [node, *after]

    def _is_field(self, node: ast.AST) -> bool:
        """Return True for a field that is stored and that cannot hold every number."""
        match node:
            case ast.Attribute(ast.Name(own), name, ast.Store()) if own == self.own:
                return self.stores.kinds.get(name) in REMEDY
        return False

    def _checked(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Return the value, in a call of the check if the target is a field."""
        if not self._is_field(target):
            return value
        assert isinstance(target, ast.Attribute)
        name = f"_store_{target.attr}_{target.lineno}"
        if name not in self.scope:
            place = f"{self.file}:{target.lineno}"
            self.scope[name] = self.stores.check(target.attr, place)
        call = ast.Call(ast.Name(name, ast.Load()), [value], [])
        return ast.copy_location(call, target)


class _Names(ast.NodeTransformer):
    """Change fields in targets to local variables."""

    def __init__(self, is_field: Any) -> None:
        self.is_field = is_field

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Change a field to a local variable of its name."""
        if not self.is_field(node):
            return node
        return ast.copy_location(ast.Name(f"_stored_{node.attr}", ast.Store()), node)
