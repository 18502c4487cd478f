"""Generated files agree with the tables of Rust."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import header
import sojourn as sj
import step
from sojourn import _sojourn
from sojourn.scenario.draft import canonical

ROOT = Path(__file__).parent.parent

MODULES = {"qdisc": sj.qdisc, "tcp": sj.tcp, "source": sj.source}

CLASSES: list[tuple[str, Any]] = [
    (module, getattr(public, name))
    for module, public in MODULES.items()
    for name in public.__all__
    if name.lower() != module
]
"""The class of every discipline, TCP and source, with its module."""


def test_generated_files_are_up_to_date() -> None:
    """`make gen` would change nothing."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools/gen.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_model_is_public_and_runs() -> None:
    """Each default object equals Rust's defaults for its name, without redundant parameters."""
    for base, kind in CLASSES:
        # A trace without columns is invalid.
        columns = {"time_s": [0.5], "size_bytes": [100]} if kind is sj.source.Trace else {}
        model = kind(**columns)
        qdisc = model if base == "qdisc" else sj.DropTail()
        tcp = model if base == "tcp" else None
        source = model if base == "source" else sj.Bulk()
        scenario = sj.Scenario(
            duration="1s",
            links={"up": sj.Link(rate="1mbit", qdisc=qdisc)},
            flows=[sj.Flow(name="f", path=["up"], source=source, tcp=tcp, rtt="10ms")],
        )
        tree = canonical(scenario)
        flow = tree["flows"][0]
        part = {"qdisc": tree["links"]["up"]["qdisc"], **flow}[base]
        presets = {one["name"]: one["tcp"] for one in json.loads(_sojourn.specs())["presets"]}
        tag = type(model).__struct_config__.tag
        assert part["name"] == presets.get(tag, tag)


def test_common_classes_are_also_at_the_top_level() -> None:
    """They are the same objects; for the others, the error names their module."""
    for name, module in sj.COMMON.items():
        assert getattr(sj, name) is getattr(MODULES[module], name)
    with pytest.raises(AttributeError, match=r"write sj\.qdisc\.Sfq"):
        _ = sj.Sfq  # type: ignore[attr-defined]


def test_no_two_public_names_differ_by_capitals_only() -> None:
    """Neither at the top level nor in one of its modules, and no class is named like a function."""
    assert len(dir(sj)) <= 84
    listed = [name for public in (sj, *MODULES.values()) for name in _public(public)]
    clashes = {name.lower() for name in set(listed)} - {"qdisc", "tcp", "source"}
    assert len(clashes) == len(set(listed)) - 2 * len(MODULES)


def _public(module: ModuleType) -> list[str]:
    return dir(module) if module is sj else list(module.__all__)


def test_every_parameter_of_the_tables_is_a_field() -> None:
    """Each field accepts its default as documented."""
    tables = json.loads(_sojourn.specs())
    by_name = {(module, kind.__struct_config__.tag): kind for module, kind in CLASSES}
    for module, table in {"qdisc": "disciplines", "tcp": "tcp", "source": "sources"}.items():
        for spec in tables[table]:
            fields = by_name[module, spec["name"]].__struct_encode_fields__
            assert list(fields) == [row["name"] for row in spec["params"]]
    for spec in tables["presets"]:
        fields = by_name["tcp", spec["name"]].__struct_encode_fields__
        assert set(fields) == {row["name"] for row in spec["params"]}


def test_headers_of_rust_files_are_read() -> None:
    """Numbers become a list, ECT(1) is not one of them, and a symbol keeps its case."""
    assert header.numbered("(1) ECT(1) is, as in (3), said. (2) p stays.") == [
        "1. ECT(1) is, as in (3), said.",
        "2. p stays.",
    ]
    assert header.numbered("where it is silent: (1) a step") == [
        "Where it is silent:",
        "",
        "1. A step.",
    ]
    assert header.sections("red")["Symbols"].startswith("`min_th`, `max_th`")
    assert header.gauges("fred", ["avg", "nactive"]) == {
        "avg": "Average queue, packets or bytes.",
        "nactive": "Number of accounts with packets in the queue.",
    }
    with pytest.raises(SystemExit, match="strangeness of red has no description"):
        header.gauges("red", ["strangeness"])


def test_an_outdated_figure_is_detected(tmp_path: Path) -> None:
    """The figure in docs shows the same run as here, and no other discipline."""
    figure = ROOT / "docs/reference/algorithms/disciplines/codel.svg"
    specs = json.loads(_sojourn.specs())["disciplines"]
    runs = step.play([spec for spec in specs if spec["name"] in ("codel", "cobalt")])
    assert step.is_drawn(runs["codel"], figure)
    assert not step.is_drawn(runs["cobalt"], figure)
    fresh = tmp_path / "codel.svg"
    step.draw(runs["codel"], fresh)
    assert step.is_drawn(runs["codel"], fresh)
    assert "codel: controlled delay" in fresh.read_text()
