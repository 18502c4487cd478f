"""Queues of MikroTik's RouterOS (`/queue type`, `/queue simple`, `/queue tree`) as commands of tc.

`write` writes types and a simple queue.

Source: RouterOS documentation, Queues: rates in bit/s with k, M and G of 1000; a token bucket holds
what the rate sends in 0.1 s (bucket-size); a simple queue has upload/download pairs.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.formats.commands import Commands, Exported, commands, comments

Keys = dict[str, str]

MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}

BUCKET_S = 0.1
"""Default of bucket-size, in seconds at max-limit."""

TYPES: dict[str, Keys] = {
    "default": {"kind": "pfifo", "pfifo-limit": "50"},
    "default-small": {"kind": "pfifo", "pfifo-limit": "10"},
    "ethernet-default": {"kind": "pfifo", "pfifo-limit": "50"},
}
"""Types that every router has and that are read."""

WORDS: dict[str, dict[str, str]] = {
    "pfifo": {"limit": "limit"},
    "bfifo": {"limit": "limit"},
    "sfq": {"perturb": "perturb", "allot": "quantum"},
    "codel": {
        "target": "target", "interval": "interval", "limit": "limit",
        "ce-threshold": "ce_threshold",
    },
    "fq-codel": {
        "target": "target", "interval": "interval", "limit": "limit", "quantum": "quantum",
        "flows": "flows", "memlimit": "memory_limit", "ce-threshold": "ce_threshold",
    },
    "cake": {
        "bandwidth": "bandwidth", "overhead": "overhead", "mpu": "mpu", "memlimit": "memlimit",
        "rtt": "rtt",
    },
}  # fmt: skip
"""Keys of each kind, without the kind, and the words of tc that take their values."""

CHOICES: dict[tuple[str, str], dict[str, str]] = {
    ("fq-codel", "ecn"): {"yes": "ecn", "no": "noecn"},
    ("codel", "ecn"): {"yes": "ecn", "no": "noecn"},
    ("cake", "nat"): {"yes": "nat", "no": "nonat"},
    ("cake", "wash"): {"yes": "wash", "no": "nowash"},
    ("cake", "autorate-ingress"): {"yes": "autorate-ingress", "no": ""},
    ("cake", "atm"): {"none": "noatm", "atm": "atm", "ptm": "ptm"},
    ("cake", "ack-filter"): {
        "none": "no-ack-filter", "filter": "ack-filter", "aggressive": "ack-filter-aggressive",
    },
}  # fmt: skip
"""Words of tc for the values of other keys."""

NAMED = ("diffserv", "flowmode", "overhead-scheme", "rtt-scheme")
"""Keys of cake whose values are words of tc."""

SIMPLE = {"name", "target", "max-limit", "queue", "comment", "disabled", "dst", "bucket-size"}
TREE = {"name", "parent", "max-limit", "queue", "comment", "disabled", "bucket-size"}


@dataclass(frozen=True)
class Row:
    """Line `add` of a menu.

    Attributes
    ----------
    menu : str
        "type", "simple" or "tree".
    number : int
        Number of its line.
    keys : dict
        Keys with their values.
    """

    menu: str
    number: int
    keys: Keys

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"line {self.number}: /queue {self.menu} {brief(self.keys.get('name', 'add'))}"


def is_config(text: str) -> bool:
    """Return True if `text` has a menu of queues of RouterOS."""
    pattern = r"^\s*/queue[ /](type|simple|tree)\b"
    return re.search(pattern, text, re.MULTILINE) is not None


def read(text: str) -> Commands:
    """Return commands of tc for the queues of a configuration.

    A simple queue NAME gives the devices `NAME-up` and `NAME-down`, a queue of a tree NAME. Without
    simple queues and trees, each type gives a device.

    Raises
    ------
    InputError
        If a line is invalid, a type is unknown or of a kind that is not read, or a tree has queues
        below a queue.
    """
    rows = [row for row in _rows(text) if row.keys.get("disabled", "no") != "yes"]
    types = dict(TYPES)
    for row in rows:
        if row.menu == "type":
            types[_key(row, "name")] = row.keys
    commands: list[str] = []
    lost: list[tuple[str, str]] = []
    queues = [row for row in rows if row.menu != "type"]
    for dev, row, queue, rate in _links(queues, types):
        discipline, notes = _discipline(row, queue, types)
        known = SIMPLE if row.menu == "simple" else TREE
        if row.menu != "type":
            notes += [f"{key}={value}" for key, value in row.keys.items() if key not in known]
        lost += [(dev, f"{row.name}: {note}") for note in notes]
        commands += _shaped(dev, rate, row, discipline)
    if not queues:
        for row in rows:
            dev = _key(row, "name")
            discipline, notes = _discipline(row, dev, types)
            lost += [(dev, f"{row.name}: {note}") for note in notes]
            commands.append(f"tc qdisc add dev {dev} root {discipline}")
    if not commands:
        raise InputError("there is no queue, like /queue simple add name=wan max-limit=10M/50M")
    return Commands("\n".join(commands), lost)


def _rows(text: str) -> Iterator[Row]:
    """Yield the lines `add` of the menus, with continued lines joined."""
    menu = ""
    joined, number = "", 0
    for at, raw in enumerate(text.splitlines(), 1):
        number = number if joined else at
        line = joined + raw.strip()
        if line.endswith("\\"):
            joined = line[:-1]
            continue
        joined = ""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise InputError(f"line {number}: {str(error).lower()}") from None
        if words and words[0].startswith("/"):
            match = re.match(r"/queue[ /](type|simple|tree)\b", " ".join(words))
            menu = match[1] if match else ""
            words = words[1 if "/" in words[0][1:] else 2 :]
        if words[:1] == ["set"] and menu:
            raise InputError(f"line {number}: set is not read; write add with all keys")
        if words[:1] == ["add"] and menu:
            pairs = (word.partition("=") for word in words[1:])
            yield Row(menu, number, {key: value for key, _, value in pairs})


def _key(row: Row, key: str) -> str:
    """Return a key. Raises InputError if it is missing."""
    if key not in row.keys:
        raise InputError(f"{row.name}: {key} is missing")
    return row.keys[key]


def _links(
    rows: list[Row], types: Mapping[str, Keys]
) -> Iterator[tuple[str, Row, str, str | None]]:
    """Yield device, row, type and rate of each queue."""
    above = {row.keys.get("parent") for row in rows}
    for row in rows:
        name = _key(row, "name")
        if name in above:
            below = next(one for one in rows if one.keys.get("parent") == name)
            raise InputError(
                f"{below.name}: parent={brief(name)}: a queue below a queue is not read"
            )
        dev = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
        if row.menu == "tree":
            yield dev, row, row.keys.get("queue", "default"), row.keys.get("max-limit")
            continue
        queue = _pair(row, "queue", "default-small")
        rate = _pair(row, "max-limit", "0")
        for n, side in enumerate(("up", "down")):
            yield f"{dev}-{side}", row, queue[n], rate[n]


def _pair(row: Row, key: str, default: str) -> tuple[str, str]:
    """Return the values for upload and download."""
    first, slash, second = row.keys.get(key, default).partition("/")
    return first, second if slash else first


def _rate(row: Row, text: str | None) -> int:
    """Return a rate in bit/s; 0 means none."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmg]?)(bps)?", (text or "0").lower())
    if match is None:
        raise InputError(f"{row.name}: max-limit={brief(text or '')} is not a rate, like 10M")
    return round(float(match[1]) * MULTIPLES[match[2]])


