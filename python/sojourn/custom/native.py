"""Native code from a class in Python, by Numba."""

import ast
import copy
import ctypes
import re
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near
from sojourn.custom import arrival, connection, identity
from sojourn.custom.aqm import Aqm
from sojourn.custom.base import Custom, state_of
from sojourn.custom.control import CongestionControl
from sojourn.custom.layouts import LINK, OF_LINKS, OF_PACKETS, PACKET, Kind, kind_of
from sojourn.custom.source import TrafficSource
from sojourn.custom.stores import Stores

ENTRY = """
def entry(packet_at, seen_at, state_at):
    seen = carray(seen_at, 1)[0]
    found = 0
    try:
        answer = method({arguments})
        if answer is not None:
            {use}
    except Exception:
        seen._error = 1
    return found
"""
"""Function that Rust calls; an exception must not leave it."""

DECISION = "found = answer"
"""Statement of the function for an answer that is not None."""

ARRIVAL = """time, size = unwrapped(answer)
            seen._time = whole(time, seen.now, latest)
            seen._size = whole(size, 1, seen._largest)
            found = 1"""
"""The same for the time and size of an arrival."""

PLAIN = "without compiled it runs as plain Python"
"""End of the message about a method that Numba cannot compile."""

WORD = 8
"""Bytes of a word of the state."""


class Owner(NamedTuple):
    """Owner of the native code of a class, with what it was compiled from."""

    cls: type[Custom]
    layout: np.dtype[Any]
    """Layout of the state."""
    code: object


class Native(NamedTuple):
    """Compiled class: what Rust needs to call it."""

    methods: list[int]
    """Addresses in the order of the hooks, 0 for methods that the class does not define."""
    state: list[int]
    """State after `start`, as words."""
    gauges: list[tuple[str, int, str]]
    """Recorded fields: name, offset in bytes, kind of the type (f, i or b)."""
    owner: Owner


_compiled: dict[tuple[type, str], tuple[list[int], Owner]] = {}
"""Addresses of the methods, and their owner, by class and layout of the state."""

_compiling = threading.Lock()


def compile_class(instance: Custom) -> Native:
    """Compile the class of an object whose state is set.

    Raises InputError, with the line, if Numba cannot compile a method.
    """
    fields = {name: _type_of(name, value) for name, value in vars(instance).items()}
    fields = fields or {"_none": ("i8",)}  # a record needs a field
    layout = np.dtype([(name, *kind) for name, kind in fields.items()], align=True)
    key = (type(instance), repr(layout))
    with _compiling:
        if key not in _compiled:
            _compiled[key] = _compile(type(instance), layout)
        methods, owner = _compiled[key]
    places: Mapping[str, Any] = layout.fields or {}
    gauges = [
        (name, places[name][1], places[name][0].kind)
        for name in state_of(instance)
        if not name.startswith("_") and places[name][0].shape == ()
    ]
    return Native(methods, words_of(instance, layout), gauges, owner)


