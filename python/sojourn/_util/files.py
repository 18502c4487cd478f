"""Output files: check that they can be written, and write them atomically."""

import errno
import io
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sojourn._sojourn import InputError
from sojourn._util.inputs import why

if TYPE_CHECKING:
    import polars as pl

NAME_MAX = 40
"""Characters of a file's name in the name of its temporary file."""

FULL = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Errors of a device that has no room for valid output, or fails."""

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""First part of the path of a URL. A drive of Windows has a single letter."""

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class OutputError(OSError):
    """Output could not be written for lack of room, or by a fault of the device."""


def check_file(path: Path, endings: tuple[str, ...] = ()) -> None:
    """Raise InputError if the file `path` could not be written now."""
    _refuse_url(path)
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{path}: the name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise InputError(f"{path}: is a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: permission denied")
    if _device_flags(path) is None:
        _probe(path.parent, path)


def check_directory(path: Path) -> None:
    """Raise InputError if files could not be written into the directory `path` now."""
    _refuse_url(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is not a directory")
    parent = path
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    _probe(parent, path)


def _probe(directory: Path, path: Path) -> None:
    """Raise InputError about `path` if no file can be created in `directory`."""
    with naming(path), tempfile.TemporaryFile(dir=directory):
        pass


def _refuse_url(path: Path) -> None:
    """Raise InputError if `path` is a URL, which would become a local folder like "s3:"."""
    scheme, *rest = Path(path).parts or ("",)
    if URL.fullmatch(scheme):
        url = f"{scheme}//{'/'.join(rest)}"
        raise InputError(f"{url}: is a URL; write to a local path, and copy the files from there")


def parquet(frame: "pl.DataFrame", **options: Any) -> bytes:
    """Return a frame as the contents of a Parquet file.

    Polars writes to a file itself, and its errors do not say that the disk is full.
    """
    whole = io.BytesIO()
    frame.write_parquet(whole, **options)
    return whole.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8, as it is) as `replacing` does."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new binary file, which replaces `path` on success.

    A device or pipe is written to instead. The new file is in the same directory, has a random
    name, and is never opened by its name again. So another user to whom the directory belongs
    cannot redirect the output into a file elsewhere by a symbolic link.
    """
    with naming(path):
        if (device := open_device(path)) is not None:
            with os.fdopen(device, "wb") as stream:
                yield stream
            return
        part, file = create_temporary(path)
        try:
            with file:
                yield file
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def open_new(path: Path) -> BinaryIO:
    """Open a new file that replaces `path` at once, for output that is read while it is written.

    A device or pipe is opened instead. Symbolic links are treated as `replacing` does.

    Raises
    ------
    InputError
        If the file cannot be created.
    """
    with naming(path):
        if (device := open_device(path)) is not None:
            return os.fdopen(device, "wb")
        part, file = create_temporary(path)
        try:
            part.replace(path)
        except OSError:
            file.close()
            part.unlink(missing_ok=True)
            raise
        return file


@contextmanager
def filling(
    directory: Path, names: tuple[str, ...], ours: Callable[[Path], bool]
) -> Iterator[Callable[[str], BinaryIO]]:
    """Yield a function that creates files with these `names` in `directory`; create that too.

    On success, the files replace files of the same names. A file of `names` that was not written is
    removed if `ours` is True for it, so that no file of an earlier run remains. The files are
    created as `replacing` does.
    """
    created: dict[str, tuple[Path, BinaryIO]] = {}

    def create(name: str) -> BinaryIO:
        created[name] = create_temporary(directory / name)
        return created[name][1]

    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
        try:
            yield create
            for _, file in created.values():
                file.close()
            for name in names:
                if name in created:
                    created[name][0].replace(directory / name)
                elif ours(directory / name):
                    (directory / name).unlink(missing_ok=True)
        finally:
            for part, file in created.values():
                with suppress(OSError):  # closing writes what is buffered
                    file.close()
                part.unlink(missing_ok=True)


def create_temporary(path: Path) -> tuple[Path, BinaryIO]:
    """Create a temporary file in the directory of `path`; return its name and the open file.

    The name is random, the file is new, and it has the permissions of any new file.
    """
    part = path.with_name(f".{path.name[:NAME_MAX]}.{secrets.token_hex(8)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY
    return part, os.fdopen(os.open(part, flags, 0o666), "w+b")


def open_device(path: Path, flags: int = 0) -> int | None:
    """Open `path` for writing, with more `flags`, if it is a device or pipe.

    Returns
    -------
    int or None
        The descriptor; None if it is no device or pipe.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    more = _device_flags(path)
    if more is None:
        return None
    fd = os.open(path, os.O_WRONLY | _BINARY | more | flags)
    if stat.S_ISREG(os.fstat(fd).st_mode) and not _is_in_dev(path):  # it was exchanged meanwhile
        os.close(fd)
        return None
    return fd


def _device_flags(path: Path) -> int | None:
    """Return the flags to open `path` if it is a device or pipe, or in /dev; else None.

    A symbolic link is followed if it belongs to this user or to root, such as /dev/stdout.
    """
    flags = _NO_FOLLOW
    try:
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode) and info.st_uid in (0, getattr(os, "geteuid", int)()):
            flags, info = 0, path.stat()
    except OSError:
        return None
    if _is_in_dev(path):  # /dev/stdout can be a regular file, and must not be replaced
        return flags | os.O_APPEND
    return flags if stat.S_ISCHR(info.st_mode) or stat.S_ISFIFO(info.st_mode) else None


def _is_in_dev(path: Path) -> bool:
    """Return True for a path in /dev, except /dev/shm, whose files are ordinary ones in memory."""
    parts = path.absolute().parts
    return parts[1:2] == ("dev",) and parts[2:3] != ("shm",)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Convert an OSError to an InputError about `path`, or to an OutputError if it is full."""
    _refuse_url(path)
    try:
        yield
    except OutputError:  # it names the file
        raise
    except OSError as error:
        if error.errno is not None and error.errno in FULL:
            raise OutputError(error.errno, os.strerror(error.errno), str(path)) from None
        raise InputError(f"{path}: {why(error)}") from None
