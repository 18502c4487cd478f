"""The TCP connection in compiled congestion controls: checks of values, and None."""

import ast
from typing import Any

MOST_BYTES = 1 << 40
"""Largest window and threshold, as in Rust."""

MOST_BPS = 1e14
"""Largest pacing rate, as in Rust."""

RATES, START, WINDOW, THRESHOLD = 4, 3, 2, 1
"""Values of `_access`: a method may set the window, the threshold and `app_limited`; the window;
the window and the threshold; the threshold."""


def _cwnd(tcp: Any, value: Any) -> Any:
    if tcp._access < WINDOW or not (tcp.mss <= value <= MOST_BYTES):
        raise ValueError
    return int(value)


def _ssthresh(tcp: Any, value: Any) -> Any:
    if tcp._access not in (RATES, WINDOW, THRESHOLD) or not (tcp.mss <= value <= MOST_BYTES):
        raise ValueError
    return int(value)


def _pacing_rate(tcp: Any, value: Any) -> Any:
    if not tcp._paced:
        raise ValueError
    if value is None:
        return NONE
    if not (1.0 <= value <= MOST_BPS):
        raise ValueError
    return float(value)


def _app_limited(tcp: Any, value: Any) -> Any:
    if tcp._access != RATES or not value:
        raise ValueError
    tcp._limits = True
    return True


def _given(value: Any) -> Any:
    if value < 0:
        raise TypeError
    return value


def _rate(value: Any) -> Any:
    if value != value:
        raise TypeError
    return value


def _was_full(tcp: Any) -> Any:
    half = tcp.cwnd < tcp.ssthresh and 2 * tcp.flight > tcp.cwnd
    return half or tcp.flight + tcp.mss >= tcp.cwnd


NONE = float("nan")
"""A rate that is None."""

CHECKS = (_cwnd, _ssthresh, _pacing_rate, _app_limited)

HELPERS = {one.__name__: one for one in (*CHECKS, _given, _rate, _was_full)}
"""Functions that compiled methods call. After an exception the plain method is called with the same
values, and raises the exception that the user sees."""

SET = tuple(check.__name__[1:] for check in CHECKS)
OPTIONAL = ("rtt", "srtt", "min_rtt")
OPTIONAL_RATES = ("pacing_rate", "delivery_rate")


class Rewrite(ast.NodeTransformer):
    """Check values that are set; change comparisons with None, and uses of what may be None."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def _field(self, node: ast.AST) -> str:
        """Return the name of an attribute of a connection; "" for anything else."""
        match node:
            case ast.Attribute(ast.Name(own), name) if own in self.names:
                return name
        return ""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Check the value of an attribute that is set."""
        node.value = self.visit(node.value)
        if len(node.targets) == 1 and self._field(node.targets[0]) in SET:
            node.value = self._checked(node.targets[0], node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Check the value of an attribute that is changed."""
        node.value = self.visit(node.value)
        if self._field(node.target) not in SET:
            return node
        assert isinstance(node.target, ast.Attribute)
        old = self.visit(ast.Attribute(node.target.value, node.target.attr, ast.Load()))
        value = self._checked(node.target, ast.BinOp(old, node.op, node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def _checked(self, target: ast.expr, value: ast.expr) -> ast.expr:
        assert isinstance(target, ast.Attribute)
        assert isinstance(target.value, ast.Name)
        tcp = ast.Name(target.value.id, ast.Load())
        return _call(
            f"_{target.attr}", tcp, value, at=value if hasattr(value, "lineno") else target
        )

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Change a comparison with None to one of numbers."""
        match node:
            case ast.Compare(left, [ast.Is() | ast.IsNot() as how], [ast.Constant(None)]):
                name, absent = self._field(left), isinstance(how, ast.Is)
                if name in OPTIONAL:
                    operator = ast.Lt() if absent else ast.GtE()
                    return ast.copy_location(ast.Compare(left, [operator], [ast.Constant(0)]), node)
                if name in OPTIONAL_RATES:
                    different = ast.NotEq() if absent else ast.Eq()
                    return ast.copy_location(ast.Compare(left, [different], [left]), node)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Refuse to use what is None."""
        name = self._field(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        if name in OPTIONAL:
            return _call("_given", node, at=node)
        if name in OPTIONAL_RATES:
            return _call("_rate", node, at=node)
        if name == "window_was_full":
            return _call("_was_full", node.value, at=node)
        return self.generic_visit(node)


def _call(name: str, *arguments: ast.expr, at: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), at)
