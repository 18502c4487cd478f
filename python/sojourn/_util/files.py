"""Output files: check that they can be written, and write them atomically."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn._util.inputs import why


def check_file(path: Path, endings: tuple[str, ...] = ()) -> None:
    """Raise InputError if the file `path` could not be written now."""
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{path}: the name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise InputError(f"{path}: is a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: permission denied")
    _probe(path.parent, path)


def check_directory(path: Path) -> None:
    """Raise InputError if files could not be written into the directory `path` now."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is not a directory")
    parent = path
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    _probe(parent, path)


def _probe(directory: Path, path: Path) -> None:
    """Raise InputError about `path` if no file can be created in `directory`."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise InputError(f"{path}: {why(error)}") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; the file there replaces `path` on success."""
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        with naming(path):
            yield part
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def filling(
    directory: Path, names: tuple[str, ...], ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield an empty directory; on success its files with these `names` replace those there.

    A file of `names` that was not written is removed if `ours` is True for it, so that no file of
    an earlier run remains.
    """
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".sojourn-", dir=directory))
    try:
        with naming(directory):
            yield part
            for name in names:
                if (part / name).exists():
                    (part / name).replace(directory / name)
                elif ours(directory / name):
                    (directory / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Convert an OSError to an InputError about `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {why(error)}") from None
