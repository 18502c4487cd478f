"""Results of ns-2 in the experiments of `codel_dc`, and the table that compares them with ours."""

from typing import TYPE_CHECKING, Any

from sojourn_lab.papers.codel_dc.series import known_mean
from sojourn_lab.reproduction.claims import NoRunsError, Runs, values

if TYPE_CHECKING:
    import polars as pl

NS2_INCAST = {
    ("droptail", 10): (11.151, 100.0, 2.00, 70.3),
    ("droptail", 50): (26.778, 100.0, 5.43, 102.8),
    ("droptail", 100): (41.802, 99.1, 4.70, 116.0),
    ("red", 10): (8.776, 54.8, 4.08, 24.9),
    ("red", 50): (30.710, 59.8, 11.39, 23.4),
    ("red", 100): (38.261, 75.4, 8.84, 26.4),
    ("codel", 10): (5.522, 84.4, 0.87, 36.4),
    ("codel", 50): (23.145, 89.6, 5.09, 38.6),
    ("codel", 100): (33.700, 94.6, 5.58, 49.1),
    ("red-auto", 10): (10.953, 100.0, 1.94, 69.8),
    ("red-auto", 50): (23.549, 92.6, 5.30, 59.7),
    ("red-auto", 100): (34.806, 91.1, 5.19, 64.6),
}
"""By discipline and kB from each of 40 servers: ns-2's mean time of an answer in ms, utilisation
and loss in %, mean queue in packets (3 seeds; equal links)."""

NS2_APART = {
    ("droptail", 10): (6.796, 99.1, 1.49),
    ("droptail", 50): (16.880, 96.8, 7.98),
    ("red", 10): (8.913, 53.5, 3.97),
    ("red", 50): (28.179, 60.0, 11.75),
}
"""The same, without the queue, with every link 137 ns longer than the previous one
(`lab/vectors/scenarios/reruns/switch.csv`, 6 seeds)."""

NS2_VARY = {
    ("droptail", 8): (24.772, 99.0, 4.37, 75.4),
    ("droptail", 16): (24.221, 100.0, 4.63, 85.0),
    ("droptail", 32): (19.707, 99.8, 6.44, 72.1),
    ("droptail", 64): (19.100, 99.4, 7.23, 75.1),
    ("droptail", 128): (10.097, 93.5, 10.32, 66.8),
    ("red", 8): (17.906, 54.1, 14.08, 26.5),
    ("red", 16): (18.216, 58.2, 13.83, 25.5),
    ("red", 32): (18.715, 63.1, 11.80, 22.6),
    ("red", 64): (17.435, 57.6, 14.19, 19.8),
    ("red", 128): (18.295, 43.7, 18.22, 19.4),
    ("codel", 8): (17.438, 83.6, 4.34, 43.1),
    ("codel", 16): (17.981, 87.6, 4.86, 37.9),
    ("codel", 32): (18.411, 88.2, 5.01, 33.6),
    ("codel", 64): (16.576, 84.6, 6.66, 37.3),
    ("codel", 128): (10.961, 79.7, 12.68, 57.8),
}
"""The same by the number of servers that send 1000 kB together (2 seeds)."""

NS2_POISSON = {
    ("droptail", 10): (9.904, 100.0, 0.20, 129.8),
    ("droptail", 30): (9.279, 100.0, 0.41, 117.3),
    ("droptail", 50): (9.085, 100.0, 0.73, 116.2),
    ("droptail", 70): (11.115, 100.0, 1.61, 127.2),
    ("droptail", 90): (21.352, 100.0, 4.87, 158.6),
    ("red", 10): (3.237, 96.6, 0.10, 16.3),
    ("red", 30): (3.552, 93.4, 0.27, 19.9),
    ("red", 50): (4.256, 92.3, 0.67, 23.0),
    ("red", 70): (5.794, 95.1, 1.48, 29.1),
    ("red", 90): (13.450, 98.8, 4.72, 40.2),
    ("codel", 10): (3.333, 98.6, 0.10, 17.5),
    ("codel", 30): (3.485, 95.9, 0.20, 22.1),
    ("codel", 50): (4.092, 95.2, 0.46, 27.6),
    ("codel", 70): (6.140, 96.1, 1.60, 33.6),
    ("codel", 90): (17.993, 99.0, 7.66, 41.8),
}
"""The same by the load of short flows in % (2 seeds)."""

NS2_TARGETS = {0.01: 80.88, 0.1: 92.39, 0.15: 96.01, 0.2: 98.59, 0.3: 100.0, 0.4: 100.0, 1: 100.0}
"""By target in ms: the utilisation in % by one flow."""

COMPARED = ("incast", "servers", "loads", "incast settings")
"""Experiments that also ran in ns-2, and the one with links that differ.

Of queries ns-2 made 20 per run; the comparison is of our first 20.
"""


def compared_to_ns2(runs: Runs) -> "pl.DataFrame":
    """Return ns-2's numbers and ours, for the points that both have run.

    Links are equal, except in the columns about different links. Of queries the first 20 count.
    """
    import polars as pl

    rows = []
    for name, x, recorded in (
        ("incast", "kB", NS2_INCAST),
        ("servers", "servers", NS2_VARY),
        ("loads", "load", NS2_POISSON),
    ):
        there = set(runs[name].select("scheme", x).iter_rows())
        first = "" if x == "load" else "first_"
        for (scheme, place), theirs in recorded.items():
            if (scheme, place) not in there:
                continue
            ours = [
                _scaled(values(runs[name], first + what, scheme=scheme, **{x: place}), scale)
                for what, scale in zip(WHAT, SCALES, strict=True)
            ]
            apart = NS2_APART.get((scheme, place)) if x == "kB" else None
            different = None
            if apart is not None:
                own = {"setting": "links that differ by 137 ns", "scheme": scheme, "kB": place}
                different = _known(runs["incast settings"], own)
            times = (theirs[0], ours[0], apart and apart[0], different)
            pairs = zip(theirs[1:], ours[1:], strict=True)
            rows.append((f"{x} {place}", scheme, *times, *(one for pair in pairs for one in pair)))
    whose = ("ns-2", "ours", "ns-2, different links", "ours, different links")
    heads = [f"mean time, ms: {one}" for one in whose]
    heads += [f"{what}: {one}" for what in HEADS for one in ("ns-2", "ours")]
    return pl.DataFrame(rows, schema=["case", "discipline", *heads], orient="row", strict=False)


def _scaled(column: Any, scale: float) -> float | None:
    """Return the scaled mean over the seeds that have a value; None if none has."""
    mean = known_mean(column)
    return None if mean is None else scale * mean


def _known(frame: "pl.DataFrame", labels: dict[str, Any]) -> float | None:
    """Return the mean time in ms of the runs with these labels; None if quick mode omits them."""
    try:
        return _scaled(values(frame, "first_afct_s", **labels), 1e3)
    except NoRunsError:
        return None


WHAT = ("afct_s", "utilisation", "loss", "queue_packets")
SCALES = (1e3, 100, 100, 1)
HEADS = ("utilisation, %", "loss, %", "queue, packets")


def util(recorded: tuple[float, ...]) -> str:
    """Format ns-2's utilisation."""
    return f"{recorded[1]:.1f} %"


def faster(ours: tuple[float, ...], theirs: tuple[float, ...]) -> str:
    """Format by how much the mean time is shorter in ns-2."""
    return f"{100 * (1 - ours[0] / theirs[0]):.1f} %"
