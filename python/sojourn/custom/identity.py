"""Names and sources of classes that are written in Python: how another process finds them.

A class has a name, FILE.py:CLASS or MODULE:CLASS, and a hash of its source. An edited class has the
same name and another hash, so that results of different versions are never confused.
"""

import ast
import hashlib
import importlib
import inspect
import linecache
import sys
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near, shown
from sojourn._util.reading import PATH_MAX
from sojourn.custom import trust

T = TypeVar("T")

HASH_DIGITS = 16
"""Length of the hash of a source, in hexadecimal digits."""

MAIN = ("__main__", "__mp_main__")
"""Names of the module of a script or a notebook, which other processes cannot import."""


@dataclass(frozen=True)
class Source:
    """Source of a class: the text of its module, or of the class with the names that it uses."""

    module: str
    file: str
    text: str
    missing: str = ""
    """Why the text is not enough for another process; empty if it is."""

    @property
    def digest(self) -> str:
        """The hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:HASH_DIGITS]


_classes: dict[str, dict[str, type]] = {}
"""Classes by name, and by the hash of their source; the last one is the current version."""

_sources: dict[type, Source] = {}
"""Sources of these classes."""

_paths: dict[str, str] = {}
"""Path, as it was written, of each module that was loaded from a file."""


def register(cls: type) -> tuple[str, str]:
    """Make a class known by its name; return the name and the hash of its source."""
    if cls not in _sources:
        _sources[cls] = _source_of(cls)
    name = f"{_paths.get(cls.__module__, cls.__module__)}:{cls.__qualname__}"
    digest = _sources[cls].digest
    versions = _classes.setdefault(name, {})
    versions.pop(digest, None)
    versions[digest] = cls
    return name, digest


def load(name: str, kinds: tuple[type[T], ...]) -> type[T]:
    """Return the class `name`, a subclass of one of `kinds`.

    Raises InputError if there is none.
    """
    first: InputError | None = None
    for kind in kinds:
        try:
            find(name, kind)
        except InputError as error:
            first = first or error
            continue
        cls = version(name, None)[1]
        if issubclass(cls, kind):
            return cls
    raise first or InputError(f"{shown(name)}: of another kind")


def find(name: str, kind: type) -> None:
    """Look up the class `name`, a subclass of `kind`, and load it if needed.

    Raises InputError if there is none, or only a file without trust names it.
    """
    place, _, qualname = name.rpartition(":")
    if name not in _classes:
        trust.check(name)
    if place.endswith(".py"):
        module = _load_file(place)
    elif name in _classes:
        return
    elif not all(part.isidentifier() for part in place.split(".")):
        raise InputError(f"{shown(name)}: no module has this name; write FILE.py:CLASS")
    else:
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            reason = brief(str(error))
            raise InputError(f"{shown(name)}: {reason}; write FILE.py:CLASS") from None
    value: Any = module
    for part in qualname.split("."):
        value = getattr(value, part, None)
    if not (isinstance(value, type) and issubclass(value, kind)):
        known = [key for key, value in vars(module).items() if _is_own(value, kind, module)]
        hint = near(qualname, known) or (f" (known: {', '.join(known)})" if known else "")
        raise InputError(
            f"{shown(name)}: {brief(place)} has no {kind.__name__} {shown(qualname)}{hint}"
        )
    register(value)


def version(name: str, digest: str | None) -> tuple[str, type]:
    """Return the hash of the source and the class: the version `digest`, or the current one."""
    versions = _classes[name]
    digest = next(reversed(versions)) if digest is None else digest
    if digest not in versions:
        text = f"the source of {name} has changed since this was written ({digest})"
        raise InputError(f"source: {text}; remove source to use the present one")
    return digest, versions[digest]


def source(cls: type) -> Source:
    """Return the source of a class that is registered."""
    return _sources[cls]


def restore(name: str, digest: str, kept: Source) -> None:
    """Make a class of another process known here, from its module or from its source."""
    if digest in _classes.get(name, {}):
        return
    qualname = name.rpartition(":")[2]
    if kept.module not in MAIN and not name.partition(":")[0].endswith(".py"):
        try:
            module = importlib.import_module(kept.module)
        except ImportError:
            module = None
        cls = getattr(module, qualname, None)
        if isinstance(cls, type) and _source_of(cls).digest == digest:
            register(cls)
            return
    module = _execute(kept.text, f"<{name} {digest}>", f"_sojourn_{digest}")
    cls = getattr(module, qualname.rpartition(".")[2], None)
    if not isinstance(cls, type):
        raise InputError(f"{name} has no source that another process can use")
    _sources[cls] = kept
    versions = _classes.setdefault(name, {})
    versions[digest] = cls


def lines_of(cls: type) -> tuple[str, ast.ClassDef] | None:
    """Return the file and the syntax tree of a class; None if its source is not available."""
    for value in vars(cls).values():
        if isinstance(value, types.FunctionType):
            file, line = value.__code__.co_filename, value.__code__.co_firstlineno
            linecache.checkcache(file)
            try:
                tree = ast.parse("".join(linecache.getlines(file, value.__globals__)))
            except SyntaxError:
                return None
            for node in ast.walk(tree):
                if not isinstance(node, ast.ClassDef) or node.name != cls.__name__:
                    continue
                if node.lineno <= line <= (node.end_lineno or line):
                    return file, node
    return None


def closure(function: types.FunctionType) -> dict[str, Any]:
    """Return the variables of enclosing functions that a function uses."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if name != "__class__"}


