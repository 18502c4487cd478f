"""Read packet captures: pcap and pcapng files, gzipped or not, as arrivals at a queue."""

import gzip
import ipaddress
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sojourn._sojourn import InputError, read_capture
from sojourn._util.inputs import brief, shown, why
from sojourn._util.units import counted

Array = npt.NDArray[Any]

MAGIC = tuple(
    bytes.fromhex(text) for text in ("0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1")
)
"""First bytes of pcapng, and of pcap in both byte orders with microseconds or nanoseconds."""

SUFFIXES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz")
"""Names of captures."""

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""

PACKED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"\x04\x22\x4d\x18": "lz4"}
"""First bytes of other compressed files, and the program that decompresses them."""

DIRECTIONS = ("in", "out", "both")
"""Values of `direction`."""


@dataclass(frozen=True)
class Selection:
    """Packets of a capture to read.

    Attributes
    ----------
    direction : str, optional
        "in" or "out", as the file calls the direction; "both" reads both directions as the packets
        of one queue.
    source, destination : str, optional
        Address or network of the sender and of the receiver, like "192.0.2.1" or "2001:db8::/32".
    """

    direction: str | None = None
    source: str | None = None
    destination: str | None = None


@dataclass(frozen=True)
class Capture:
    """Packets of a capture in order of time, one row each.

    Attributes
    ----------
    t_ns : array of int64
        Time since the first packet, in nanoseconds.
    flow : array of uint32
        Number of the flow (addresses, protocol and ports), in order of appearance.
    size : array of uint32
        Length of the IP packet in bytes, before capture cut it off.
    ecn : array of uint8
        ECN field of the IP header.
    headers : array of int64, shape (4, packets)
        DSCP, numbers of sender and receiver, and the acknowledgement number of a TCP ACK without
        payload (-1 for other packets).
    other : int
        Number of frames without an IP packet, which are left out.
    excluded : int
        Number of IP packets that were not selected.
    """

    t_ns: Array
    flow: Array
    size: Array
    ecn: Array
    headers: Array
    other: int
    excluded: int


def is_capture(path: Path) -> bool:
    """Return True if `path` is a file that starts as a capture does, gzipped or not.

    Pipes are left alone: bytes that are read from one are missing afterwards.

    Raises
    ------
    InputError
        If the file cannot be read, is compressed in another way, or has the name of a capture and
        other contents.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(4)
        if start.startswith(GZIP):
            with gzip.open(path) as packed:
                start = packed.read(4)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        if not path.name.lower().endswith(SUFFIXES):
            return False  # whoever reads the file says so
        raise InputError(f"{path}: {_why(error)}") from None
    if start in MAGIC:
        return True
    for first, program in PACKED.items():
        if start == first:
            text = f"is compressed with {program}; decompress it, or use gzip"
            raise InputError(f"{path}: {text}")
    if path.name.lower().endswith(SUFFIXES):
        raise InputError(f"{path}: is not a packet capture (pcap or pcapng)")
    return False


def read(path: Path, selection: Selection | None = None) -> Capture:
    """Read the IP packets of a capture.

    Parameters
    ----------
    path : Path
        File of pcap or pcapng, gzipped or not.
    selection : Selection, optional
        Packets to read. The default is all of them.

    Raises
    ------
    InputError
        If the file cannot be read or is damaged, has no selected packet, or has packets of both
        directions and `selection` names none.
    """
    selection = selection or Selection()
    source = _network("--from", selection.source)
    destination = _network("--to", selection.destination)
    direction = selection.direction
    if direction is not None and direction not in DIRECTIONS:
        raise InputError(f"--direction: {shown(direction)} is none of {', '.join(DIRECTIONS)}")
    wanted = None if direction == "both" else direction
    try:
        with _opened(path) as file:
            columns = read_capture(file, wanted, source, destination)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {_why(error)}") from None
    capture = Capture(
        t_ns=columns["t_ns"],
        flow=columns["flow"],
        size=columns["size_B"],
        ecn=columns["ecn"],
        headers=np.array(columns["headers"], np.int64).reshape(4, -1),
        other=columns["other"],
        excluded=columns["excluded"],
    )
    if not len(capture.t_ns):
        raise InputError(f"{path}: {_nothing(capture, wanted, columns['directions'])}")
    if direction is None:
        _check_one_way(path, columns)
    empty = np.flatnonzero(capture.size == 0)
    if len(empty):
        raise InputError(f"{path}: packet {int(empty[0]) + 1} has a length of 0 bytes")
    return capture


def note(capture: Capture) -> str | None:
    """Return what is left out of a capture, None if nothing is."""
    if not capture.other:
        return None
    return f"{counted(capture.other, 'frame')} without an IP packet left out"


def _opened(path: Path) -> gzip.GzipFile | BinaryIO:
    """Open a capture for reading, decompressed."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return gzip.open(path) if packed else path.open("rb")


def _why(error: Exception) -> str:
    """Return the reason why a file could not be read."""
    if isinstance(error, OSError) and error.errno is not None:
        return why(error)
    return "this gzip file is damaged"


def _network(name: str, text: str | None) -> tuple[bytes, int] | None:
    """Return the address and the length of the prefix of a network."""
    if text is None:
        return None
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        example = "write it like 192.0.2.1, 10.0.0.0/8 or 2001:db8::1"
        raise InputError(f"{name}: {brief(text)} is not an address; {example}") from None
    return network.network_address.packed, network.prefixlen


def _nothing(capture: Capture, wanted: str | None, directions: Sequence[int]) -> str:
    """Return the reason why no packet was selected."""
    if capture.excluded:
        if wanted is not None and not any(directions):
            return "does not say which packets came in and went out; choose with --from or --to"
        packets = counted(capture.excluded, "IP packet")
        return f"none of its {packets} is chosen by --direction, --from and --to"
    if capture.other:
        return f"has {counted(capture.other, 'frame')}, none with an IP packet"
    return "has no packets"


def _check_one_way(path: Path, columns: dict[str, Any]) -> None:
    """Raise InputError if the selected packets cross two queues."""
    two_way = columns["two_way"]
    if two_way is None:
        return
    ways = f"--to {two_way}, --from {two_way}"
    if all(columns["directions"]):
        ways = f"--direction in, --direction out, {ways}"
    raise InputError(
        f"{path}: has packets in both directions; choose one ({ways}), or --direction both if "
        "they share a queue"
    )
