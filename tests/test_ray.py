"""The Ray adapter of examples/cluster runs a sweep; a run that ends its worker is a failure."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import pytest

import sojourn as sj
from support.sweep_cases import AXES, CASE

pytest.importorskip("ray", reason="ray is not installed: pip install ray (0.3 GB)")

ADAPTER = Path(__file__).parent.parent / "examples" / "cluster" / "ray_pool.py"


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    """Workers of Ray on this machine."""
    spec = importlib.util.spec_from_file_location("ray_pool", ADAPTER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ray_pool"] = module
    spec.loader.exec_module(module)
    with module.RayPool() as pool:
        yield pool


def test_a_sweep_has_the_table_of_one_machine(pool: Executor, tmp_path: Path) -> None:
    """Every run is executed once and stored."""
    rows = sj.sweep(CASE, AXES, seeds=3, out=tmp_path / "load", executor=pool)
    assert rows.equals(sj.sweep(CASE, AXES, seeds=3))
    assert sj.results(tmp_path / "load").height == rows.height


def test_a_future_has_results_and_exceptions(pool: Executor) -> None:
    """As `concurrent.futures` has them."""
    assert pool.submit(pow, 2, exp=10).result() == 1024
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result()


def test_a_worker_that_ends_is_an_exception_of_its_task(pool: Executor) -> None:
    """Other tasks go on."""
    ended = pool.submit(os._exit, 3)
    assert pool.submit(pow, 2, 5).result() == 32
    with pytest.raises(Exception, match="worker"):
        ended.result()