def _is_own(value: Any, kind: type, module: types.ModuleType) -> bool:
    is_kind = isinstance(value, type) and issubclass(value, kind) and value is not kind
    return is_kind and value.__module__ == module.__name__


def _source_of(cls: type) -> Source:
    """Return the source of a class."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if cls.__module__ not in MAIN and file is not None and "<locals>" not in cls.__qualname__:
        try:
            return Source(cls.__module__, file, Path(file).read_text(encoding="utf-8"))
        except OSError:
            pass
    lines = lines_of(cls)
    if lines is None:
        codes = [f.__code__ for f in vars(cls).values() if isinstance(f, types.FunctionType)]
        text = repr([(c.co_name, c.co_code.hex(), c.co_names, repr(c.co_consts)) for c in codes])
        return Source(cls.__module__, "", f"# {text}", f"the source of {cls.__name__} is not known")
    text, missing = _standalone(cls, lines)
    return Source(cls.__module__, lines[0], text, missing)


def _standalone(
    cls: type, source: tuple[str, ast.ClassDef], within: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the text of a class after definitions of the global names that it uses.

    `within` has the names whose definitions contain this one. The second value says what cannot be
    defined; it is empty if everything can.
    """
    scope: dict[str, Any] = {}
    for function in vars(cls).values():
        if isinstance(function, types.FunctionType):
            scope |= {**function.__globals__, **closure(function)}
    lines, failed = _definitions(source[1], scope, (*within, cls.__name__))
    why = f"{cls.__name__} uses {failed[0]}, which another process cannot import" if failed else ""
    return "\n".join([*lines, ast.unparse(source[1]), ""]), why


def _definitions(
    tree: ast.AST, scope: dict[str, Any], within: tuple[str, ...]
) -> tuple[list[str], list[str]]:
    """Return definitions of the global names that `tree` uses, and the names that have none."""
    lines, failed = [], []
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name in sorted((used & scope.keys()).difference(within)):
        line = _definition(name, scope[name], within)
        lines.append(line or "")
        if line is None:
            failed.append(name)
    return lines, failed


def _definition(name: str, value: Any, within: tuple[str, ...]) -> str | None:
    """Return a statement that defines `name` as `value`; None if there is none."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}"
    home, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", ".")
    if home in sys.modules and home not in MAIN and "." not in qualname:
        return f"from {home} import {qualname} as {name}"
    if isinstance(value, types.FunctionType):
        return _function(value, within) if value.__name__ == name else None
    if isinstance(value, type):
        source = lines_of(value) if value.__name__ == name else None
        text, missing = _standalone(value, source, within) if source else ("", "no source")
        return None if missing else text.rstrip()
    try:
        equal = ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, MemoryError, TypeError):
        return None
    return f"{name} = {value!r}" if equal is True else None


def _function(value: types.FunctionType, within: tuple[str, ...]) -> str | None:
    """Return the text of a function of a script or notebook after what it uses."""
    try:
        text = textwrap.dedent(inspect.getsource(value))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError):
        return None
    lines, failed = _definitions(tree, value.__globals__, (*within, value.__name__))
    return None if failed else "\n".join([*lines, text.rstrip()])


def _load_file(path: str) -> types.ModuleType:
    """Return the module of a Python file, executed again if the file has changed."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        there = path if len(path) <= PATH_MAX and path.isprintable() else brief(path)
        raise InputError(f"{there}: {reason}") from None
    digest = Source("", path, text).digest
    name = f"_sojourn_file_{hashlib.sha256(f'{path} {digest}'.encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        _paths[name] = path
        try:
            _execute(text, path, name)
        except Exception as error:
            line = _line_in(error, path)
            raise InputError(f"{path}{line}: {type(error).__name__}: {error}") from None
    return sys.modules[name]


def _line_in(error: BaseException, file: str) -> str:
    """Return ":LINE" for the last line of `file` in the traceback of `error`."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    line, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def _execute(text: str, file: str, name: str) -> types.ModuleType:
    """Execute a source as the module `name`."""
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    if not Path(file).exists():
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module
