"""Packet captures: recognised, and refused with the command that converts them for a replay."""

import shlex
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn._util.inputs import why

MAGIC = tuple(
    bytes.fromhex(text) for text in ("0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1")
)
"""First bytes of pcapng, and of pcap in both byte orders with microseconds or nanoseconds."""

FIELDS = (
    *("frame.time_relative", "ip.len", "ip.dsfield.ecn", "ip.dsfield.dscp"),
    *("ip.src", "ip.dst", "ip.proto"),
    *("tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"),
)
"""Fields of tshark: the values of a row, then those that tell flows apart."""

ROWS = (
    'BEGIN {FS = "\\t"; print "i,t_us,flow,size_B,ecn,dscp"} '
    "{k = $5; for (j = 6; j <= NF; j++) k = k FS $j; if (!(k in n)) n[k] = flows++; "
    'printf "%d,%.3f,%d,%d,%d,%d\\n", NR, $1 * 1e6, n[k], $2, $3, $4}'
)
"""Program of awk that numbers packets and flows, and writes the columns of a replay."""


def conversion(path: Path) -> str:
    """Return the command of a shell that converts the IPv4 packets of a capture to CSV."""
    fields = " ".join(f"-e {field}" for field in FIELDS)
    return (
        f"tshark -r {shlex.quote(str(path))} -Y ip -T fields -E occurrence=f {fields} | "
        f"sort -s -n | awk {shlex.quote(ROWS)} >{shlex.quote(str(path.with_suffix('.csv')))}"
    )


def check(path: Path) -> None:
    """Raise InputError with the way to convert it if `path` is a packet capture.

    Pipes are left alone: bytes that are read from one are missing afterwards.
    """
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {why(error)}") from None
    if start in MAGIC:
        raise InputError(
            f"{path}: is a packet capture; convert it to CSV (-Y 'ip.dst == 192.0.2.1' selects one "
            f"direction): {conversion(path)}"
        )
