"""A recommended setting in the formats of routers: what `--format` prints.

Sources: sqm-scripts 95337de (run-openwrt.sh), systemd.network(5), nm-settings-keyfile(5), RouterOS
documentation (Queues), LibreQoS (ShapedDevices.csv). Comments name what a format cannot say.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.formats import networkd, networkmanager, routeros
from sojourn.formats.commands import Exported
from sojourn.recommendation import script
from sojourn.recommendation.line import SHAPED, Line
from sojourn.recommendation.link_layer import ETHERNET_HEADER, LinkLayer


@dataclass(frozen=True)
class Setting:
    """Recommended setting on a device: line, discipline, devices, link layer."""

    line: Line
    qdisc: Mapping[str, Any]
    dev: str
    ifb: str
    layer: LinkLayer | None

    @property
    def words(self) -> list[str]:
        """Words of the discipline for tc, its kind first."""
        return script.words_of(self.qdisc, self.dev)[0].split()

    @property
    def kind(self) -> str:
        """Kind of the qdisc."""
        return self.words[0]

    def kbit(self, way: str) -> int:
        """Return the rate of the shaper of a direction."""
        bps = self.line.down_bps if way == "down" else self.line.up_bps
        share = self.layer.share() if self.layer and self.kind != "cake" else 1.0
        return round(bps * SHAPED / 1e3 * share)

    def cake(self, way: str) -> str:
        """Return the words of CAKE after its kind, with a framing in numbers."""
        own = script.cake_words(self.line, None, is_download=way == "down")
        framing = self.layer.numbers() if self.layer else ""
        words = [f"bandwidth {self.kbit(way)}kbit", own, framing, *self.words[1:]]
        return " ".join(word for word in words if word)

    def exported(self, way: str, dev: str) -> Exported:
        """Return a direction as the writers of formats take it."""
        lines = list(script.words_of(self.qdisc, self.dev)[1])
        add = f"tc qdisc add dev {dev}"
        link: dict[str, Any] = {}
        if not self.line.shaped:
            lines.append(f"{add} root handle 1: {' '.join(self.words)}")
        elif self.kind == "cake":
            lines.append(f"{add} root handle 1: cake {self.cake(way)}")
        else:
            rate, burst, quantum = script.htb_numbers(self.kbit(way))
            link["rate"] = f"{rate}kbit"
            if self.layer:
                lines.append(f"# {self.layer.stab(dev)}: this format has no size table")
            lines += [
                f"{add} root handle 1: htb default 1",
                f"tc class add dev {dev} parent 1: classid 1:1 htb rate {rate}kbit burst {burst} "
                f"cburst {burst} quantum {quantum}",
                f"{add} parent 1:1 handle 10: {' '.join(self.words)}",
            ]
        leaf = {"kind": self.kind, "line": " ".join(self.words), "below": []}
        return Exported(dev, link, leaf, lines)


def write(setting: Setting, name: str) -> list[str]:
    """Return the lines of a setting in a format, one of `FORMATS`.

    Raises InputError if the format is unknown or has no shaper.
    """
    if name not in FORMATS:
        hint = near(name, list(FORMATS))
        raise InputError(f"--format: {shown(name)} is none of {', '.join(FORMATS)}{hint}")
    return list(FORMATS[name](setting))


def _shell(setting: Setting) -> list[str]:
    """Return the commands of tc."""
    return script.install(setting.line, setting.qdisc, setting.dev, setting.ifb, setting.layer)


def _sqm(setting: Setting) -> list[str]:
    """Return a queue of sqm-scripts (/etc/config/sqm), which redirects the download by itself."""
    _needs_shaper(setting, "sqm")
    is_cake, layer = setting.kind == "cake", setting.layer
    options = {
        "enabled": "1",
        "interface": setting.dev,
        "download": str(setting.kbit("down")),
        "upload": str(setting.kbit("up")),
        "script": "layer_cake.qos" if is_cake else "simplest.qos",
        "qdisc": setting.kind,
        "qdisc_advanced": "1",
        "qdisc_really_really_advanced": "1",
        "squash_dscp": "1",
        "squash_ingress": "1",
        "linklayer": "none",
    }
    if layer and layer.overhead:
        # A size table counts what the length on the device lacks; cake counts from the IP packet.
        has = 0 if is_cake or setting.dev.startswith("ppp") else ETHERNET_HEADER
        options |= {
            "linklayer": "atm" if layer.framing == "atm" else "ethernet",
            "overhead": str(layer.overhead - has),
            "tcMPU": str(layer.mpu),
            "linklayer_adaptation_mechanism": "cake" if is_cake else "tc_stab",
        }
    for letter, way in (("i", "down"), ("e", "up")):
        options |= _sqm_side(setting, letter, way)
    lines = [f"config queue '{setting.dev.replace('-', '_').replace('.', '_')}'"]
    return lines + [f"\toption {key} '{value}'" for key, value in options.items() if value]


def _sqm_side(setting: Setting, letter: str, way: str) -> dict[str, str]:
    """Return the options of a direction: words of tc that the script appends to its own."""
    words = setting.words[1:]
    if setting.kind == "cake":
        own = script.cake_words(setting.line, None, is_download=way == "down").split()
        # layer_cake adds nat to both directions, besteffort and wash to the download.
        own = [word for word in own if word not in ("nat", "besteffort", "wash")]
        ptm = ["ptm"] if setting.layer and setting.layer.framing == "ptm" else []
        return {f"{letter}qdisc_opts": " ".join([*own, *ptm, *words])}
    side = {f"{letter}target": "default"}
    for key in ("limit", "target"):
        if key in words:
            at = words.index(key)
            side[f"{letter}{key}"] = words[at + 1]
            del words[at : at + 2]
    marks = "noecn" not in words and ("ecn" in words or setting.kind == "fq_codel")
    name = "egress_ecn" if letter == "e" else "ingress_ecn"
    rest = [word for word in words if word not in ("ecn", "noecn")]
    return {**side, name: "ECN" if marks else "NOECN", f"{letter}qdisc_opts": " ".join(rest)}


UNIT = """
# {ifb}.service: networkd has no section for the redirection of the download
[Unit]
Description=Shape what {dev} receives on {ifb}
BindsTo=sys-subsystem-net-devices-{path}.device
After=sys-subsystem-net-devices-{path}.device systemd-networkd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-tc qdisc add dev {dev} handle ffff: ingress
ExecStart=tc filter replace dev {dev} ingress protocol all pref {pref} handle 1 matchall action \
mirred egress redirect dev {ifb}
ExecStop=tc filter del dev {dev} ingress protocol all pref {pref}

