"""Claims of runs: processes that write into one store share the runs between them.

A claim is a lock of one byte of the file `.claims` in the store, whose position is taken from the
key of the run. The kernel releases it when the process ends, so no claim is ever left behind, and
the file stays empty. Locks of this kind (POSIX record locks, fcntl) also hold between the hosts of
NFS and of other file systems that support them. Without them every claim succeeds.
"""

import errno
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

NAME = ".claims"
"""Name of the file."""

DIGITS = 15
"""Hexadecimal digits of a key that give its position: 60 bits of the 63 of a file offset."""

MERGE = 0
"""Position of the claim to merge parts; claims of runs have higher positions."""

TAKEN = (errno.EAGAIN, errno.EACCES)
"""Errors of a lock that another process has."""


@dataclass
class _File:
    """Open file of claims. Closing any descriptor of it would release the locks of this process."""

    fd: int
    users: int = 0
    owners: dict[int, object] = field(default_factory=dict)


_files: dict[tuple[int, int], _File] = {}
"""Open files of this process, by device and inode."""

_guard = threading.Lock()


class Claims:
    """Claims of this process, or of one campaign in it, in the store in `directory`.

    They are released at the end of the context.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._identity: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        with _guard:
            self._identity = _open(self._path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _guard:
            if self._identity is None:
                return
            file = _files[self._identity]
            for place in [place for place, owner in file.owners.items() if owner is self]:
                _unlock(file, place)
            file.users -= 1
            if not file.users:
                os.close(file.fd)
                del _files[self._identity]
            self._identity = None

    def take(self, key: str) -> bool:
        """Claim the run with this key; return False if another campaign has it."""
        return self.take_place(1 + int(key[:DIGITS], 16))

    def take_place(self, place: int) -> bool:
        """Claim a position of the file."""
        with _guard:
            if self._identity is None:
                return True
            file = _files[self._identity]
            if place in file.owners:
                return file.owners[place] is self
            if not _lock(file.fd, place):
                return False
            file.owners[place] = self
            return True

    def release(self, keys: Iterable[str]) -> None:
        """Release the claims of runs."""
        with _guard:
            if self._identity is None:
                return
            file = _files[self._identity]
            for key in keys:
                place = 1 + int(key[:DIGITS], 16)
                if file.owners.get(place) is self:
                    _unlock(file, place)


def _open(path: Path) -> tuple[int, int] | None:
    """Open the file, or use it if this process has it open. None if that is impossible."""
    try:
        import fcntl

        assert fcntl  # missing on Windows
        status = path.lstat() if path.exists() else None
        identity = None if status is None else (status.st_dev, status.st_ino)
        if identity not in _files:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            opened = os.fstat(fd)
            identity = opened.st_dev, opened.st_ino
            _files[identity] = _File(fd)
    except (ImportError, OSError):
        return None
    assert identity is not None
    _files[identity].users += 1
    return identity


def _lock(fd: int, place: int) -> bool:
    """Lock a byte; return False if another process has it, True if there are no locks."""
    import fcntl

    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError as error:
        return error.errno not in TAKEN
    return True


def _unlock(file: _File, place: int) -> None:
    import fcntl

    del file.owners[place]
    with suppress(OSError):  # a file system without locks
        fcntl.lockf(file.fd, fcntl.LOCK_UN, 1, place)
