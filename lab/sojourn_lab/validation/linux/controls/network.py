"""Network of Linux for a run: sender, router and receiver in namespaces of one kernel.

The sender's namespace, s, is connected to the router's, r, and that one to the
receiver's, d. Netem on both ends delays packets by half the round-trip time, and loses some of the
sender's. The device r1 has HTB with the qdisc.
"""

from dataclasses import dataclass

BUFFERS = "4096 16777216 33554432"
"""Buffers of sockets, bytes: larger than any window here."""

SYSCTLS = {"tcp_rmem": BUFFERS, "tcp_wmem": BUFFERS, "tcp_timestamps": "2"}
"""Settings of sender and receiver: lp cannot use time stamps with random offsets."""

FRAME = 1514
"""Bytes of a frame, and of the bucket of HTB."""

MACS = {"s0": 1, "r0": 2, "r1": 3, "d0": 4}
ADDRESSES = {"s0": "10.9.1.1", "r0": "10.9.1.254", "r1": "10.9.2.254", "d0": "10.9.2.1"}
NEIGHBOURS = {"s0": "r0", "r0": "s0", "r1": "d0", "d0": "r1"}
REMOTE = {"s0": "10.9.2.0/24", "d0": "10.9.1.0/24"}


@dataclass(frozen=True)
class Setup:
    """Path of a run."""

    name: str
    rate_mbit: int
    rtt_ms: int
    tc: str
    """Words after `tc qdisc add dev r1 parent 1:1 handle 10:`."""
    loss: float = 0
    """Share of data packets that is lost at random before the queue."""
    rival: str = ""
    """Control of a second flow."""
    seconds: int = 20
    warm: int = 4


def mac(device: str) -> str:
    """Return the address of a device."""
    return f"02:00:00:00:00:0{MACS[device]}"


def prepare() -> list[str]:
    """Return the commands before the first run: namespaces in a file system of their own."""
    make = [f"ip netns add {space}" for space in "srd"]
    forward = 'ip netns exec r sh -c "echo 1 > /proc/sys/net/ipv4/ip_forward"'
    settings = [
        f'ip netns exec {space} sh -c "echo {value} > /proc/sys/net/ipv4/{name}"'
        for space in "sd"
        for name, value in SYSCTLS.items()
    ]
    return ["mount -t tmpfs none /run", *make, forward, *settings]


def up(setup: Setup) -> list[str]:
    """Return the commands that build the network of a run."""
    lines = []
    for left, right in (("s0", "r0"), ("r1", "d0")):
        ends = [f"{d} address {mac(d)} netns {d[0]}" for d in (left, right)]
        lines.append(f"ip link add {ends[0]} type veth peer name {ends[1]}")
    for device, address in ADDRESSES.items():
        other, ip = NEIGHBOURS[device], f"ip -n {device[0]}"
        lines += [
            f"{ip} addr add {address}/24 dev {device}",
            f"{ip} link set {device} up gso_max_segs 1",
            f"{ip} neigh add {ADDRESSES[other]} lladdr {mac(other)} dev {device} nud permanent",
        ]
    for device, remote in REMOTE.items():
        loss = f" loss {100 * setup.loss:g}%" if setup.loss and device == "s0" else ""
        lines += [
            f"ip -n {device[0]} route add {remote} via {ADDRESSES[NEIGHBOURS[device]]}",
            f"tc -n {device[0]} qdisc add dev {device} root netem delay {setup.rtt_ms / 2:g}ms"
            f"{loss} limit 200000",
        ]
    rate = f"rate {setup.rate_mbit}mbit burst {FRAME} cburst {FRAME} quantum {FRAME}"
    return [
        *lines,
        "tc -n r qdisc add dev r1 root handle 1: htb default 1",
        f"tc -n r class add dev r1 parent 1: classid 1:1 htb {rate}",
        f"tc -n r qdisc add dev r1 parent 1:1 handle 10: {setup.tc}",
    ]


def down() -> list[str]:
    """Return the commands that remove the network of a run."""
    return ["ip -n s link del s0", "ip -n r link del r1"]
