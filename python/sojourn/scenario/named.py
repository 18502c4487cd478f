"""Named scenarios: well-known tests as data, with a few options (`sojourn list scenarios`).

Each file of the folder `library` has a table `named`, which describes the scenario, and a table
`scenario`. In its texts, `{up}` stands for the value of the option `up`; `{rtt*0.5+10ms}` is half
of the option `rtt` and 10 ms. `{buffer_up}` is the buffer of the link in bytes: the option `buffer`
(a time) at the rate `up`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, of_link, shown
from sojourn._util.units import bps_of, seconds
from sojourn.scenario.parsing import parse_toml

Table = dict[str, Any]

FOLDER = Path(__file__).parent / "library"

ORDER = (
    "rrul",
    "rrul_be",
    "tcp_nup",
    "tcp_ndown",
    "rtt_fair",
    "tcp_2up_square",
    "voip",
    "voip_1up",
    "bursts",
    "cubic_reno",
    "drop_and_back",
    "low_and_up",
    "wifi_fade",
    "black_hole",
    "wifi_suspension",
    "home_uplink",
)
"""Names: flent's first, then picoquic_ns's."""

OPTIONS = ("rate", "up", "down", "rtt", "buffer", "flows")
"""Options of named scenarios; `rate` sets `up` and `down`.

All scenarios have `buffer`. One without a default has the default buffers of its disciplines.
"""

PLACE = re.compile(r"\{(\w+)(?:\*([\d.]+))?(?:\+(\d+\w+))?\}")
"""A place for an option in a text: `{rtt}`, `{up*0.5}`, `{rtt*0.5+10ms}`."""

FLOWS_MAX = 1_000_000
"""Largest number of flows, as of `count`."""


def folded(name: str) -> str:
    """Return a name in the spelling of `ORDER`."""
    return name.lower().replace("-", "_")


def is_name(value: object) -> bool:
    """Return True if `value` is written like a name, not a file: short, without dot or slash."""
    return isinstance(value, str | Path) and re.fullmatch(r"[\w-]{1,64}", str(value)) is not None


def spec(name: str) -> Table:
    """Return the description of a named scenario.

    Returns
    -------
    dict
        `name`, `about`, `source`, `topology`, `differs` (from the source), `look` (what to look
        at), `links` (those that get the discipline under test), `options` (default by name).

    Raises
    ------
    InputError
        If there is no such scenario. The message has the nearest name.
    """
    known = folded(name)
    if known not in ORDER:
        raise InputError(
            f"{shown(name)} is neither a file of a scenario (.toml or .json) nor the name of one"
            f"{near(known, ORDER)}"
        )
    return {"name": known, **_file(known)["named"]}


def tree(name: str, options: Mapping[str, Any] = {}) -> Table:
    """Return a named scenario as a tree; its values are not validated beyond the options.

    Parameters
    ----------
    name : str
        The name.
    options : mapping, optional
        Values of `OPTIONS`; None selects the default of the scenario.

    Raises
    ------
    InputError
        If the name is unknown, or an option is invalid or does not apply to the scenario.
    """
    about = spec(name)
    values = _values(about, options)
    filled: Table = _filled(_file(about["name"])["scenario"], values)
    if options.get("buffer") is not None and "buffer" not in about["options"]:
        size = of_link("--buffer", "delay", options["buffer"])
        for link in about["links"]:
            filled["links"][link]["qdisc"] = {"name": "droptail", "limit": size}
    return filled


def _file(name: str) -> Table:
    content: Table = json.loads(_text(name))
    return content


@cache
def _text(name: str) -> str:
    """Return a file of the library as JSON."""
    return json.dumps(parse_toml((FOLDER / f"{name}.toml").read_text(encoding="utf-8")))


def _values(about: Table, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all places: rates in bit/s, times in s, sizes in bytes, counts."""
    defaults: Table = about["options"]
    chosen = dict(defaults)
    if (both := arguments.get("rate")) is not None:
        chosen |= {key: both for key in ("up", "down") if key in defaults}
    for key, value in arguments.items():
        if key not in OPTIONS:
            raise InputError(f"--{key}: unknown option{near(key, OPTIONS)}")
        if value is None or key == "rate" or (key == "buffer" and key not in defaults):
            continue
        if key not in defaults:
            known = ", ".join(f"--{one}" for one in dict.fromkeys([*defaults, "rate", "buffer"]))
            raise InputError(f"--{key}: {about['name']} does not have it, only {known}")
        chosen[key] = value
    values: dict[str, Any] = {}
    for key, value in chosen.items():
        where = "rate" if key not in arguments or arguments[key] is None else key
        if key == "flows":
            values[key] = _count(value)
        elif key in ("up", "down"):
            values[key] = bps_of(of_link(f"--{where}", "rate", value))
        else:
            values[key] = seconds(of_link(f"--{key}", "delay", value))
    for key in ("up", "down"):
        if key in values and "buffer" in values:
            values[f"buffer_{key}"] = values[key] * values["buffer"] / 8
    return values


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= FLOWS_MAX:
        message = f"{shown(value)} is out of range, allowed: 1 to {FLOWS_MAX}"
        raise InputError(f"--flows: {message}")
    return value


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    """Return a tree with the values of the options in their places."""
    if isinstance(node, dict):
        return {key: _filled(one, values) for key, one in node.items()}
    if isinstance(node, list):
        return [_filled(one, values) for one in node]
    if not isinstance(node, str):
        return node
    if node == "{flows}":
        return values["flows"]
    return PLACE.sub(lambda match: _written(match, values), node)


def _written(match: re.Match[str], values: Mapping[str, Any]) -> str:
    """Return the value of a place with its unit."""
    name, factor, more = match.groups()
    value = values[name] * float(factor or 1)
    if name.startswith("buffer_"):
        return f"{max(1, round(value))}B"
    if name in ("up", "down"):
        return f"{max(1, round(value))}bit"
    return f"{round((value + (seconds(more) if more else 0.0)) * 1e9)}ns"


def links_of(scenario: object) -> Sequence[str]:
    """Return the links under test of a scenario given by its name; none for other scenarios."""
    return spec(str(scenario))["links"] if is_name(scenario) else ()
