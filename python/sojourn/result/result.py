"""Result of a run: summaries, NumPy columns, polars frames, Parquet files."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import msgspec
import numpy as np

from sojourn import _sojourn
from sojourn._util.files import filling, parquet
from sojourn._util.html import html
from sojourn._util.lazy import Lazy
from sojourn._util.look import Look
from sojourn._util.plain import indented
from sojourn._util.public import public
from sojourn._util.units import counted
from sojourn.result import folders
from sojourn.result.distribution import Distribution, middles_s
from sojourn.result.folders import FILES, TABLES
from sojourn.result.values import Array as Array
from sojourn.result.values import Columns as Columns
from sojourn.result.values import Flows, switch_values
from sojourn.result.values import Record as Record
from sojourn.result.values import Values as Values

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    import polars as pl
else:
    mpl, pl = Lazy("matplotlib.figure"), Lazy("polars")

DELAYS = ("sojourn", "delay", "frame_delay")
"""Kinds of distributions of a result."""

Table: TypeAlias = Literal[
    "flows",
    "groups",
    "links",
    "series",
    "group_series",
    "packet_log",
    "fct",
    "queries",
    "delays",
]

SCHEMA = "1"
"""Version of the columns of frames and files; incremented when a column changes its meaning."""

FATES = ("sent", "full", "early", "late", "buffer")
"""Fate of a packet: sent, dropped at enqueue because the buffer was full, dropped at enqueue by the
AQM algorithm, dropped after enqueue, or dropped because a shared buffer had no room."""


@public
class Result:
    """Result of a run.

    Attributes
    ----------
    scenario : dict
        The canonical scenario, with every default.
    links, flows : dict of str to Record
        Summaries and series by name.
    switches : dict of str to Record
        Summaries of switches by name: `buffer_max_bytes`, the largest number of bytes in the shared
        buffer. Their ports are links that also have `dropped_buffer_packets` and `queue_max_bytes`.
        A switch with a queue per class has these two in `classes`, by class.
    groups : dict of str to Record
        The same for groups: the flows that one table of the scenario declares. A group of one flow
        has the name of the flow. `flows` has the names of the flows, the other values equal
        the columns GROUP.name of a sweep: `goodput_bps` and counts are sums over the flows,
        `fct_mean_s` the mean over their transfers, `delay_p99_s` the largest of any flow.
    time_s : ndarray of float, shape (samples,)
        Time of each sample of the series, in seconds. Empty without `sample`.
    completions : Columns
        One row per finished transfer, from the start of the run.
    queries : Columns
        One row per answered query of an incast source, from the start of the run. `flow` is the
        first flow of the group.
    distributions : dict of str to Distribution
        Distributions of delays after the warm-up, by `sojourn/LINK`, `delay/GROUP` and
        `frame_delay/GROUP`: ``result.distributions["sojourn/up"].percentile(99)`` in seconds. Empty
        for runs on real packets, except `sojourn/LINK`.
    command : tuple of str
        Command line of the run, if known.
    version : str
        Version of sojourn that ran the scenario.

    Notes
    -----
    Percentiles of a link are `sojourn_p50_s`, `sojourn_p95_s` and `sojourn_p99_s`, of a group or
    flow `fct_p50_s` and `fct_p99_s` or `delay_p99_s`. For others, `sojourn.metrics` has
    `queueing_delay_percentile_s`, `fct_percentile_s` and `frame_delay_percentile_s`.

    Examples
    --------
    >>> import sojourn as sj
    >>> uplink = sj.Link(rate="10mbit", qdisc=sj.CoDel())
    >>> bulk = sj.Flow(name="bulk", path=["up"], rtt="20ms")
    >>> result = sj.simulate(sj.Scenario(duration="2s", links={"up": uplink}, flows=[bulk]))
    >>> 0 < result.links["up"].utilisation <= 1
    True
    >>> result.frame("flows")["name"].to_list()
    ['bulk']
    """

    def __init__(
        self, summary: str, columns: Mapping[str, Array], command: Sequence[str] = ()
    ) -> None:
        tree = msgspec.json.decode(summary)
        tree.pop("warnings", None)
        self.version: str = _sojourn.version()
        self.command = tuple(command)
        self.scenario: dict[str, Any] = tree["scenario"]
        self._summary = tree

        # One pass over the columns: there can be three for each of very many flows.
        tables: dict[str, dict[str, Array]] = {}
        for key, column in columns.items():
            *table, what = key.split("/", 2)
            name = what.replace("gauge/", "gauge_")
            tables.setdefault("/".join(table), {})[name] = column

        def under(table: str, missing: Columns) -> Columns:
            return Columns(tables[table]) if table in tables else missing

        # Shared: there can be very many flows without series.
        no_series = Columns({}, "the scenario has no `sample`, so no series were recorded")
        no_packet_log = Columns({}, "the scenario has no `packet_log`, so no packets were recorded")
        none = Columns({}, "only links have a packet log")
        self.links = {
            name: Record(
                s, under(f"links/{name}", no_series), under(f"packet_log/{name}", no_packet_log)
            )
            for name, s in tree["links"].items()
        }
        not_sampled = Columns({}, "only links, flows and groups have series")
        self.switches = {
            name: Record(switch_values(s), not_sampled, none)
            for name, s in tree.get("switches", {}).items()
        }
        self.flows = Flows(
            (flow["name"], Record(flow, under(f"flows/{flow['name']}", no_series), none))
            for flow in tree["flows"]
        )
        # The summary shares the records, so that each flow is in memory once.
        tree["flows"] = list(self.flows.values())
        members: dict[str, list[str]] = {}
        for flow in tree["flows"]:
            members.setdefault(flow["group"], []).append(flow["name"])
        self.group_series = {
            group["name"]: under(f"groups/{group['name']}", no_series)
            for group in self.scenario["flows"]
        }
        self._members = self.flows.members = members
        self.time_s: Array = columns.get("series/time_s", np.empty(0))
        self.completions = under("fct", Columns({}))
        no_queries = Columns({}, "the scenario has no source of queries (incast)")
        self.queries = under("query", no_queries)
        self.distributions = {
            name: Distribution.of(table["value_s"], table["count"])
            for name, table in tables.items()
            if name.partition("/")[0] in DELAYS
        }

    @cached_property
    def groups(self) -> dict[str, Record]:
        """Summaries and series of the groups by name. The sums are made at first use."""
        # By name: the columns of sweeps are defined in terms of Result.
        of_group = import_module("sojourn.sweeps.columns").of_group
        none = Columns({}, "only links have a packet log")
        return {
            name: Record(
                {
                    "flows": self._members.get(name, []),
                    **{
                        key: value
                        for key, value in of_group(self, name).items()
                        if not key.endswith("_values")  # text, for the rows of sweeps
                    },
                },
                series,
                none,
            )
            for name, series in self.group_series.items()
        }

    @property
    def summary(self) -> dict[str, Any]:
        """Object printed by `sojourn run --json`; `warnings` only if there are any."""
        advice = {"warnings": self.warnings} if self.warnings else {}
        return {"sojourn": self.version, **advice, **self._summary}

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about the scenario, like prio with flows of a single class."""
        from sojourn.scenario.advice import warnings_of

        return warnings_of(self.scenario)

    @property
    def sampled(self) -> bool:
        """True if the scenario has `sample`, so that there are series."""
        return "sample" in self.scenario

    def __repr__(self) -> str:
        return (
            f"Result({self.scenario['name']}: {counted(len(self.links), 'link')}, "
            f"{counted(len(self.flows), 'flow')}, "
            f"{self.scenario['duration']}, seed {self.scenario['seed']})"
        )

    def _repr_html_(self) -> str | None:
        """Return the tables of the run as HTML for notebooks."""
        return html(self)

    def frame(self, table: Table = "flows") -> "pl.DataFrame":
        """Return a table as a polars frame.

        Parameters
        ----------
        table : str, optional
            - `flows`, `groups`, `links`: one row per flow, group of flows or link, its summary;
            - `series`: one row per sample of each link and flow (columns `kind` and `name`);
            - `group_series`: one row per sample of each group of flows;
            - `packet_log`: one row per packet and link;
            - `fct`: one row per finished transfer, from the start of the run, with its `group`;
            - `queries`: one row per answered query, from the start of the run;
            - `delays`: the distributions after the warm-up, one row per bin of `value_s`: queueing
              delays of links (kind `sojourn`), one-way delays of groups (`delay`) and delays of
              their frames (`frame_delay`).

        Returns
        -------
        polars.DataFrame
            The table. Names of columns end with the unit.

        Raises
        ------
        ValueError
            If there is no such table.
        """
        match table:
            case "flows":
                return self._rows(self.flows, ["name", "group", "kind"])
            case "links":
                return self._rows(self.links, ["name", "qdisc"])
            case "series":
                links = {name: link.series for name, link in self.links.items()}
                flows = {name: flow.series for name, flow in self.flows.items()}
                return self._series({"link": links, "flow": flows})
            case "groups":
                counted_flows = {
                    name: {**group, "flows": len(group["flows"])}
                    for name, group in self.groups.items()
                }
                return self._rows(counted_flows, ["name", "flows"])
            case "group_series":
                return self._series({"group": self.group_series})
            case "packet_log":
                return self._packet_log()
            case "fct":
                return self._transfers(self.completions)
            case "queries":
                return self._transfers(self.queries)
            case "delays":
                return self._delays()
        raise ValueError(f"no table {table!r} (known: {', '.join(TABLES)})")

    def _rows(
        self, records: Mapping[str, Mapping[str, Any]], first: Sequence[str]
    ) -> "pl.DataFrame":
        """Return summaries as rows, with the columns `first` before the others.

        A column without any value has the type Float64, so that the frames of different runs have
        the same types. A list is written as text like "[3, 1]": CSV and spreadsheets have no lists.
        """
        import polars as pl

        rows = [
            {"name": name}
            | {k: json.dumps(v) if isinstance(v, list) else v for k, v in record.items()}
            for name, record in records.items()
        ]
        frame = pl.DataFrame(rows, infer_schema_length=None).select(*first, pl.exclude(first))
        return frame.with_columns(pl.col(pl.Null).cast(pl.Float64))

    def plot(
        self,
        path: str | Path | None = None,
        *,
        flows: Sequence[str] | None = None,
        **look: Unpack[Look],
    ) -> "mpl.Figure":
        """Draw queues, delays, throughput and windows over time. See `sojourn.draw`.

        Parameters
        ----------
        path : str or Path, optional
            File to write, .png, .pdf or .svg.
        flows : sequence of str, optional
            TCP flows, or groups of flows, whose congestion window is drawn.
        **look : optional
            Options `title`, `xlabel`, `size` and `style` of the figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        InputError
            If the scenario has no `sample`, or an option is invalid.
        """
        # By name: figures are defined in terms of Result.
        figure: mpl.Figure = import_module("sojourn.plotting.run").draw(
            self, path, flows=flows, **look
        )
        return figure

    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write summary.json and the tables as Parquet files.

        Either all files are written or, if writing fails, none. Each table carries the provenance
        as metadata. `load_result` reads the files.

        Parameters
        ----------
        directory : str or Path
            The directory; it is created if needed.
        force : bool, optional
            True replaces the files of another result. Files with other names are never touched.

        Raises
        ------
        InputError
            If the directory cannot be written, or holds anything but an earlier result of the same
            scenario and `force` is False.
        """
        engine = "live" if "live" in self._summary else "sim"
        folders.claim_run(Path(directory), self.scenario, engine, force=force)
        tables: list[Table] = ["flows", "groups", "links", "fct"]
        tables += ["series", "group_series"] if self.sampled else []
        tables += ["packet_log"] if self.scenario["packet_log"] else []
        tables += ["queries"] if self.queries else []
        tables += ["delays"] if self.distributions else []
        with filling(Path(directory), FILES, folders.is_own) as create:
            text = indented(self.summary)
            create("summary.json").write(f"{text}\n".encode())
            for table in tables:
                frame = self.frame(table)
                data = parquet(frame, metadata=self.provenance())
                create(f"{table}.parquet").write(data)

    def provenance(self) -> dict[str, str]:
        """Return schema, version, scenario, seed and command, as written into every table."""
        return {
            "sojourn.schema": SCHEMA,
            "sojourn.version": self.version,
            "sojourn.scenario": json.dumps(self.scenario),
            "sojourn.seed": str(self.scenario["seed"]),
            "sojourn.command": json.dumps(self.command),
        }

    def _transfers(self, columns: Columns) -> "pl.DataFrame":
        import polars as pl

        if not columns:
            return pl.DataFrame({"flow": [], "group": []})
        flow = columns["flow"]
        of_flow = {name: group for group, names in self._members.items() for name in names}
        groups = list(self._members)
        place = {group: n for n, group in enumerate(groups)}
        of_index = np.array([place[of_flow[name]] for name in self.flows], dtype=np.uint32)
        group = _words(of_index[flow], groups)
        return pl.DataFrame({**columns, "flow": self._names(flow)}).insert_column(
            1, group.alias("group")
        )

    def _delays(self) -> "pl.DataFrame":
        import polars as pl

        frames = [
            pl.DataFrame({"value_s": middles_s(one.bins), "count": one.counts.astype(np.uint64)})
            .select(pl.lit(kind).alias("kind"), pl.lit(owner).alias("name"), pl.all())
            for name, one in self.distributions.items()
            for kind, _, owner in [name.partition("/")]
        ]  # fmt: skip
        return pl.concat(frames) if frames else pl.DataFrame({"kind": [], "name": []})

    def _names(self, index: Array) -> "pl.Series":
        """Return the names of the flows with these indices."""
        return _words(index, list(self.flows))

    def _series(self, kinds: Mapping[str, Mapping[str, Columns]]) -> "pl.DataFrame":
        import polars as pl

        frames = [
            pl.DataFrame({"time_s": self.time_s, **series}).select(
                pl.lit(kind).alias("kind"), pl.lit(name).alias("name"), pl.all()
            )
            for kind, every in kinds.items()
            for name, series in every.items()
            if series
        ]
        if not frames:
            return pl.DataFrame({"kind": [], "name": [], "time_s": []})
        # A mean over no packets is null, not NaN.
        return pl.concat(frames, how="diagonal").with_columns(pl.col(pl.Float64).fill_nan(None))

    def _packet_log(self) -> "pl.DataFrame":
        import polars as pl

        frames = []
        for name, link in self.links.items():
            if columns := dict(link.packet_log):
                flow, fate = self._names(columns.pop("flow")), columns.pop("fate")
                frame = pl.DataFrame({"flow": flow, **columns, "fate": _words(fate, FATES)})
                frames.append(frame.select(pl.lit(name).alias("link"), pl.all()))
        return pl.concat(frames) if frames else pl.DataFrame({"link": []})


def _words(index: Array, words: Sequence[str]) -> "pl.Series":
    """Return the `words` with these indices, stored as an Enum of the same size."""
    import polars as pl

    return pl.Series(words, dtype=pl.Enum(words)).gather(index)