[Install]
WantedBy=multi-user.target"""
"""Unit of systemd that redirects the download."""


def _networkd(setting: Setting) -> list[str]:
    """Return .network files of both directions, the .netdev of the ifb, and a unit."""
    dev, ifb = setting.dev, setting.ifb
    if not setting.line.shaped:
        return networkd.write([setting.exported("up", dev)])
    netdev = ["", f"# {ifb}.netdev", "[NetDev]", f"Name={ifb}", "Kind=ifb", ""]
    up, down = setting.exported("up", dev), setting.exported("down", ifb)
    path = dev.replace("-", "\\x2d")
    unit = UNIT.format(dev=dev, ifb=ifb, path=path, pref=script.PREFERENCE).splitlines()
    return [*networkd.write([up]), *netdev, *networkd.write([down]), *unit]


def _networkmanager(setting: Setting) -> list[str]:
    """Return a connection of NetworkManager."""
    if setting.line.shaped:
        raise InputError(
            "--format: networkmanager has no shaper (no class, and it drops the words of cake), so "
            "the queue would stay in the modem; write shell or networkd, or give --no-shaper"
        )
    return networkmanager.write([setting.exported("up", setting.dev)])


def _routeros(setting: Setting) -> list[str]:
    """Return queue types and a simple queue of RouterOS."""
    _needs_shaper(setting, "routeros")
    name = setting.dev
    sides = [setting.exported(way, f"{name}-{way}") for way in ("up", "down")]
    comment = (
        f"# target is the side of the home, whose upload is the first value: bridge, not {name}"
    )
    return [comment, *routeros.write(sides, target="bridge")]


COLUMNS = (
    *("Circuit ID", "Circuit Name", "Device ID", "Device Name", "Parent Node", "MAC", "IPv4"),
    *("IPv6", "Download Min Mbps", "Upload Min Mbps", "Download Max Mbps", "Upload Max Mbps"),
    *("Comment", "sqm"),
)
"""Columns of ShapedDevices.csv."""

LEAST = 0.1
"""Share of its rates that a circuit is guaranteed."""


def _libreqos(setting: Setting) -> list[str]:
    """Return the entry of a circuit of LibreQoS; the column Comment names what it cannot say."""
    _needs_shaper(setting, "libreqos")
    if setting.kind not in ("cake", "fq_codel"):
        raise InputError(f"--format: libreqos has cake and fq_codel, not {setting.kind}")
    mbit = [setting.kbit(way) / 1e3 for way in ("down", "up")]
    notes = ["fill in Parent Node and IPv4 or IPv6"]
    if len(setting.words) > 1:
        notes.append(f"words are for all circuits: {' '.join(setting.words[1:])}")
    if setting.layer and setting.layer.overhead:
        notes.append(f"no overhead of the line: {setting.layer.numbers()}")
    row = [setting.dev, setting.dev, setting.dev, setting.dev, "", "", "", ""]
    row += [f"{rate * share:g}" for share in (LEAST, 1.0) for rate in mbit]
    row += ["; ".join(notes), f"{setting.kind}/{setting.kind}"]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, row])
    return text.getvalue().splitlines()


def _needs_shaper(setting: Setting, name: str) -> None:
    """Raise InputError unless the line is shaped."""
    if not setting.line.shaped:
        raise InputError(f"--format: {name} shapes by itself; give --shaper, or write shell")


FORMATS: Mapping[str, Callable[[Setting], Sequence[str]]] = {
    "shell": _shell,
    "sqm": _sqm,
    "networkd": _networkd,
    "networkmanager": _networkmanager,
    "routeros": _routeros,
    "libreqos": _libreqos,
}
"""Writers by the name of `--format`."""
