"""Result store: a directory of Parquet parts with the rows of finished runs.

Each part is written to a temporary file and renamed; its name is the hash of its contents. A kill
therefore never leaves a partial part, several processes may write at the same time, and damaged
parts are detected.
"""

import hashlib
import io
import math
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.files import create_temporary, naming, parquet
from sojourn._util.inputs import brief
from sojourn._util.parquet import check_table, read_faults
from sojourn.result.folders import PART
from sojourn.scenario.advice import StoreWarning, level_outside
from sojourn.sweeps.claims import MERGE, Claims

if TYPE_CHECKING:
    import polars as pl

Row: TypeAlias = Mapping[str, Any]

LOOSE = 64
"""Number of small parts after which they are merged."""

LOOKS = 1000
"""Largest number of attempts to read a directory that changes; writers add parts every 0.1 s."""

FEW = 64
"""Number of rows from which a part is not merged."""

DISTRIBUTIONS = ("sojourn_values", "fct_values", "delay_values", "frame_delay_values")
"""Last parts of the names of columns of distributions."""

DISTRIBUTION = r"^(\d{1,18}:\d{1,18}(,[1-9]\d{0,17}:\d{1,18})*)?$"
"""Text of a distribution, as `Distribution.parse` reads it."""

KINDS = dict.fromkeys(("key", "engine", "axes", "measured"), ("String",)) | {
    "seed": ("Int64", "UInt64")
}
"""Columns of every part (`sojourn.sweeps.runner.RUN_COLUMNS`) with their allowed types."""

TEXTS = ("warned", "failure_kind", "failure")
"""Measured columns of text, of runs on real packets and of failed runs.

Others have numbers, except distributions, whose names end with `_values`.
"""

LARGEST = 1e100
"""Largest number in a column; squares of larger ones overflow."""

TEMPORARY = (".part-*", ".part.*", "._sweep-*.part*")
"""Patterns for names of temporary files of `Store` and `sweeps.spec.run_sweep`."""

ASIDE = "_damaged"
"""Name of the folder for damaged parts."""

FAILED = "_failed"
"""Name of the folder for failed runs, a store itself. Programs that read parts do not read it."""