def _shaped(dev: str, limit: str | None, row: Row, discipline: str) -> list[str]:
    """Return the commands of a queue with its rate."""
    rate = _rate(row, limit)
    if rate == 0:
        return [f"tc qdisc add dev {dev} root {discipline}"]
    size = row.keys.get("bucket-size", str(BUCKET_S)).split("/")[0]
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", size):
        raise InputError(f"{row.name}: bucket-size={brief(size)} is not a number of seconds")
    burst = max(round(rate / 8 * float(size)), 1600)
    return [
        f"tc qdisc add dev {dev} root handle 1: htb default 1",
        f"tc class add dev {dev} parent 1: classid 1:1 htb rate {rate}bit burst {burst} "
        f"cburst {burst}",
        f"tc qdisc add dev {dev} parent 1:1 {discipline}",
    ]


def _discipline(row: Row, name: str, types: Mapping[str, Keys]) -> tuple[str, list[str]]:
    """Return the qdisc of a type, and the keys that have no effect."""
    if name not in types:
        raise InputError(f"{row.name}: queue={brief(name)}: there is no such type")
    keys = types[name]
    kind = keys.get("kind", "")
    if kind not in WORDS:
        known = ", ".join(WORDS)
        raise InputError(
            f"{row.name}: type {brief(name)}: kind={brief(kind)} is not read ({known})"
        )
    words = [kind.replace("-", "_")]
    unread = []
    for whole, value in keys.items():
        key = whole.removeprefix(f"{kind}-")
        word = _word(kind, key, value)
        if word is not None:
            words.append(word)
        elif key not in ("name", "kind", "comment"):
            unread.append(f"{whole}={value}")
    if kind == "pfifo" and "limit" not in " ".join(words):
        words.append("limit 50")
    return " ".join(word for word in words if word), unread


