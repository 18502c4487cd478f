"""Rows of stores without holding all of them in memory: named columns, and each row once.

Parts are read in blocks of some megabytes, and of each block only the columns that a query needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn._util.lazy import Lazy
from sojourn.sweeps.store import KINDS

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

ROW = "//row"
"""Name of the column with the number of a row: in the order of the parts, from 0."""

BLOCK_BYTES = 4_000_000
"""Size of the parts that are read together, unless one is larger. A row has some 200 bytes."""


@dataclass(frozen=True)
class Parts:
    """Rows of parts of stores.

    Attributes
    ----------
    paths : tuple of Path
        The parts.
    """

    paths: tuple[Path, ...]

    @cached_property
    def _schemas(self) -> list["pl.Schema"]:
        """Columns of each part. Raises InputError if one is not a part of a store."""
        schemas = []
        for path in self.paths:
            schema = pl.Schema(pl.read_parquet_schema(path))
            for name, kinds in KINDS.items():
                if str(schema.get(name)) not in kinds:
                    fault = f"its column {name} is missing or of another type"
                    raise InputError(f"{path}: is not a part of a store of sojourn ({fault})")
            schemas.append(schema)
        return schemas

    @cached_property
    def schema(self) -> "pl.Schema":
        """Columns of all parts, with a type that holds the values of each part."""
        different = dict.fromkeys(tuple(schema.items()) for schema in self._schemas)
        empty = [pl.DataFrame(schema=dict(one)) for one in different]
        try:
            whole = pl.concat(empty, how="diagonal_relaxed") if empty else pl.DataFrame()
        except pl.exceptions.PolarsError as error:
            text = f"the columns of its parts differ: {brief(str(error))}"
            raise InputError(f"{self.paths[0].parent}: {text}") from None
        return whole.schema

    @cached_property
    def _groups(self) -> list[tuple[int, int]]:
        """Ends of the groups of neighbours in `paths` that have equal columns and make a block."""
        groups: list[tuple[int, int]] = []
        first, size = 0, 0
        for i, path in enumerate(self.paths):
            size += path.stat().st_size
            if i > first and (size > BLOCK_BYTES or self._schemas[i] != self._schemas[first]):
                groups.append((first, i))
                first, size = i, path.stat().st_size
        return [*groups, (first, len(self.paths))] if self.paths else []

    @cached_property
    def _starts(self) -> list[int]:
        """Number of the first row of each block, and the number of all rows."""
        counts = (block.select(pl.len()).collect().item() for block in self.blocks())
        return [0, *accumulate(counts)]

    @property
    def height(self) -> int:
        """Number of rows."""
        return self._starts[-1]

    def _block(self, first: int, last: int, **options: Any) -> "pl.LazyFrame":
        """Return the rows of a group with the columns of `schema`; `options` are of Polars."""
        own = self._schemas[first]
        rows = pl.scan_parquet(list(self.paths[first:last]), **options)
        columns = (
            pl.col(name).cast(kind) if name in own else pl.lit(None, kind).alias(name)
            for name, kind in self.schema.items()
        )
        return rows.select(*options.values(), *columns)

    def blocks(self) -> list["pl.LazyFrame"]:
        """Return the rows block by block, with the columns of `schema`."""
        return [self._block(first, last) for first, last in self._groups]

    def numbered(self) -> list["pl.LazyFrame"]:
        """Return the blocks with the column `ROW`, which counts from 0 in each."""
        return [self._block(first, last, row_index_name=ROW) for first, last in self._groups]

    def _select(self, *columns: "pl.Expr") -> "pl.DataFrame":
        """Return columns of all rows."""
        return pl.concat([block.select(*columns).collect() for block in self.blocks()])

    @cached_property
    def axes(self) -> list[str]:
        """Names of all axes."""
        texts = self._select(pl.col("axes").unique())["axes"].unique().sort()
        lists = (msgspec.json.decode(text, type=list[str]) for text in texts)
        return list(dict.fromkeys(name for names in lists for name in names))

    def hashes(self) -> "pl.DataFrame":
        """Return for each row its number `ROW` and hashes of its key, of key and labels, of all.

        The hashes are `key`, `run` and `row`. Rows with equal hashes are the same row. Lists are
        not part of them, since they cannot be compared.
        """
        plain = [name for name, kind in self.schema.items() if not kind.is_nested()]
        whole = pl.struct(plain).hash().alias("row")
        return self._select(pl.col("key").hash(), self._run, whole).with_row_index(ROW)

    @property
    def _run(self) -> "pl.Expr":
        """Hash of key and labels."""
        return pl.struct("key", *self.axes).hash().alias("run")

    def chosen(self, numbers: "pl.Series") -> Iterator["pl.DataFrame"]:
        """Yield the rows with these numbers (`ROW`, ascending), part by part."""
        ordered, start = numbers.to_numpy(), 0
        for i in range(len(self.paths)):
            part = self._block(i, i + 1)
            end = start + part.select(pl.len()).collect().item()
            first, last = ordered.searchsorted((start, end))
            if first < last:
                yield part.collect()[ordered[first:last] - start]
            start = end

    def once(self) -> list["pl.LazyFrame"]:
        """Return the blocks without rows that equal an earlier one."""
        each = [block.select(self._run).collect()["run"].to_numpy() for block in self.blocks()]
        runs = np.concatenate(each)
        runs.sort()
        if not (runs[1:] == runs[:-1]).any():
            return self.blocks()
        hashes = self.hashes()
        again = hashes.filter(~pl.struct("run", "row").is_first_distinct())[ROW]
        return [
            block.filter(~(pl.col(ROW) + start).is_in(again.implode())).drop(ROW)
            for block, start in zip(self.numbered(), self._starts, strict=False)
        ]