class Store:
    """Rows of finished runs in `directory`, which is created by the first write.

    `damaged` lists the parts that were found damaged and moved to a subfolder; their runs count as
    not executed.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.damaged: list[str] = []
        self._loose = 0
        self._is_open = False
        self._known: set[str] = set()
        self._large: set[str] = set()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Create the directory if needed, and lock it for writing together with other writers.

        Temporary files of writers that were killed are removed first, unless another writer is
        active. The lock is a shared `flock` of the directory, so it ends with the process. Inside
        another `writing` block of this Store, nothing happens.

        Warns
        -----
        StoreWarning
            If another writer is active. They share the runs (see `sojourn.sweeps.claims`).
        """
        if self._is_open:
            yield
            return
        with naming(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        fd, alone = _lock(self.directory)
        if fd is None:
            yield
            return
        try:
            if alone:
                self._remove_temporary()
            _share(fd)
            if not alone:
                warnings.warn(
                    f"{self.directory}: another process of sojourn writes to this folder; they "
                    "share the runs",
                    StoreWarning,
                    stacklevel=level_outside(),
                )
            self._is_open = True
            yield
        finally:
            self._is_open = False
            os.close(fd)

    def _remove_temporary(self) -> None:
        """Remove the temporary files in the directory."""
        for pattern in TEMPORARY:
            for path in self.directory.glob(pattern):
                with suppress(OSError):  # a directory that cannot be written to
                    path.unlink()

    def rows(self) -> "pl.DataFrame":
        """Return all rows without duplicates, in an order independent of the order of writing."""
        self._known = set()
        return self.news()

    def news(self, keys: Collection[str] | None = None) -> "pl.DataFrame":
        """Return the rows of parts that others have added since the last call of this or `rows`.

        Rows of merged parts are returned again. With `keys`, rows of other runs are left out, and
        not held in memory.
        """
        import polars as pl

        wanted = None if keys is None else pl.Series(list(keys), dtype=pl.String).implode()

        def of_part(path: Path) -> "pl.DataFrame | None":
            frame = self._read(path)
            if frame is None or wanted is None:
                return frame
            chosen = frame.filter(pl.col("key").is_in(wanted))
            return chosen if len(chosen) else None

        for _ in range(LOOKS):
            parts = self._listing()
            try:
                read = [of_part(path) for path in parts if path.name not in self._known]
            except FileNotFoundError:  # merged meanwhile
                continue
            break
        else:
            raise self._restless()
        self._known |= {path.name for path in parts}
        frames = [frame for frame in read if frame is not None]
        if not frames:
            return pl.DataFrame()
        try:
            whole = pl.concat(frames, how="diagonal_relaxed")
        except pl.exceptions.PolarsError as error:
            text = f"the columns of its parts differ: {brief(str(error))}"
            raise InputError(f"{self.directory}: {text}") from None
        whole = whole.select(sorted(whole.columns))
        # Lists cannot be compared: rows with the same key and labels are the same run.
        plain = [name for name in whole.columns if not whole.schema[name].is_nested()]
        return whole.unique(plain, keep="first", maintain_order=True).sort(plain, nulls_last=True)

    def parts(self) -> list[Path]:
        """Return the parts whose contents have the hash of their names.

        The contents are not held in memory. Damaged parts are moved as `rows` does.
        """
        for _ in range(LOOKS):
            try:
                whole = [path for path in self._listing() if self._is_whole(path)]
            except FileNotFoundError:  # merged meanwhile
                continue
            return whole
        raise self._restless()

    def put(self, rows: Sequence[Row]) -> None:
        """Write rows durably (fsync).

        Raises InputError if the operating system reports an error; earlier rows are not affected.
        """
        import polars as pl

        self.put_frame(pl.DataFrame(list(rows), infer_schema_length=None))

    def put_frame(self, frame: "pl.DataFrame") -> None:
        """Write the rows of a frame like `put`."""
        import polars as pl

        # A column without any value becomes Float64, so that it has one type in all parts.
        self._write(frame.with_columns(pl.col(pl.Null).cast(pl.Float64)))
        self._loose += 1
        if self._loose >= LOOSE:
            self.tidy()

    def clear(self) -> None:
        """Remove all parts, and the notes of sweeps (`_sweep-*.json`)."""
        with naming(self.directory):
            notes = self.directory.glob("_sweep-*.json")
            for path in [*self._parts(), *notes, *Store(self.directory / FAILED)._parts()]:
                path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Merge small parts into one, unless another process does."""
        self._loose = 0
        if not self.directory.exists():
            return
        with Claims(self.directory) as claims:
            if claims.take_place(MERGE):
                self._merge()

    def _merge(self) -> None:
        import polars as pl

        small: list[tuple[Path, pl.DataFrame]] = []
        for path in self._parts():
            if path.name in self._large:
                continue
            try:
                frame = self._read(path)
            except FileNotFoundError:  # another process is merging
                return
            if frame is not None and len(frame) < FEW:
                small.append((path, frame))
        if len(small) < 2:
            return
        whole = self._write(pl.concat([frame for _, frame in small], how="diagonal_relaxed"))
        for path, _ in small:
            if path != whole:
                path.unlink(missing_ok=True)

    def _listing(self) -> list[Path]:
        """Return the parts at one moment, though other processes write and merge parts.

        A listing made while another process merges parts may lack both the old parts and the new
        one. It is used only if a second listing is the same.
        """
        parts = self._parts()
        for _ in range(LOOKS):
            before, parts = parts, self._parts()
            if parts == before:
                return parts
        raise self._restless()

    def _restless(self) -> InputError:
        return InputError(f"{self.directory}: changes too fast to be read, try again")

    def _is_whole(self, path: Path) -> bool:
        """Return True if a part has the hash of its name; a damaged part is moved."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return _named(digest) == path.name or self._read(path) is not None

    def _parts(self) -> list[Path]:
        """Return the parts; Parquet files with other names are ignored."""
        files = self.directory.glob("*.parquet")
        return sorted(path for path in files if PART.fullmatch(path.name))

    def _read(self, path: Path) -> "pl.DataFrame | None":
        """Read a part. A damaged part is moved to the folder `ASIDE`, and the result is None.

        Raises InputError for a file of another program, which is not touched.
        """
        import polars as pl

        data = path.read_bytes()
        is_whole = _name(data) == path.name
        check_table(path, data)
        if fault := _fault(data, is_whole):
            advice = "another program wrote it, move it out of this folder"
            raise InputError(f"{path}: is not a part of a store of sojourn ({fault}); {advice}")
        if not is_whole:
            aside = self.directory / ASIDE
            with naming(aside):
                aside.mkdir(exist_ok=True)
                path.replace(aside / path.name)
            self.damaged.append(path.name)
            return None
        frame = pl.read_parquet(data)
        if len(frame) >= FEW:
            self._large.add(path.name)
        return frame

    def _write(self, frame: "pl.DataFrame") -> Path:
        data = parquet(frame, compression="zstd")
        with naming(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            part, file = create_temporary(self.directory / "part")
            try:
                with file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                path = self.directory / _name(data)
                self._known.add(path.name)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        return path


def _lock(directory: Path) -> tuple[int | None, bool]:
    """Open `directory` and lock it exclusively if no other process has a lock.

    Returns
    -------
    descriptor
        The open directory, to be locked further and closed; None if it cannot be locked, as on
        some network file systems.
    alone : bool
        True if it is locked.
    """
    try:
        import fcntl

        fd = os.open(directory, os.O_RDONLY)
    except (ImportError, OSError):
        return None, False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return fd, False
    except OSError:
        os.close(fd)
        return None, False
    return fd, True


def _share(fd: int) -> None:
    """Convert the lock of an open directory to a shared one; waits for an exclusive one."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_SH)


def _fault(data: bytes, is_whole: bool) -> str | None:
    """Return the reason why `data` is not a part of a Store; None if it is one, or may have been.

    Damaged data (not `is_whole`) may have been a part unless it is a readable table without any of
    the columns of a part.
    """
    import polars as pl

    try:
        schema = pl.read_parquet_schema(io.BytesIO(data))
        frame = pl.read_parquet(data) if is_whole else pl.DataFrame()
    except read_faults() as error:
        return f"it cannot be read: {brief(str(error))}" if is_whole else None
    if not is_whole:
        return "it has other columns" if not KINDS.keys() & schema.keys() else None
    for name, kind in KINDS.items():
        if str(schema.get(name)) not in kind:
            return f"its column {name} is missing or of another type"
        if frame[name].null_count():
            return f"its column {name} has a row without a value"
    try:
        axes, measured = (_listed(frame[name]) for name in ("axes", "measured"))
    except (msgspec.DecodeError, RecursionError):
        return "its columns axes and measured do not list columns"
    for name in [*axes, *measured]:
        if name not in schema:
            return f"its column {brief(name)} is missing"
        column = schema[name]
        is_text = name in axes or name in TEXTS or name.endswith("_values")
        fits = column == pl.String if is_text else column.is_nested()
        if not (fits or column.is_numeric() or column == pl.Boolean):
            return f"its column {brief(name)} is of another type"
        if name.rpartition(".")[2] in DISTRIBUTIONS and not _has_distributions(frame[name]):
            return f"its column {brief(name)} is not a column of distributions"
        if column.is_float() and frame[name].abs().is_between(LARGEST, math.inf).any():
            return f"its column {brief(name)} has a number out of range"
    return None


def _has_distributions(column: "pl.Series") -> bool:
    """Return True if every value is the text of a distribution, or there is no value."""
    import polars as pl

    if column.null_count() == len(column):
        return True
    return column.dtype == pl.String and bool(column.str.contains(DISTRIBUTION).all())


def _listed(column: "pl.Series") -> list[str]:
    """Return the names in a column of JSON lists of names. Raises DecodeError if it has others."""
    lists = (msgspec.json.decode(text, type=list[str]) for text in column.unique().sort())
    return list(dict.fromkeys(name for names in lists for name in names))


def _name(data: bytes) -> str:
    """Return the file name of a part: the hash of its contents."""
    return _named(hashlib.sha256(data).hexdigest())


def _named(digest: str) -> str:
    return f"{digest[:32]}.parquet"
