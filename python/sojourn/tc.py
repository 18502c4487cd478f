"""The language of Linux's `tc`: disciplines and links from tc lines, and tc lines from them.

    >>> import sojourn as sj
    >>> sj.tc.parse("fq_codel limit 1000 target 20ms")
    FqCoDel(limit='1000p', target='20ms', variant='linux')
    >>> print(sj.tc.export(sj.CoDel(limit="500p", ecn=True), dev="eth0"))
    tc qdisc replace dev eth0 root handle 1: codel limit 500 ecn

Numbers in tc lines have tc's units: `mbps` is megabytes per second, `k` is 1024 in sizes, and a
bare time is in microseconds, but in nanoseconds for netem. Words that are not given have the
defaults of Linux. docs/reference/tc.md lists the words of each qdisc.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sojourn import _sojourn, formats, tc_netem
from sojourn import qdisc as qdiscs
from sojourn._sojourn import InputError
from sojourn._util.base import Qdisc
from sojourn._util.inputs import brief, check_device, printable, shown
from sojourn._util.plain import plain
from sojourn._util.units import bps_of, bytes_of
from sojourn.scenario.draft import canonical
from sojourn.scenario.keys import Link, Scenario
from sojourn.scenario.variants import Described, table
from sojourn.tc_toml import WIRE, no_rate, toml

__all__ = ["diff", "export", "imported", "links", "parse", "toml"]

Table = dict[str, Any]

LINK = ("rate", "burst", "delay", *WIRE, "qdisc")
"""Keys of a link that tc describes."""

ONE_QDISC = ("networkmanager", "sqm")
"""Formats without classes of their own."""

ROOT = 1
"""Handle of the qdisc at the root."""

LEAF = 0x10
"""Handle of the qdisc below a shaper."""

USUAL_RATE = "1gbit"
"""Rate for checks of links without one."""

NOTE = "# note: "
"""Beginning of a comment about something that Linux does in another way."""

LINUX = "linux"
"""Variant of a discipline with the arithmetic of Linux."""


def parse(line: str) -> Qdisc:
    """Return the discipline that a qdisc of Linux describes.

    Parameters
    ----------
    line : str
        The qdisc with its words, as after `tc qdisc add dev eth0 root`; `tc:` may precede it.

    Returns
    -------
    Qdisc
        The discipline. Parameters that are not given have the defaults of Linux.

    Raises
    ------
    InputError
        If tc would refuse the line, or sojourn has no such discipline.
    """
    parameters = json.loads(_sojourn.tc_parse(line))["qdisc"]
    name = parameters.pop("name")
    classes = (getattr(qdiscs, one) for one in qdiscs.__all__)
    kind = next(one for one in classes if one.__struct_config__.tag == name)
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    model: Qdisc = kind(**{names[key]: value for key, value in parameters.items()})
    return model


def imported(
    text: str, *, leaf: str | None = None, speed: str | None = None, form: str | None = None
) -> list[Table]:
    """Return the link of each device in a script, an output of tc or a configuration.

    Parameters
    ----------
    text : str
        A script, a batch file, the output of `set -x`, the output of `tc qdisc show` and
        `tc class show` or of `tc -j qdisc show`, the configuration of sqm-scripts
        (`/etc/config/sqm`), a .network file of systemd-networkd, a connection of NetworkManager,
        or the interfaces of ifupdown. Commands are executed as the kernel does.
    leaf : str, optional
        The class that becomes the link, like `1:10`. The default is all of them, as a discipline
        with classes.
    speed : str, optional
        The speed of the devices, of which `rate 10%` is a share.
    form : str, optional
        Format of the text, one of `sojourn.formats.NAMES`. The default is recognised.

    Returns
    -------
    list of dict
        For each device: `dev`, with the network namespace as `NS/DEV`; `rate`, `burst`, `delay`,
        `jitter`, `reorder`, `duplicate`, `corrupt`, `loss`, `slot`, `in_flight_limit`, `overhead`
        and `qdisc` as the keys of a link, None if not given; `classes`, the numbers of the classes
        of `qdisc` by their identifiers in tc; and `lost`, the words and lines that are not
        represented. A policer at the ingress of a device is a link of its own, `DEV ingress`.

    Raises
    ------
    InputError
        With the line number, if tc or the kernel would refuse a command; if there is none; if there
        is no class `leaf`; or if a value is out of the range of a scenario.
    """
    commands = formats.read(text, form)
    links: list[Table] = json.loads(_sojourn.tc_import(commands.text, leaf, speed))
    for one in links:
        one["lost"] += [lost for dev, lost in commands.lost if dev == one["dev"]]
        _check_link(one)
    return links


def _check_link(link: Table) -> None:
    """Raise InputError, with the device, for a link that no scenario accepts: tc accepts more."""
    options = {key: link[key] for key in LINK if link[key] is not None}
    try:
        _canonical({"link": {"rate": USUAL_RATE, **options}})
    except InputError as error:
        reason = str(error).removeprefix("link.")
        raise InputError(f"{brief(link['dev'])}: {reason}") from None


def links(text: str, *, rate: str | None = None, leaf: str | None = None) -> dict[str, Link]:
    """Return the links of a script or output of tc by device.

    Parameters
    ----------
    text : str
        As for `imported`.
    rate : str, optional
        Rate of devices whose qdiscs do not limit it, like "1gbit"; shares like `rate 10%` are
        shares of it.
    leaf : str, optional
        As for `imported`.

    Raises
    ------
    InputError
        As `imported`; or if the rate of a device is unknown.
    """
    result = {}
    for one in imported(text, leaf=leaf, speed=rate):
        options = {key: one[key] for key in LINK if one[key] is not None}
        if rate is not None:
            options.setdefault("rate", rate)
        if "rate" not in options:
            raise InputError(f"{one['dev']}: {no_rate(one)}, so give rate=")
        result[one["dev"]] = Link(**options)
    return result


def export(
    given: "Described | Link | Scenario | Mapping[str, Any]",
    *,
    dev: str | Sequence[str] = "eth0",
    rate: str | None = None,
    netem: bool = True,
    form: str = "tc",
) -> str:
    """Return the commands that come nearest to a discipline, a link or a scenario.

    Parameters
    ----------
    given : Qdisc, str, Link, Scenario or dict
        The discipline in any notation, or the link, or the scenario.
    dev : str or list of str
        The device; for a scenario one for each link, or `LINK=DEV`.
    rate : str, optional
        Rate of the link of a discipline, from which Linux's RED computes its idle time. No shaper
        is written for it; for one, give a link.
    netem : bool
        Write delay and loss of a link as netem, to emulate it. False is for a real line, which has
        its own.
    form : str
        Format of the text, one of `sojourn.formats.WRITTEN`. `tc` is lines for a shell. The others
        are for a real line: they have no netem.

    Returns
    -------
    str
        Lines for a shell, or a configuration. Comments name what Linux or the format cannot do.

    Raises
    ------
    InputError
        If the input is invalid, or Linux has no qdisc for a discipline.
    """
    devices = [dev] if isinstance(dev, str) else list(dev)
    if form != "tc":
        exported = [_in_format(one, form) for one in _exported(given, devices, rate)]
        return "\n".join(formats.write(exported, form))
    if isinstance(given, Scenario) or (isinstance(given, Mapping) and "links" in given):
        return "\n".join(_scenario(given, devices, netem))
    check_device("dev", devices[0])
    if isinstance(given, Link) or (isinstance(given, Mapping) and "name" not in given):
        return "\n".join(_link(_canonical({"link": plain(given)})["link"], devices[0], netem))
    lost = [f"# {printable(one)}" for one in _unheard(given)]
    return "\n".join(lost + _qdisc(translate(given, rate), devices[0], f"root handle {ROOT}:"))


def _exported(
    subject: "Described | Link | Scenario | Mapping[str, Any]", devices: list[str], rate: str | None
) -> list[formats.Exported]:
    """Return the links of a discipline, a link or a scenario, as other formats write them."""
    if isinstance(subject, Scenario) or (isinstance(subject, Mapping) and "links" in subject):
        links = _links_by_device(subject, devices)
    elif isinstance(subject, Link) or (isinstance(subject, Mapping) and "name" not in subject):
        links = {devices[0]: ("", _canonical({"link": plain(subject)})["link"])}
    else:
        check_device("dev", devices[0])
        leaf = translate(subject, rate)
        lines = _qdisc(leaf, devices[0], "root handle 1:")
        return [formats.Exported(devices[0], {}, leaf, lines)]
    result = []
    for dev, (_, link) in links.items():
        check_device("dev", dev)
        leaf = translate(link["qdisc"], link["rate"])
        result.append(formats.Exported(dev, link, leaf, _link(link, dev, netem=False)))
    return result


def _in_format(exported: formats.Exported, form: str) -> formats.Exported:
    """Return the lines that a format can say; the others are comments.

    Raises InputError for a tree of classes in a format with one qdisc per device.
    """
    if exported.leaf["below"] and form in ONE_QDISC:
        kind = exported.leaf["kind"]
        raise InputError(f"{kind} has classes, which {form} does not have; write tc or networkd")
    if form == "ifupdown":
        return exported
    lines = [
        f"# {line.removeprefix('tc ')}: {form} has no filters" if " filter " in line[:10] else line
        for line in exported.lines
    ]
    return replace(exported, lines=lines)


def notes(subject: "Described | Mapping[str, Any]") -> list[str]:
    """Return a comment for each discipline whose simulated variant differs from Linux's.

    Parameters
    ----------
    subject : Qdisc, str or dict
        A discipline in any notation, or a scenario.
    """
    if isinstance(subject, Mapping) and "links" in subject:
        links = canonical(_without_code(subject))["links"]
        qdiscs = {f"link {name}: ": link["qdisc"] for name, link in links.items()}
    else:
        qdiscs = {"": _parameters(subject)}
    return [text for where, qdisc in qdiscs.items() for text in _variant(where, qdisc)]


def _variant(where: str, qdisc: Table) -> Iterator[str]:
    """Yield the note about a canonical discipline whose variant differs from Linux."""
    variant = qdisc.get("variant", LINUX)
    nearest = translate(qdisc)
    if variant == LINUX or any(one.startswith("variant") for one in nearest["lost"]):
        return
    yield (
        f'{NOTE}{where}this is {qdisc["name"]} with variant = "{variant}", which Linux does not '
        f'have; "tc: {nearest["line"]}" simulates Linux'
    )


def translate(given: Described, rate: str | None = None, handle: int = ROOT) -> Table:
    """Return the nearest qdisc of Linux for a discipline.

    The table has `kind`, `line`, `shown` and `options` (as `tc qdisc show` prints them), `below`
    (for the qdiscs, classes and filters below the qdisc `handle`, object, verb and words each),
    `lost` (what Linux cannot do) and `differs` (other differences).
    """
    nearest: Table = json.loads(_sojourn.tc_export(json.dumps(table(given)), rate, handle))
    return nearest


def diff(a: Described, b: Described) -> list[tuple[str, str, str]]:
    """Return the parameters in which two disciplines differ, as (name, value of a, value of b).

    The first row is the name of the discipline, if that differs. A parameter that one of them does
    not have is "-".
    """
    first, second = (_parameters(one) for one in (a, b))
    names = dict.fromkeys([*first, *second])
    rows = [(name, _text(first.get(name)), _text(second.get(name))) for name in names]
    return [row for row in rows if row[1] != row[2]]


def _parameters(qdisc: Described) -> Table:
    link = {"rate": "10mbit", "qdisc": table(qdisc)}
    try:
        parameters: Table = _canonical({"link": link})["link"]["qdisc"]
    except InputError as error:
        raise InputError(str(error).removeprefix("link.qdisc.")) from None
    return parameters


def _text(value: Any) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _canonical(links: Table) -> Table:
    canonical: Table = json.loads(_sojourn.canonical_links(json.dumps(links)))
    return canonical


def _scenario(scenario: Scenario | Mapping[str, Any], devices: list[str], netem: bool) -> list[str]:
    """Return the lines for every link of a scenario."""
    lines: list[str] = []
    described = plain(scenario)["links"]
    for device, (name, link) in _links_by_device(scenario, devices).items():
        lines += ["", f"# link {name}"] if lines else [f"# link {name}"]
        link_of = described[name]
        qdisc = link_of.get("qdisc") if isinstance(link_of, dict) else None
        lines += [f"# {printable(one)}" for one in _unheard(qdisc)]
        lines += _link(link, device, netem)
    return lines


def _links_by_device(
    scenario: Scenario | Mapping[str, Any], devices: list[str]
) -> dict[str, tuple[str, Table]]:
    """Return name and canonical link for each device of a scenario."""
    whole = canonical(_without_code(scenario))["links"]
    named = dict(one.split("=", 1) for one in devices if "=" in one)
    for name in named:
        if name not in whole:
            raise InputError(f"--dev {name}: the scenario has no link of that name")
    others = [one for one in devices if "=" not in one]
    for name in (*named.values(), *others):
        check_device("dev", name)
    rest = iter(others)
    links: dict[str, tuple[str, Table]] = {}
    for i, (name, link) in enumerate(whole.items()):
        device = named.get(name) or next(rest, f"eth{i}")
        if device in links:
            text = f"is the device of two links, {links[device][0]} and {name}"
            raise InputError(f"--dev {device}: {text}; write --dev {name}=DEV with another one")
        links[device] = (name, link)
    return links


def _unheard(described: Any) -> list[str]:
    """Return the words of a line of tc that the discipline of it does not have."""
    if not isinstance(described, str) or not described.lstrip().lower().startswith("tc:"):
        return []
    lost: list[str] = json.loads(_sojourn.tc_parse(described))["lost"]
    return lost


def _without_code(scenario: Scenario | Mapping[str, Any]) -> Table:
    """Return a scenario without the congestion controls and sources that are written in Python.

    Raises InputError if a discipline is: it has no qdisc, and is not loaded to say so.
    """
    tree: Table = plain(scenario)
    links = tree["links"].items() if isinstance(tree.get("links"), dict) else ()
    for name, link in links:
        if isinstance(link, dict) and _is_code(link.get("qdisc")):
            text = f"{shown(table(link['qdisc'])['name'])} is written in Python, Linux has no qdisc"
            raise InputError(f"links.{name}.qdisc: {text}")
    flows = tree.get("flows")
    if isinstance(flows, list) and all(isinstance(flow, dict) for flow in flows):
        tree["flows"] = [
            {
                key: value
                for key, value in flow.items()
                if key not in ("tcp", "source") or not _is_code(value)
            }
            for flow in flows
        ]
    return tree


def _is_code(qdisc: Any) -> bool:
    """Return True if a discipline, TCP or source is named as a class in Python."""
    try:
        return ":" in table(qdisc)["name"]
    except InputError:
        return False


def _link(link: Table, dev: str, netem: bool) -> list[str]:
    """Return the lines for a canonical link: netem for the path, htb for the rate."""
    lost = []
    if "trace" in link:
        lost.append("trace: Linux has no recorded rates or delays")
    if "process" in link:
        lost.append("process: Linux has no random rates")
    words, of_netem = tc_netem.words(link) if netem else ("", [])
    of_rate = netem and bool(tc_netem.rate(link))
    stab, of_stab = ("", []) if of_rate else tc_netem.stab(link)
    lost += of_netem + of_stab
    lines, place, major = [], "root", 1
    if words:
        lines.append("# netem emulates the path; leave it out on a real line (--no-netem)")
        lines.append(f"tc qdisc replace dev {dev} {place} handle {major}:{stab} netem {words}")
        place, major, stab = f"parent {major}:1", major + 1, ""
    if of_rate:
        return [f"# {one}" for one in lost] + lines
    if _shapes_itself(link):
        leaf = translate(link["qdisc"], link["rate"], major)
        lines.append(f"# {link['qdisc']['name']} limits the rate itself")
        rest = _qdisc(leaf, dev, f"{place} handle {major}:{stab}")
        return [f"# {one}" for one in lost] + lines + rest
    size = f"{bytes_of(link['burst'])}b" if "burst" in link else ""
    burst = f" burst {size} cburst {size}" if size else ""
    lines += [
        f"tc qdisc replace dev {dev} {place} handle {major}:{stab} htb default 1",
        f"tc class replace dev {dev} parent {major}: classid {major}:1 htb rate {link['rate']}"
        + burst,
    ]
    leaf = translate(link["qdisc"], link["rate"], LEAF)
    place = f"parent {major}:1 handle {LEAF:x}:"
    return [f"# {one}" for one in lost] + lines + _qdisc(leaf, dev, place)


def _shapes_itself(link: Table) -> bool:
    """Return True if the discipline of a link limits its rate.

    This is cake with a bandwidth of at most the rate, and htb if the ceilings of its highest
    classes add up to the rate.
    """
    qdisc = link["qdisc"]
    if qdisc["name"] == "htb" and "burst" not in link:
        return _top_rate(qdisc) == bps_of(link["rate"])
    bandwidth = qdisc.get("bandwidth")
    if link["qdisc"]["name"] != "cake" or bandwidth in (None, "auto") or "burst" in link:
        return False
    return bps_of(bandwidth) <= bps_of(link["rate"])


def _top_rate(htb: Table) -> float | None:
    """Return the sum of the ceilings of the classes of htb without a parent, in bit/s."""
    rates, ceils, parents = (htb[key].split() for key in ("rates", "ceils", "parents"))
    if not rates or not ceils:
        return None
    ends = (ceils + ceils[-1:] * len(rates))[: len(rates)]
    if parents:
        above = (parents + parents[-1:] * len(rates))[: len(rates)]
    else:
        above = ["0"] + ["1"] * (len(rates) - 1)
    return sum(bps_of(ceil) for ceil, parent in zip(ends, above, strict=True) if parent == "0")


def _qdisc(nearest: Table, dev: str, place: str) -> list[str]:
    """Return the lines for a discipline at a place, and for what is below it."""
    comments = [f"# {printable(one)}" for one in nearest["lost"]]
    root = f"tc qdisc replace dev {dev} {place} {nearest['line']}"
    below = [f"tc {what} {verb} dev {dev} {words}" for what, verb, words in nearest["below"]]
    return [*comments, root, *below]


def described(text: str) -> Described:
    """Return the discipline that a text of the command line describes, in tc's words or ours.

    Several words without a parenthesis are of tc, and so is a whole command.
    """
    words = text.split()
    if text.lstrip().lower().startswith("tc:") or len(words) < 2 or "(" in text:
        return text
    if words[0] in ("tc", "sudo", "qdisc") or words[0].endswith("/tc"):
        link = imported(text)[0]
        if link["qdisc"] is None:
            raise InputError(f"{text}: there is no queue in this line")
        whole: Table = link["qdisc"]
        return whole
    return f"tc: {text}"


def read(path: Path) -> str:
    """Return the text of a file. Raises InputError if it cannot be read, or is not text."""
    from sojourn._util.reading import bytes_of_file, text_of

    return text_of(path, bytes_of_file(path))
