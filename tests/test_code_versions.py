"""Versions of classes in Python in one store: a changed source is run again, equal code is not."""

import importlib
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.sweeps.store import Store
from support.sweep_cases import CASE, ran

HEAD = "import sojourn as sj\n"

QDISC = """
class Own(sj.Aqm):
    def on_dequeue(self, packet, queue):
        return sj.DROP if packet.sojourn > 20_000_000 else sj.PASS
"""

CONTROL = """
class Own(sj.CongestionControl):
    def on_ack(self, tcp):
        tcp.cwnd += tcp.acked / 20
"""

SOURCE = """
class Own(sj.TrafficSource):
    def next_arrival(self, flow):
        return flow.now + 20_000_000, 2000
"""

KINDS = [("up.qdisc", QDISC), ("flows.bulk.tcp", CONTROL), ("flows.bulk.source", SOURCE)]


@contextmanager
def executor_of(how: str) -> Iterator[Executor]:
    """Yield an executor of two processes, or of a Dask cluster."""
    if how == "processes":
        from sojourn._util.workers import Workers

        with Workers(2) as executor:
            yield executor
        return
    distributed: Any = importlib.import_module("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor(pure=False, retries=2) as executor,
    ):
        yield executor


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["processes", "dask"])
def test_a_changed_source_is_run_again(how: str, tmp_path: Path) -> None:
    """On workers, which get the source with the runs; each version has its own results."""
    with executor_of(how) as executor:
        for n, (key, text) in enumerate(KINDS):
            own, out = tmp_path / f"own{n}.py", tmp_path / f"out{n}"
            axes = {"what": {"set": key, "values": {"own": f"{own}:Own"}}}

            def swept(
                source: str, own: Path = own, out: Path = out, axes: Any = axes
            ) -> tuple[Any, int]:
                own.write_text(HEAD + source)
                table = sj.sweep(CASE, axes, seeds=2, out=out, executor=executor)
                assert table.drop("code", "key").equals(
                    sj.sweep(CASE, axes, seeds=2).drop("code", "key")
                )
                return table, len(Store(out).rows())

            first, count = swept(text)
            assert count == 2
            again, count = swept(text)
            assert count == 2, "unchanged code is not run again"
            assert again.equals(first)
            edited, count = swept(text.replace("20", "35"))
            assert count == 4
            assert edited["goodput_bps"].to_list() != first["goodput_bps"].to_list()
            assert edited["code"][0] != first["code"][0]
            back, count = swept(text)
            assert count == 4, "the first version is still in the store"
            assert back.equals(first)
            _, count = swept(f"# A comment.\n{text}")
            assert count == 6, "the whole text of the file is hashed"


def test_results_tell_versions_apart(tmp_path: Path) -> None:
    """One line says that there are several; the column `code` separates them."""
    own, out = tmp_path / "own.py", tmp_path / "out"
    axes = {"what": {"set": "up.qdisc", "values": {"own": f"{own}:Own", "codel": "codel"}}}
    own.write_text(HEAD + QDISC)
    first = sj.sweep(CASE, axes, seeds=2, out=out)
    assert first["code"].null_count() == 2
    assert ran("results", out, "--by", "what").stderr == ""
    own.write_text(HEAD + QDISC.replace("20", "35"))
    second = sj.sweep(CASE, axes, seeds=2, out=out)
    done = ran("results", out, "--by", "what,code")
    assert done.stderr == (
        f"sojourn: {out}: runs with the same labels are of 2 versions of your own code; "
        "--by what,code separates them\n"
    )
    for table in (first, second):
        assert table["code"].drop_nulls()[0] in done.stdout
    assert "code" not in sj.sweep(CASE, {"up.qdisc": ["codel"]}).columns