def words_of(instance: Custom, layout: np.dtype[Any]) -> list[int]:
    """Return the parameters and the state of an object as words."""
    whole = np.zeros(max(1, -(-layout.itemsize // WORD)) * WORD, "u1")
    record = whole[: layout.itemsize].view(layout)
    for name, value in vars(instance).items():
        record[name][0] = value
    words: list[int] = whole.view("u8").tolist()
    return words


def object_of(owner: Owner, words: Sequence[int]) -> Custom:
    """Return an object of a compiled class with the state of native code."""
    cls, layout, _ = owner
    record = np.array(words, "u8").view("u1")[: layout.itemsize].view(layout)
    instance = cls.__new__(cls)
    for name in layout.names or ():
        value = record[name][0]
        vars(instance)[name] = value.copy() if value.shape else value.item()
    return instance


def _type_of(name: str, value: Any) -> tuple[Any, ...]:
    """Return type (and shape) of a field for a value of the state."""
    match value:
        case bool():
            return ("?",)
        case int():
            return ("i8",)
        case float():
            return ("f8",)
        case np.ndarray() if value.dtype.kind in "fib":
            return (value.dtype, value.shape)
    kind = type(value).__name__
    text = f"self.{name} is of type {kind}, allowed: int, float, bool, numpy array of them"
    raise InputError(f"compiled: {text}; without compiled it can be anything")


def _compile(cls: type[Custom], layout: np.dtype[Any]) -> tuple[list[int], Owner]:
    """Compile all methods of a class for a state of `layout`."""
    try:
        import numba
    except ImportError:
        raise InputError("compiled: needs Numba: pip install numba") from None
    draw = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_size_t)(_sojourn.draw_address())

    kind = kind_of(cls)
    drawing = f"random() works only in {kind.drawing}"

    @numba.njit
    def random(queue: Any) -> float:
        if queue._rng == 0:
            raise RuntimeError(drawing)
        return float(draw(queue._rng))

    methods = _methods(cls)
    functions: dict[str, Any] = {"_draw": random}
    if issubclass(cls, CongestionControl):
        functions |= {name: numba.njit(one) for name, one in connection.HELPERS.items()}
    stores = Stores(numba, cls, layout)
    scopes = []
    for name, (function, file, tree) in methods.items():
        scope = {**function.__globals__, **identity.closure(function)}
        compiled = _rewritten(cls, methods, stores, name, tree, file, scope)
        functions[f"_method_{name}"] = numba.njit(boundscheck=True)(compiled)
        scopes.append(scope)
    for scope in scopes:
        scope.update(functions)
    records = [numba.from_dtype(dtype) for dtype in (layout, kind.packet, kind.seen)]
    entries = {
        name: _entry(numba, functions[f"_method_{name}"], kind, records, stores, *methods[name][1:])
        for name in kind.hooks
        if name in methods
    }
    addresses = [entries[name].address if name in entries else 0 for name in kind.hooks]
    return addresses, Owner(cls, layout, (draw, functions, entries))


def _entry(
    numba: Any,
    method: Any,
    kind: Kind,
    records: list[Any],
    stores: Stores,
    file: str,
    tree: ast.FunctionDef,
) -> Any:
    """Return the C function that calls a method and catches its exceptions.

    `records` are the types of the state, the packet or a link, and what else the method sees.
    """
    from numba.core import errors

    state, packet, seen = records
    pointers = [numba.types.CPointer(one) for one in (packet, seen, state)]
    at_state, at_packet = "carray(state_at, 1)[0]", "carray(packet_at, 1)[0]"
    arguments = {at_state: state, "seen": seen}
    if tree.name in OF_PACKETS:
        arguments = {at_state: state, at_packet: packet, "seen": seen}
    elif tree.name == OF_LINKS:
        arguments["carray(packet_at, seen._links)"] = packet[::1]
    try:
        method.compile(tuple(arguments.values()))
        answer = method.nopython_signatures[-1].return_type
        _check_answer(numba, answer, kind, file, tree)
        call = ", ".join(arguments)
        scope = {"carray": numba.carray, "method": method}
        use = DECISION
        if kind.root is TrafficSource:
            scope |= arrival.helpers(numba)
            use = "pass" if isinstance(answer, numba.types.NoneType) else ARRIVAL
        exec(ENTRY.format(arguments=call, use=use), scope)
        return numba.cfunc(numba.types.int64(*pointers))(scope["entry"])
    except errors.NumbaError as error:
        reason = stores.refused[0] if stores.refused else _message(error, file, tree)
        raise InputError(f"compiled: {reason}") from None
    except (KeyError, AttributeError, TypeError) as error:  # an unknown field, in a helper method
        reason = repr(error)
        if tree.name == OF_LINKS and isinstance(error, KeyError):
            reason = f"a link has no {error.args[0]}{near(str(error.args[0]), LINK.names or ())}"
        text = f"Numba cannot compile {tree.name}, or a method that it calls: {reason}; {PLAIN}"
        raise InputError(f"compiled: {file}:{tree.lineno}: {text}") from None


def _check_answer(numba: Any, answer: Any, kind: Kind, file: str, tree: ast.FunctionDef) -> None:
    """Refuse a method that returns something that the engine cannot use."""
    inner = getattr(answer, "type", answer)
    if isinstance(inner, numba.types.NoneType | numba.types.Omitted):
        return
    if kind.root is Aqm and isinstance(inner, numba.types.Integer):
        return
    if kind.root is TrafficSource and arrival.is_arrival(numba, inner):
        return
    text = f"{tree.name} returns {answer}, allowed: {kind.answers}"
    raise InputError(f"compiled: {file}:{tree.lineno}: {text}")


def _message(error: Exception, file: str, tree: ast.FunctionDef) -> str:
    """Return place and reason of an error of Numba in one sentence."""
    text = str(error)
    lines = re.findall(r'File "([^"]+)", line (\d+)', text)
    place = f"{lines[-1][0]}:{lines[-1][1]}" if lines else f"{file}:{tree.lineno}"
    location = getattr(error, "loc", None)
    if location is not None and not lines:
        place = f"{location.filename}:{location.line}"
    stripped = [line.strip() for line in text.splitlines() if line.strip()]
    dull = ("Failed in nopython", "During:", "File", "-", "There are", "[", "<source elided>")
    reasons = [line for line in stripped if not line.startswith(dull)]
    reason = reasons[0] if reasons else type(error).__name__
    return f"{place}: {reason} (in {tree.name}); {PLAIN}"


def _methods(cls: type[Custom]) -> dict[str, tuple[types.FunctionType, str, ast.FunctionDef]]:
    """Return all methods but `start`, with their files and syntax trees."""
    methods: dict[str, tuple[types.FunctionType, str, ast.FunctionDef]] = {}
    for base in cls.__mro__[: cls.__mro__.index(kind_of(cls).root)]:
        lines = identity.lines_of(base)
        for name, function in vars(base).items():
            if not isinstance(function, types.FunctionType) or name in ("start", *methods):
                continue
            if lines is None:
                raise InputError(f"compiled: the source of {base.__name__} is not available")
            trees = [one for one in lines[1].body if isinstance(one, ast.FunctionDef)]
            tree = next((one for one in trees if one.name == name), None)
            if tree is None:
                raise InputError(f"compiled: the source of {base.__name__}.{name} is not available")
            methods[name] = (function, lines[0], tree)
    return methods


def _rewritten(
    cls: type[Custom],
    methods: dict[str, Any],
    stores: Stores,
    name: str,
    tree: ast.FunctionDef,
    file: str,
    scope: dict[str, Any],
) -> Callable[..., Any]:
    """Return a method as a function of records; its constants are added to `scope`."""
    rewrite = _Rewrite(cls, tuple(methods), stores.fields, tree, file, scope)
    new = rewrite.run()
    stores.rewrite(new, rewrite.own, file, scope)
    if issubclass(cls, CongestionControl):
        new = connection.Rewrite(tuple(rewrite.others)).visit(new)
    module = ast.fix_missing_locations(ast.Module([new], []))
    exec(compile(module, file, "exec"), scope)
    function: Callable[..., Any] = scope.pop(f"_plain_{name}")
    return function


class _Rewrite(ast.NodeTransformer):
    """Change `self.x` to fields of a record, methods to functions, `queue.random()` to a draw."""

    def __init__(
        self,
        cls: type[Custom],
        methods: tuple[str, ...],
        fields: tuple[str, ...],
        tree: ast.FunctionDef,
        file: str,
        scope: dict[str, Any],
    ) -> None:
        self.cls, self.methods, self.fields = cls, methods, fields
        self.tree, self.file, self.scope = copy.deepcopy(tree), file, scope
        names = [one.arg for one in tree.args.args]
        if not names or tree.decorator_list:
            raise self._refusal(tree, f"{tree.name} has a decorator, or no self")
        self.own, self.others = names[0], names[1:]
        self.kind = kind_of(cls)
        names_of = (*(self.kind.seen.names or ()), *self.kind.more)
        seen = [PACKET.names, names_of] if tree.name in OF_PACKETS else [names_of]
        known = zip(self.others, seen, strict=False) if tree.name in self.kind.hooks else ()
        self.known = {name: tuple(fields or ()) for name, fields in known}

    def run(self) -> ast.FunctionDef:
        """Return the changed function, called _plain_NAME."""
        new = self.tree
        new.body = [self.visit(one) for one in new.body]
        new.name = f"_plain_{new.name}"
        new.returns = None
        for one in new.args.args:
            one.annotation = None
        return new

    def _refusal(self, node: ast.stmt | ast.expr, text: str) -> InputError:
        return InputError(f"compiled: {self.file}:{node.lineno}: {text}")

    def _lacks(self, attribute: str) -> bool:
        """Return True if the class does not have the method that an attribute needs."""
        method = self.kind.needed.get(attribute)
        return method is not None and method not in self.methods

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change calls of methods and of random()."""
        match node.func:
            case ast.Attribute(ast.Name(own), name) if own == self.own and name in self.methods:
                function = ast.Name(f"_method_{name}", ast.Load())
                first = ast.Name(self.own, ast.Load())
                node = ast.copy_location(
                    ast.Call(function, [first, *node.args], node.keywords), node
                )
                node.args[1:] = [self.visit(one) for one in node.args[1:]]
                return node
            case ast.Attribute(ast.Name(own), "random") if own in self.others and not node.args:
                function = ast.Name("_draw", ast.Load())
                queue = ast.Name(own, ast.Load())
                return ast.copy_location(ast.Call(function, [queue], []), node)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Change constants of the class to global names, and refuse unknown attributes."""
        match node:
            case ast.Attribute(ast.Name(own), name) if own == self.own and name not in self.fields:
                if not isinstance(node.ctx, ast.Load) or not hasattr(self.cls, name):
                    raise self._refusal(node, f"self.{name} is not assigned in start")
                self.scope[f"_constant_{name}"] = getattr(self.cls, name)
                return ast.copy_location(ast.Name(f"_constant_{name}", node.ctx), node)
            case ast.Attribute(ast.Name(own), name) if own in self.others and name[0] == "_":
                raise self._refusal(node, f"{own}.{name} is not for use")
            case ast.Attribute(ast.Name(own), name) if own in self.others and self._lacks(name):
                method = self.kind.needed[name]
                raise self._refusal(node, f"{own}.{name} needs the method {method} in the class")
            case ast.Attribute(ast.Name(own), name) if own in self.known:
                if name not in self.known[own]:
                    fields = [one for one in self.known[own] if one[0] != "_"]
                    raise self._refusal(node, f"{own} has no {name}{near(name, fields)}")
                if not isinstance(node.ctx, ast.Load) and name not in self.kind.settable:
                    raise self._refusal(node, f"{own}.{name} cannot be set")
        return self.generic_visit(node)
