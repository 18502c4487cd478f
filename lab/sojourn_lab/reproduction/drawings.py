"""Own drawings of what papers explain with a picture: topologies, and maps of drop probability."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sojourn.plotting.lines import style
from sojourn.plotting.run import legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = tuple[float, float]


def topology(
    ax: "Axes",
    nodes: Mapping[str, Place],
    links: Sequence[tuple[str, str, str]],
    queues: Sequence[tuple[str, str]] = (),
) -> None:
    """Draw named nodes, links between them with a label each, and the queues under test.

    A link is (from, to, label). A queue is named by its link, and drawn at the link's start.
    """
    for one, other, label in links:
        (x1, y1), (x2, y2) = nodes[one], nodes[other]
        bold = (one, other) in queues
        ax.plot([x1, x2], [y1, y2], color="#555555", lw=2.2 if bold else 1.1, zorder=1)
        if label:
            # Above a horizontal link, which may have queues at both ends; else on the link.
            above = y1 == y2
            ax.annotate(label, ((x1 + x2) / 2, (y1 + y2) / 2), (0, 6 if above else 0), fontsize=7,
                        textcoords="offset points", ha="center", va="bottom" if above else "center",
                        zorder=3, bbox={"fc": "white", "ec": "none", "pad": 1})  # fmt: skip
        if bold:
            at = (x1 + 0.27 * (x2 - x1), y1 + 0.27 * (y2 - y1))
            ax.plot([at[0]], [at[1]], marker="s", ms=7, mfc="#e69f00", mec="#000000", zorder=4)
    for name, (x, y) in nodes.items():
        box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": "#333333", "lw": 0.9}
        ax.text(x, y, name, ha="center", va="center", fontsize=8, zorder=2, bbox=box)
    if queues:
        ax.plot([], [], marker="s", ms=8, ls="", mfc="#e69f00", mec="#000000",
                label="queue under test")  # fmt: skip
    xs, ys = zip(*nodes.values(), strict=True)
    ax.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.5, max(ys) + 0.5))
    ax.axis("off")
    legend(ax)


def drop_curve(
    ax: "Axes",
    curves: Mapping[str, Sequence[Place]],
    ticks: Mapping[float, str],
    heights: Mapping[float, str],
    label: str = "average queue",
) -> None:
    """Draw drop probability over a queue: straight lines through the points of each curve.

    `ticks` and `heights` name places on the axes.
    """
    for n, (name, points) in enumerate(curves.items()):
        xs, ys = zip(*points, strict=True)
        ax.plot(xs, ys, label=name, **style(n) | {"marker": ""})
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.set_yticks(list(heights), list(heights.values()))
    ax.set(xlabel=label, ylabel="drop probability", xlim=(0, None), ylim=(0, 1.05))
    legend(ax)
