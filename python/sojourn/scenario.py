"""Scenarios are data: the Structs, how a file is read, and the JSON that Rust validates.

Nothing is validated here. Rust reads the JSON once and answers with the path of what is wrong;
a second set of rules in Python could only disagree with it.
"""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from sojourn import traces
from sojourn._sojourn import InputError
from sojourn.base import Qdisc, Source, Tcp

Table: TypeAlias = dict[str, Any]


class Link(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A link: a discipline, a rate and a wire.

    `rate` like "10mbit"; `delay` is one-way, like "20ms" (default 0s); `qdisc` is a model such as
    `CoDel(target="5ms")`, a name, or a table with a name (default droptail). `trace` is a recorded
    rate or delay, or Mahimahi's delivery opportunities: a file, or columns (see
    `sojourn.link_trace`); before the first row `rate` and `delay` hold.

    `loss` is the chance that a packet is lost on the wire (default 0) or, for losses in bursts,
    what tc-netem(8) calls gemodel: a table with the chances `p` that a good wire becomes bad after
    a packet, `r` that a bad one becomes good (default 1 - p), `1-h` that a bad one loses a packet
    (default 1) and `1-k` that a good one does (default 0). The wire begins good.
    """

    rate: str
    delay: str | None = None
    qdisc: Qdisc | str | Mapping[str, Any] | None = None
    loss: float | Mapping[str, float] | None = None
    trace: str | Path | Mapping[str, Any] | None = None


class Flow(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A flow, or `count` flows alike, from a source (default bulk) over the links in `path`.

    `rtt` is the propagation time of the whole loop, like "50ms" or "uniform(40ms, 200ms)"
    (default: what the links add up to). `return_path` names the links that acks cross (default:
    a pure delay). In a link's name `{i}` stands for the number of the flow, from 0 up. `tcp` is
    left out for a source that sends UDP. Of a source that opens many connections (poisson, incast,
    sessions, web) the `count` flows are its hosts. `class_` is the traffic class of the packets,
    0 to 65535 (default 0); a file calls it `class`.
    """

    name: str
    path: Sequence[str]
    source: Source | str | Mapping[str, Any] | None = None
    tcp: Tcp | str | Mapping[str, Any] | None = None
    return_path: Sequence[str] | None = None
    rtt: str | None = None
    count: int | None = None
    class_: int | None = msgspec.field(default=None, name="class")


class Change(
    msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True
):
    """What changes `at` a time, before anything else happens at it.

    Flows named in `join` start then (their own start and stop count from there); those in `leave`
    stop at once, whatever they were doing. `links` gives links another `rate` ("0bit" lets one
    stand still), `delay` or both, for the transmissions that start from then on; a discipline
    keeps its parameters.
    """

    at: str
    join: Sequence[str] | None = None
    leave: Sequence[str] | None = None
    links: Mapping[str, Mapping[str, str]] | None = None


class Scenario(
    msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True
):
    """A whole experiment: links by name, the flows over them, and for how long.

    Everything is measured after `warmup` (default 0s). `sample` is the interval of the series
    that figures draw (default: none are kept), of every flow unless `sample_flows` is false;
    `tape` keeps a row for every packet. `changes` happen during the run. Equal scenarios with
    equal `seed` (default 1) give equal results, byte for byte.
    """

    duration: str
    links: Mapping[str, Link | Mapping[str, Any]]
    flows: Sequence[Flow | Mapping[str, Any]]
    name: str | None = None
    warmup: str | None = None
    seed: int | None = None
    sample: str | None = None
    sample_flows: bool | None = None
    tape: bool | None = None
    changes: Sequence[Change | Mapping[str, Any]] | None = None


def load(path: str | Path) -> Table:
    """Read the scenario file `path` (.toml or .json) as a plain tree.

    Raises InputError with the file's name, and the line where there is one, if it cannot be read.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {why(error)}") from None
    if path.suffix.lower() not in (".toml", ".json"):
        raise InputError(f"{path}: a scenario file ends in .toml or .json")
    text = text_of(path, raw)
    try:
        tree = _parse_json(text) if path.suffix.lower() == ".json" else _parse_toml(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: tables are nested too deeply") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a scenario is a table of names and values")
    for link in _links(tree):
        # The file of a trace is looked for beside that of the scenario.
        match link.get("trace"):
            case str() as file:
                link["trace"] = str(path.parent / file)
            case {"file": str() as file}:
                link["trace"]["file"] = str(path.parent / file)
    try:
        whole: Table = traces.inline(tree, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return whole


def text_of(path: Path, raw: bytes) -> str:
    """Give the text of the file `path` whose bytes are `raw`; it must have some, in UTF-8."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line}: this is not a text file in UTF-8") from None
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text


def to_json(scenario: "Scenario | Mapping[str, Any]") -> str:
    """Give the JSON text of `scenario` that Rust reads."""
    try:
        tree = traces.inline(plain(scenario))
        return json.dumps(_with_traces(tree), allow_nan=False)
    except RecursionError:
        raise InputError("tables are nested too deeply") from None


def _links(tree: Any) -> list[Table]:
    """The links of a tree that may be anything."""
    links = tree.get("links") if isinstance(tree, dict) else None
    found = links.values() if isinstance(links, dict) else ()
    return [link for link in found if isinstance(link, dict)]


def _with_traces(tree: Any) -> Any:
    """Put the columns of the traces of links in the place of their files' names, in place."""
    if any("trace" in link for link in _links(tree)):
        from sojourn import link_trace

        for name, link in tree["links"].items():
            try:
                if isinstance(link, dict) and "trace" in link:
                    link["trace"] = link_trace.resolve(link["trace"])
            except InputError as error:
                raise InputError(f"links.{name}.trace: {error}") from None
    return tree


def plain(value: Any) -> Any:
    """Reduce `value` to what JSON can say.

    What JSON has no word for (NaN, a date, an integer of a hundred digits) becomes its text, so
    that Rust refuses it where it stands, with its path.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value.encode(errors="backslashreplace").decode()
        case int():
            return value if abs(value) < 1 << 63 else _digits(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case msgspec.Struct():
            tag = value.__struct_config__
            head = {tag.tag_field: tag.tag} if tag.tag_field else {}
            given = {
                name: getattr(value, field)
                for field, name in zip(
                    value.__struct_fields__, value.__struct_encode_fields__, strict=True
                )
            }
            return head | {k: plain(v) for k, v in given.items() if v is not None}
        case Mapping():
            return {plain(str(key)): plain(inner) for key, inner in value.items()}
        case Sequence() if not isinstance(value, bytes):
            return [plain(inner) for inner in value]
        case _ if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            return plain(value.item())  # a NumPy number
        case _:
            return str(value)


def why(error: OSError) -> str:
    """Say in a few words what the operating system said."""
    return (error.strerror or str(error)).lower()


def _digits(value: int) -> str:
    """Write a huge integer, shortened: Python itself refuses to print thousands of digits."""
    return f"{'-' if value < 0 else ''}about 2^{value.bit_length()}"


def _parse_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(_one_line(str(error))) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InputError(_one_line(str(error))) from None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno}: {error.msg} (column {error.colno})") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(_one_line(str(error))) from None


def _once(pairs: list[tuple[str, Any]]) -> Table:
    """Refuse a key that is there twice; JSON would let the last one win in silence."""
    table: Table = {}
    for key, value in pairs:
        if key in table:
            raise InputError(f"{key}: this key is there twice")
        table[key] = value
    return table


def _one_line(text: str) -> str:
    return " ".join(text.split())
