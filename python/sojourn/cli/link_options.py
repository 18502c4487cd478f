"""Convert the options of `sojourn link` to links, and reject contradictions.

Options of one direction (`--up`, `--down`) replace options of both. An option without effect is an
error, so that no option is silently ignored.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near, shown
from sojourn._util.plain import plain
from sojourn.scenario import jitter_table, lines, link_trace
from sojourn.scenario.parsing import read_value, split_setting
from sojourn.scenario.variants import split, table

IMPAIRMENTS = (
    "jitter", "reorder", "duplicate", "corrupt", "outages", "slot", "in_flight_limit", "overhead",
    "process",
)  # fmt: skip
"""Keys of a direction that are rarely given, each with an option of its name."""

KEYS = ("rate", "delay", "qdisc", "loss", "trace", *IMPAIRMENTS)
"""Keys of a direction."""

PROVIDED = {"rate": ("rate_bps", "opportunities_ms"), "delay": ("delay_ns",)}
"""Columns of a trace that replace a key."""

Settings = dict[str, Any]


def links_of(
    shared: Mapping[str, str | None],
    settings: Sequence[str],
    own: Mapping[str, Sequence[str]],
    profile: str | None = None,
) -> dict[str, Any]:
    """Return the canonical links of both directions. Rust validates the values.

    Parameters
    ----------
    shared : mapping
        Options of both directions; None if not given.
    settings : sequence of str
        Parameters of the discipline of both directions, each KEY=VALUE.
    own : mapping
        Options of each direction, each KEY=VALUE.
    profile : str, optional
        Name of an access line, whose links the other options change.

    Raises
    ------
    InputError
        If an option is invalid, has no effect, or contradicts another one.
    """
    both = {key: read_value(text) for key, text in shared.items() if text is not None}
    with _about(""):
        _read_trace(both)
        _contradictions(both, "--")
    both |= {f"set {key}": value for key, value in _pairs(settings, "--set", ()).items()}
    with _about("--profile"):
        line: Mapping[str, Settings] = {} if profile is None else lines.links_of(profile)
    described: dict[str, Settings] = {}
    used: set[str] = set()
    for name, options in own.items():
        of_this = _pairs(options, f"--{name}", KEYS)
        with _about(f"--{name}"):
            _read_trace(of_this)
            _contradictions(of_this, "")
        with _about(f"--{name}" if options else ""):
            described[name], kept = _merge(both, of_this, line.get(name, {}))
        used |= kept
    for key in both.keys() - used:
        raise InputError(f"--{brief(key)}: has no effect, since --up and --down both replace it")
    links = {}
    for name, link in described.items():
        with _about(f"--{name}" if own[name] else ""):
            whole = jitter_table.resolve(plain(link), name)
            one = json.loads(_sojourn.canonical_links(json.dumps({name: whole})))
            links[name] = one[name]
    return links


def _pairs(settings: Iterable[str], option: str, known: Sequence[str]) -> Settings:
    """Parse settings KEY=VALUE; duplicates, and keys not in `known` (if not empty), are errors."""
    pairs: Settings = {}
    example = "rate=5mbit" if known else "target=15ms"
    for setting in settings:
        key, value = split_setting(setting, option, example)
        with _about(f"{option} {brief(setting)}"):
            if known:
                _check_single(setting, option, known)
            first, _, parameter = key.partition(".")
            if known and (first not in known or (parameter and first != "qdisc")):
                raise InputError(f"unknown key {shown(key)}{near(key, known)}")
        if key in pairs:
            raise InputError(f"{option} {brief(key)}: is given twice")
        pairs[key] = value
    return pairs


def _check_single(setting: str, option: str, known: Sequence[str]) -> None:
    """Raise InputError if a setting is a list of several: qdisc=cake,rate=25mbit."""
    parts = split(setting)
    if any(part.partition("=")[0].strip() in known for part in parts[1:]):
        each = " ".join(f"{option} {part}" for part in parts)
        raise InputError(f"takes one KEY=VALUE, repeat it: {each}")


def _read_trace(link: Settings) -> None:
    """Replace the file name of a trace by its columns."""
    if "trace" not in link:
        return
    try:
        link["trace"] = link_trace.resolve(link["trace"])
    except InputError as error:
        raise InputError(f"trace: {error}") from None


def _provides(trace: Any, key: str) -> bool:
    """Return True if `trace` replaces `key` from the start of the run."""
    if not isinstance(trace, dict) or not any(column in trace for column in PROVIDED[key]):
        return False
    # A trace that starts later uses the key until then.
    return "t_ns" not in trace or not trace["t_ns"] or trace["t_ns"][0] == 0


def _contradictions(link: Settings, lead: str) -> None:
    """Raise InputError for a key that the trace replaces."""
    for key in PROVIDED:
        if key in link and _provides(link.get("trace"), key):
            raise InputError(
                f"{key}: cannot be combined with {lead}trace, which gives the {key}: leave one out"
            )


def _merge(shared: Settings, own: Settings, line: Settings) -> tuple[Settings, set[str]]:
    """Return the link of a direction, and the keys of `shared` that it uses.

    `line` is the link of the profile, which the options change.
    """
    link: Settings = {key: value for key, value in shared.items() if key in KEYS}
    for key in PROVIDED:
        if key in own:
            _leave_out(link, key)
        elif _provides(own.get("trace"), key):
            link.pop(key, None)
    if "trace" in own:
        link.pop("trace", None)
    parameters = {key[4:]: value for key, value in shared.items() if key.startswith("set ")}
    if "qdisc" in own:
        link.pop("qdisc", None)
        parameters = {}
    replaced = {key[6:]: value for key, value in own.items() if key.startswith("qdisc.")}
    kept = {key for key in link if key not in own}
    kept |= {f"set {key}" for key in parameters if key not in replaced}
    link |= {key: value for key, value in own.items() if key in KEYS}
    of_own = "qdisc" in own
    if line and "qdisc" not in link:
        link["qdisc"] = {**line["qdisc"], **parameters, **replaced}
    else:
        link["qdisc"] = _discipline(
            link.get("qdisc", "droptail"),
            replaced if of_own else parameters,
            {} if of_own else replaced,
        )
    link = lines.merged(line, link)
    if "rate" not in link and (rate := _rate_of(link.get("trace"))):
        link["rate"] = f"{rate}bit"
    return link, kept


def _leave_out(link: Settings, key: str) -> None:
    """Remove the columns that replace `key` from a trace; remove the trace if none is left."""
    if not isinstance(trace := link.get("trace"), dict):
        return
    left = {name: column for name, column in trace.items() if name not in PROVIDED[key]}
    if any(column in left for columns in PROVIDED.values() for column in columns):
        link["trace"] = left
    else:
        del link["trace"]


def _discipline(qdisc: Any, parameters: Settings, replacing: Settings) -> Any:
    """Add `parameters` to a discipline, then replace its own parameters by `replacing`."""
    if not parameters and not replacing:
        return qdisc
    try:
        whole = table(qdisc)
    except InputError as error:
        raise InputError(f"qdisc: {error}") from None
    for key in parameters:
        if key in whole:
            raise InputError(f"qdisc.{brief(key)}: is given twice, with the discipline as well")
    return {**whole, **parameters, **replacing}


def _rate_of(trace: Any) -> int | None:
    """Return the highest rate of a trace, or the mean rate of opportunities, in bit/s."""
    if not isinstance(trace, dict):
        return None
    if moments := trace.get("opportunities_ms"):
        return len(moments) * link_trace.FULL_PACKET_BYTES * 8000 // max(1, int(moments[-1]))
    rates: list[int] = trace.get("rate_bps") or [0]
    return max(rates)


@contextmanager
def _about(option: str) -> Iterator[None]:
    """Prefix errors with the option; without one, derive it from the path in the message."""
    try:
        yield
    except InputError as error:
        text = str(error).removeprefix("up.").removeprefix("down.")
        text = text.partition(": ")[2] if text.startswith("--set ") else text
        text = text.replace("qdisc.name: ", "qdisc: ", 1) if text.startswith("qdisc.name") else text
        if option:
            raise InputError(f"{option}: {text}") from None
        text = f"--set {text[6:]}" if text.startswith("qdisc.") else f"--{text}"
        raise InputError(text) from None
