"""Mean of a distribution of flow sizes, in bytes of payload and in bytes on the wire."""

import math
import re
from itertools import pairwise

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.size_table import named_tables
from sojourn._util.units import bytes_of

UNIFORM = re.compile(r"uniform\(([^,()]+),([^,()]+)\)")
MEAN = re.compile(r"(?:exponential|pareto|lomax|lognormal)\((?:mean=)?([^,()]+)[,)].*")
POINTS = re.compile(r"cdf\((?:[^:()]+:)?([^:()]+)\)")


def points(size: str) -> list[tuple[float, float]] | None:
    """Return the points of a table of sizes; None for another distribution."""
    if size in named_tables():
        return [(size, share) for size, share in named_tables()[size]["points"]]
    match = POINTS.fullmatch(size)
    if match is None:
        return None
    pairs = (one.split() for one in match[1].split(","))
    return [(float(bytes_of(value)), float(share)) for value, share in pairs]


def mean(size: str) -> float:
    """Return the mean payload in bytes of a canonical distribution."""
    table = points(size)
    if table is not None:
        return sum((q - p) * (a + b) / 2 for (a, p), (b, q) in pairwise(table))
    if match := UNIFORM.fullmatch(size):
        return (bytes_of(match[1].strip()) + bytes_of(match[2].strip())) / 2
    match = MEAN.fullmatch(size)
    return float(bytes_of(match[1].strip() if match else size))


def mean_packets(size: str, payload: int) -> float:
    """Return the mean number of packets of a flow with `payload` bytes in a full packet.

    Raises InputError unless the distribution is a constant or a table.
    """
    table = points(size)
    if table is None:
        if "(" in size:
            text = "the load on the wire needs a size that is a number or a table"
            raise InputError(f"size: {shown(size)}: {text}")
        return float(max(1, math.ceil(bytes_of(size) / payload)))
    return sum((q - p) * _packets(a, b, payload) for (a, p), (b, q) in pairwise(table) if q > p)


def _packets(low: float, high: float, payload: int) -> float:
    """Return the mean of ceil(s / payload), at least 1, for s uniform between `low` and `high`."""
    if high - low < 1:
        return max(1, math.ceil(high / payload))

    def below(s: float) -> float:
        """Integral of ceil(x / payload) from 0 to s."""
        full = math.floor(s / payload)
        return payload * full * (full + 1) / 2 + (s - full * payload) * (full + 1)

    return (below(high) - below(low)) / (high - low)
