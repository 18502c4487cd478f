"""What a run gave: summaries, NumPy columns, polars frames, Parquet files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn import _sojourn
from sojourn._util.files import filling
from sojourn._util.html import html
from sojourn._util.units import counted
from sojourn.result import folders
from sojourn.result.folders import FILES, TABLES

if TYPE_CHECKING:
    import polars as pl

Array: TypeAlias = npt.NDArray[Any]
Table: TypeAlias = Literal["flows", "links", "series", "groups", "tape", "fct", "queries"]

SCHEMA = "1"
"""The version of the columns of frames and files; it grows when one changes its meaning."""

FATES = ("sent", "full", "early", "late")
"""What became of a packet: sent, or lost on arrival to a full buffer, on arrival by the law's
decision, or later than that."""


class Columns(Mapping[str, Array]):
    """Columns of equal length by name, as items or as attributes; the unit ends each name."""

    def __init__(self, columns: Mapping[str, Array], missing: str = "") -> None:
        self._columns = dict(columns)
        self._missing = missing

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise KeyError(self._absent(name))
        return self._columns[name]

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self._columns:
            raise AttributeError(name if name.startswith("_") else self._absent(name))
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def __repr__(self) -> str:
        rows = max((len(column) for column in self._columns.values()), default=0)
        return f"Columns({', '.join(self._columns)}; {counted(rows, 'row')})"

    def _absent(self, name: str) -> str:
        return f"no column {name!r}: {self._missing if not self._columns else repr(self)}"


class Record(dict[str, Any]):
    """The summary of a link or a flow: numbers by name, as items or as attributes.

    `series` holds its columns over time, `tape` (of a link) a row per packet.
    """

    def __init__(self, summary: Mapping[str, Any], series: Columns, tape: Columns) -> None:
        super().__init__(summary)
        self.series = series
        self.tape = tape

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name!r} here; there are {', '.join(self)}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, (dict(self), self.series, self.tape)


class Result:
    """The outcome of a run: what `run --json` prints, with the columns behind it.

    `scenario` is canonical: every default is there. `links` and `flows` are by name, and so are
    `groups`: what was declared together, with its series. `time_s` is the time of each sample of
    the series, `completions` a row per finished transfer, `queries` a row per answered query of a
    source that makes them (its group's first flow stands for it).
    """

    def __init__(
        self, summary: str, columns: Mapping[str, Array], command: Sequence[str] = ()
    ) -> None:
        tree = json.loads(summary)
        tree.pop("warnings", None)
        self.version: str = _sojourn.version()
        self.command = tuple(command)
        self.scenario: dict[str, Any] = tree["scenario"]
        self._summary = tree

        def under(prefix: str, missing: str) -> Columns:
            found = {k.removeprefix(prefix): v for k, v in columns.items() if k.startswith(prefix)}
            return Columns({k.replace("gauge/", "gauge_"): v for k, v in found.items()}, missing)

        no_series = "the scenario has no `sample`, so no series were kept"
        no_tape = "the scenario has no `tape`, so no rows were kept"
        none = Columns({}, "only links have a tape")
        self.links = {
            name: Record(s, under(f"links/{name}/", no_series), under(f"tape/{name}/", no_tape))
            for name, s in tree["links"].items()
        }
        # One pass over the columns: there can be three for each of very many flows.
        of_flow: dict[str, dict[str, Array]] = {flow["name"]: {} for flow in tree["flows"]}
        for key, column in columns.items():
            if key.startswith("flows/"):
                _, name, what = key.split("/")
                of_flow[name][what] = column
        self.flows = {
            flow["name"]: Record(flow, Columns(of_flow[flow["name"]], no_series), none)
            for flow in tree["flows"]
        }
        members: dict[str, list[str]] = {}
        for flow in tree["flows"]:
            members.setdefault(flow["group"], []).append(flow["name"])
        self.groups = {
            group["name"]: Record(
                {"flows": members.get(group["name"], [])},
                under(f"groups/{group['name']}/", no_series),
                none,
            )
            for group in self.scenario["flows"]
        }
        self.time_s: Array = columns.get("series/time_s", np.empty(0))
        self.completions = under("fct/", "")
        self.queries = under("query/", "the scenario has no source of queries (incast)")

    @property
    def summary(self) -> dict[str, Any]:
        """The object that `sojourn run --json` prints; `warnings` only if there are any."""
        told = {"warnings": self.warnings} if self.warnings else {}
        return {"sojourn": self.version, **told, **self._summary}

    @cached_property
    def warnings(self) -> list[str]:
        """What the scenario says that is hardly meant, like prio for flows of one class."""
        from sojourn.scenario.advice import warnings_of

        return warnings_of(self.scenario)

    @property
    def sampled(self) -> bool:
        """Whether the scenario asked for series."""
        return "sample" in self.scenario

    def __repr__(self) -> str:
        return (
            f"Result({self.scenario['name']}: {counted(len(self.links), 'link')}, "
            f"{counted(len(self.flows), 'flow')}, "
            f"{self.scenario['duration']}, seed {self.scenario['seed']})"
        )

    def _repr_html_(self) -> str | None:
        """Return the tables of the run as a notebook shows them."""
        return html(self)

    def frame(self, table: Table = "flows") -> "pl.DataFrame":
        """Give a table as a polars frame: flows, links, series, groups, tape, fct or queries.

        flows and links have a row for each; series a row per sample of each (`kind` says of
        which); groups the same of the groups of flows; tape a row per packet and link; fct a row
        per finished transfer, queries one per answered query, both from the start of the run.
        """
        match table:
            case "flows":
                return self._rows(self.flows, ["name", "group", "kind"])
            case "links":
                return self._rows(self.links, ["name", "qdisc"])
            case "series":
                return self._series({"link": self.links, "flow": self.flows})
            case "groups":
                return self._series({"group": self.groups})
            case "tape":
                return self._tape()
            case "fct":
                return self._transfers(self.completions)
            case "queries":
                return self._transfers(self.queries)
        raise ValueError(f"no table {table!r}: there are {', '.join(TABLES)}")

    def _rows(self, records: Mapping[str, Record], first: Sequence[str]) -> "pl.DataFrame":
        """Give summaries as rows: what they are first, then the numbers by name.

        A number that is defined for no row is still a number, so that the frames of different runs
        have the same types.
        """
        import polars as pl

        rows = [{"name": name, **record} for name, record in records.items()]
        frame = pl.DataFrame(rows, infer_schema_length=None).select(*first, pl.exclude(first))
        return frame.with_columns(pl.col(pl.Null).cast(pl.Float64))

    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write summary.json and the tables as Parquet files, with their provenance.

        Either all files are replaced or, if writing fails, none. A folder that holds something
        else than an earlier result of the same scenario is refused (InputError), unless `force`;
        even then only files of the names that are written here are replaced.
        """
        engine = "live" if "live" in self._summary else "sim"
        folders.claim_run(Path(directory), self.scenario, engine, force=force)
        tables: list[Table] = ["flows", "links", "fct"]
        tables += ["series", "groups"] if self.sampled else []
        tables += ["tape"] if self.scenario["tape"] else []
        tables += ["queries"] if self.queries else []
        with filling(Path(directory), FILES, folders.is_own) as part:
            text = json.dumps(self.summary, indent=2)
            (part / "summary.json").write_text(text + "\n", encoding="utf-8")
            for table in tables:
                frame = self.frame(table)
                frame.write_parquet(part / f"{table}.parquet", metadata=self.provenance())

    def provenance(self) -> dict[str, str]:
        """Say where the numbers come from: written into every file."""
        return {
            "sojourn.schema": SCHEMA,
            "sojourn.version": self.version,
            "sojourn.scenario": json.dumps(self.scenario),
            "sojourn.seed": str(self.scenario["seed"]),
            "sojourn.command": json.dumps(self.command),
        }

    def _transfers(self, columns: Columns) -> "pl.DataFrame":
        import polars as pl

        named = {**columns, "flow": self._names(columns["flow"])} if columns else {"flow": []}
        return pl.DataFrame(named)

    def _names(self, index: Array) -> "pl.Series":
        """Turn indices of flows into their names."""
        return _words(index, list(self.flows))

    def _series(self, kinds: Mapping[str, Mapping[str, Record]]) -> "pl.DataFrame":
        import polars as pl

        frames = [
            pl.DataFrame({"time_s": self.time_s, **record.series}).select(
                pl.lit(kind).alias("kind"), pl.lit(name).alias("name"), pl.all()
            )
            for kind, records in kinds.items()
            for name, record in records.items()
            if record.series
        ]
        if not frames:
            return pl.DataFrame({"kind": [], "name": [], "time_s": []})
        # Where no packet left, there is no mean of their waiting times: null, not NaN.
        return pl.concat(frames, how="diagonal").with_columns(pl.col(pl.Float64).fill_nan(None))

    def _tape(self) -> "pl.DataFrame":
        import polars as pl

        frames = []
        for name, link in self.links.items():
            if columns := dict(link.tape):
                flow, fate = self._names(columns.pop("flow")), columns.pop("fate")
                frame = pl.DataFrame({"flow": flow, **columns, "fate": _words(fate, FATES)})
                frames.append(frame.select(pl.lit(name).alias("link"), pl.all()))
        return pl.concat(frames) if frames else pl.DataFrame({"link": []})


def _words(index: Array, words: Sequence[str]) -> "pl.Series":
    """Turn indices into `words`, which take no more room than the indices."""
    import polars as pl

    return pl.Series(words, dtype=pl.Enum(words)).gather(index)
