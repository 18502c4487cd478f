"""Link layers of access lines: the bytes that each packet takes on the wire in addition to IP.

The values are from tc-cake(8) and tc-stab(8).
"""

from dataclasses import dataclass

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown

ETHERNET_HEADER = 14
"""Bytes that the length of a packet on an Ethernet device has already; `stab` adds to them."""


@dataclass(frozen=True)
class LinkLayer:
    """Framing of packets on a line.

    Attributes
    ----------
    overhead : int
        Bytes that are added to an IP packet.
    mpu : int
        Smallest size on the wire, in bytes; 0 for none.
    framing : str
        "atm" for cells of 53 bytes with 48 of payload, "ptm" for 65 bytes per 64, or "none".
    cake : str
        Words of CAKE.
    about : str
        What the line is, and how sure the values are.
    """

    overhead: int
    mpu: int
    framing: str
    cake: str
    about: str

    def numbers(self) -> str:
        """Return the words of CAKE in numbers, without names of link layers; none for raw."""
        if not self.overhead:
            return ""
        mpu = f" mpu {self.mpu}" if self.mpu else ""
        return (
            f"overhead {self.overhead}{mpu} {'noatm' if self.framing == 'none' else self.framing}"
        )

    def share(self) -> float:
        """Return the share of the rate for a shaper whose `stab` cannot count the framing."""
        return 64 / 65 if self.framing == "ptm" else 1.0

    def stab(self, dev: str) -> str:
        """Return the words of a size table of tc for a device.

        The length of a packet has the Ethernet header already, except on PPP devices.
        """
        overhead = self.overhead - (0 if dev.startswith("ppp") else ETHERNET_HEADER)
        layer = "atm" if self.framing == "atm" else "ethernet"
        return f"stab mtu 2047 tsize 512 mpu {self.mpu} overhead {overhead} linklayer {layer} "


def _adsl(overhead: int, words: str) -> LinkLayer:
    return LinkLayer(overhead, 0, "atm", words, "ADSL: cells of ATM")


LAYERS = {
    "adsl": LinkLayer(48, 0, "atm", "conservative", "ADSL of unknown framing: the largest one"),
    "adsl-ipoa-vc": _adsl(8, "ipoa-vcmux"),
    "adsl-ipoa-llc": _adsl(16, "ipoa-llcsnap"),
    "adsl-pppoa-vc": _adsl(10, "pppoa-vcmux"),
    "adsl-pppoa-llc": _adsl(14, "pppoa-llc"),
    "adsl-bridged-vc": _adsl(24, "bridged-vcmux"),
    "adsl-bridged-llc": _adsl(32, "bridged-llcsnap"),
    "adsl-pppoe-vc": _adsl(32, "pppoe-vcmux"),
    "adsl-pppoe-llc": _adsl(40, "pppoe-llcsnap"),
    "vdsl2-ipoe": LinkLayer(22, 0, "ptm", "bridged-ptm", "VDSL2 without PPP"),
    "vdsl2-ipoe-vlan": LinkLayer(26, 0, "ptm", "bridged-ptm ether-vlan", "VDSL2 without PPP"),
    "vdsl2-pppoe": LinkLayer(30, 0, "ptm", "pppoe-ptm", "VDSL2 with PPPoE"),
    "vdsl2-pppoe-vlan": LinkLayer(34, 0, "ptm", "pppoe-ptm ether-vlan", "VDSL2 with PPPoE"),
    "docsis": LinkLayer(18, 64, "none", "docsis", "cable: Ethernet frames as the head-end counts"),
    "ethernet": LinkLayer(38, 84, "none", "ethernet", "Ethernet with preamble and gap"),
    "ethernet-vlan": LinkLayer(42, 84, "none", "ethernet ether-vlan", "Ethernet with a VLAN"),
    "ethernet-pppoe": LinkLayer(46, 84, "none", "overhead 46 mpu 84 noatm", "PPPoE on Ethernet"),
    "gpon": LinkLayer(
        46,
        84,
        "none",
        "overhead 46 mpu 84 noatm",
        "GPON: which bytes the operator counts is unknown; PPPoE on Ethernet is the safe guess",
    ),
    "lte": LinkLayer(0, 0, "none", "raw", "LTE or 5G: the overhead is unknown and the rate varies"),
    "starlink": LinkLayer(0, 0, "none", "raw", "Starlink: unknown overhead, and the rate varies"),
    "raw": LinkLayer(0, 0, "none", "raw", "the length of the packet on the device"),
}
"""Link layers by the name of `--link-layer`."""

ALIASES = {
    "adsl-pppoe": "adsl-pppoe-llc",
    "adsl-pppoa": "adsl-pppoa-vc",
    "vdsl2": "vdsl2-pppoe-vlan",
    "vdsl2-ptm": "vdsl2-pppoe-vlan",
    "cable": "docsis",
    "5g": "lte",
}
"""Names that stand for the layer with the most overhead among those that they may mean."""


def layer_of(name: str | None) -> LinkLayer | None:
    """Return a link layer by name, None without one. Raises InputError for an unknown name."""
    if name is None:
        return None
    key = name.lower().replace("_", "-")
    key = ALIASES.get(key, key)
    if key not in LAYERS:
        hint = near(name, [*LAYERS, *ALIASES])
        raise InputError(f"--link-layer: unknown link layer {shown(name)}{hint}")
    return LAYERS[key]