def _word(kind: str, key: str, value: str) -> str | None:
    """Return the words of tc for a key; None if it is not read."""
    if key in WORDS[kind]:
        if key in ("memlimit", "bandwidth") and value in ("0", "", "unlimited"):
            return ""
        return f"{WORDS[kind][key]} {_value(key, value)}"
    if (kind, key) in CHOICES:
        return CHOICES[kind, key].get(value)
    if kind == "cake" and key in NAMED:
        return "" if value in ("none", "") else value.replace(",", " ")
    return None


def _value(key: str, value: str) -> str:
    """Return a value as tc reads it."""
    if key == "bandwidth":
        return re.sub(r"(?i)(bps)?$", "bit", value, count=1)
    return re.sub(r"(?i)([kmg])iB$", r"\1b", value) if key == "memlimit" else value


CHOSEN = {
    "diffserv": ("besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"),
    "flowmode": (
        *("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost"),
        "triple-isolate",
    ),
}
"""Values of keys of cake that are words of tc."""


def write(links: Sequence[Exported], target: str) -> list[str]:
    """Return a type for each of two links, upload and download, and a simple queue with both.

    A rate in the words of cake is cake's, the rate of a class is `max-limit`. Comments name what
    RouterOS cannot say.

    Parameters
    ----------
    links : sequence of Exported
        Upload and download; their devices are the names of the types.
    target : str
        Interface or network of the hosts, whose upload is limited first.
    """
    notes: list[str] = []
    rows: list[str] = []
    limits: list[str] = []
    for one in links:
        notes += comments(one.lines)
        *above, leaf = commands(one.lines)
        words = [word for shaper in above for word in shaper.words]
        limits.append(_short(words[words.index("rate") + 1]) if "rate" in words else "0")
        rows.append(f"add name={one.dev} {_type(leaf.kind, leaf.words, notes)}")
    names = "/".join(one.dev for one in links)
    limit = f" max-limit={'/'.join(limits)}" if set(limits) != {"0"} else ""
    simple = f"add name=shaper target={target}{limit} queue={names}"
    return [*dict.fromkeys(notes), "/queue type", *rows, "/queue simple", simple]


def _short(rate: str) -> str:
    """Return a rate of tc as RouterOS writes it: 950kbit is 950k."""
    return re.sub(r"(?i)bit$", "", rate)


def _type(kind: str, words: Sequence[str], notes: list[str]) -> str:
    """Return the keys of a type, and append comments about words without a key to `notes`."""
    name = kind.replace("_", "-")
    if name not in WORDS:
        raise InputError(f"routeros has no queue type for {kind} ({', '.join(WORDS)})")
    with_value = {word: key for key, word in WORDS[name].items()}
    flags = {
        word: f"{key}={value}"
        for (one, key), values in CHOICES.items()
        if one == name
        for value, word in values.items()
        if word
    }
    if name == "cake":
        flags |= {word: f"{key}={word}" for key, values in CHOSEN.items() for word in values}
    keys, rest = [f"kind={name}"], list(words)
    while rest:
        word = rest.pop(0)
        if word in with_value and rest:
            value = rest.pop(0)
            text = (
                _short(value) if word == "bandwidth" else re.sub(r"(?i)([kmg])b$", r"\1iB", value)
            )
            keys.append(f"{name}-{with_value[word]}={text}")
        elif word in flags:
            keys.append(f"{name}-{flags[word]}")
        else:
            value = f" {rest.pop(0)}" if rest and rest[0][0].isdigit() else ""
            notes.append(f"# {kind} {word}{value}: RouterOS has no key for it")
    if name == "fq-codel" and not any("-ecn=" in key for key in keys):
        keys.append("fq-codel-ecn=yes")
    return " ".join(keys)
