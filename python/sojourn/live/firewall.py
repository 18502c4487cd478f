"""Firewall rules of address translation, for nftables and for iptables.

The policy is a home router's:

- The inside reaches other machines from its own addresses only, which are translated to this
  machine's address.
- Other machines do not reach the inside, except with answers.
- Where forwarding was turned on for links, nothing but packets of links is forwarded.

No rule accepts a packet that another rule of this machine drops, with one exception: if iptables
drops forwarded packets by policy, packets of the link are accepted after all rules.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.live.netdev import Block, has_v6
from sojourn.live.resolver import Proxy

FAR_DEVICES = "sj-far"
"""Prefix of the names of all far devices."""

TOKEN = re.compile(r"sj-far[0-9]+-[0-9a-f]{16}")
"""Form of the name that all rules of a link have (`WayOut.token`)."""

_ANSWERS = "RELATED,ESTABLISHED"


@dataclass(frozen=True)
class WayOut:
    """Address translation for one link."""

    token: str
    """Unique name: the far device and a random number."""
    block: Block
    proxy: Proxy | None = None
    """Ports of the DNS proxy at the far address, if there is one."""
    forwarding: Sequence[str] | None = None
    """Interfaces whose forwarding was turned on for links; None if this machine forwards anyway."""

    @property
    def device(self) -> str:
        """The far device."""
        return self.token.rpartition("-")[0]

    @property
    def comment(self) -> list[str]:
        """The comment of its rules of iptables, as arguments."""
        return ["-m", "comment", "--comment", f"sojourn-{self.token}"]


def table_of(token: str) -> str:
    """Return the name of the table of nftables of a link."""
    return "sojourn_" + token.replace("-", "_")


def nft_table(way: WayOut) -> list[str]:
    """Return the commands of nft that create the table of a link."""
    table, device = f"inet {table_of(way.token)}", f'"{way.device}"'
    families = [("ip", way.block.network), *([("ip6", way.block.network6)] if has_v6() else [])]
    protected = device if way.forwarding is None else f'"{FAR_DEVICES}*"'
    commands = [
        f"add table {table} {{ flags owner; }}",
        f"add chain {table} out {{ type nat hook postrouting priority 100; }}",
        *(
            f"add rule {table} out {family} saddr {inside} oifname != {device} masquerade"
            for family, inside in families
        ),
        f"add chain {table} pass {{ type filter hook forward priority 0; }}",
        *(
            f"add rule {table} pass iifname {device} {family} saddr != {inside} drop"
            for family, inside in families
        ),
        f"add rule {table} pass oifname {protected} ct state established,related accept",
        f"add rule {table} pass oifname {protected} drop",
    ]
    if way.forwarding:
        names = ", ".join(f'"{name}"' for name in way.forwarding)
        commands.append(f"add rule {table} pass meta nfproto ipv4 iifname {{ {names} }} drop")
    if way.proxy is not None:
        commands.append(f"add chain {table} names {{ type nat hook prerouting priority -100; }}")
        commands += [
            f"add rule {table} names iifname {device} ip daddr {way.block.far} {protocol} dport 53 "
            f"dnat ip to {way.block.far}:{port}"
            for protocol, port in (("udp", way.proxy.udp), ("tcp", way.proxy.tcp))
        ]
    return commands


def iptables_rules(way: WayOut) -> list[list[str]]:
    """Return the commands of iptables that add the rules of a link.

    The rules that drop packets come before the machine's rules.
    """
    far, comment = way.block.far, way.comment
    protected = way.device if way.forwarding is None else f"{FAR_DEVICES}+"
    inside = ["-s", str(way.block.network)]
    unsolicited = ["-o", protected, "-m", "conntrack", "!", "--ctstate", _ANSWERS]
    others = [["-i", name, "!", "-o", f"{FAR_DEVICES}+"] for name in way.forwarding or ()]
    drops = [["-i", way.device, "!", *inside], unsolicited, *others]
    nat = ["iptables", "-w", "-t", "nat", "-A"]
    rules = [["iptables", "-w", "-I", "FORWARD", *which, *comment, "-j", "DROP"] for which in drops]
    if has_v6() and shutil.which("ip6tables"):
        first = ["ip6tables", "-w", "-I", "FORWARD"]
        rules.append([*first, *unsolicited, *comment, "-j", "DROP"])
    rules.append(
        [*nat, "POSTROUTING", *inside, "!", "-o", way.device, *comment, "-j", "MASQUERADE"]
    )
    if way.proxy is not None:
        for protocol, port in (("udp", way.proxy.udp), ("tcp", way.proxy.tcp)):
            queries = ["-i", way.device, "-d", far, "-p", protocol, "--dport", "53"]
            translated = ["-j", "DNAT", "--to", f"{far}:{port}"]
            rules.append([*nat, "PREROUTING", *queries, *comment, *translated])
    return rules


def accepting(way: WayOut) -> list[list[str]]:
    """Return rules that accept packets of the link where iptables drops forwarded ones by policy.

    Docker and ufw set that policy. A table of nftables cannot overrule it. The rules are the last,
    so the machine's rules come first.
    """
    if shutil.which("iptables") is None:
        return []
    shown = subprocess.run(
        ["iptables", "-w", "-S", "FORWARD"], capture_output=True, text=True, check=False
    )
    if "-P FORWARD ACCEPT" in shown.stdout.splitlines() or shown.returncode != 0:
        return []
    append = ["iptables", "-w", "-A", "FORWARD"]
    answers = ["-m", "conntrack", "--ctstate", _ANSWERS]
    end = [*way.comment, "-j", "ACCEPT"]
    return [[*append, "-i", way.device, *end], [*append, "-o", way.device, *answers, *end]]


def undo(token: str) -> list[str]:
    """Return the lines of a shell that remove the rules of the link `token`, and no others."""
    assert TOKEN.fullmatch(token)
    lines = [f"nft delete table inet {table_of(token)}"]
    for program, table in (("iptables", "nat"), ("iptables", "filter"), ("ip6tables", "filter")):
        own = f'/--comment "\\{{0,1\\}}sojourn-{token}"\\{{0,1\\}} /s/^-A/-D/p'
        lines.append(
            f"{program} -w -t {table} -S | sed -n '{own}' | "
            f"while read -r rule; do {program} -w -t {table} $rule; done"
        )
    return lines
