"""A sweep on a Ray cluster: pip install sojourn ray, on all machines.

Run it where Ray runs, or set RAY_ADDRESS; without a cluster, Ray starts workers on this machine.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

import sojourn as sj


class RayPool(Executor):
    """The interface of `concurrent.futures` on the cores of a Ray cluster.

    Ray repeats a task whose worker died twice. sojourn then repeats its runs alone, so that only a
    run that ends its worker again has failed.
    """

    def __init__(self) -> None:
        @ray.remote(max_retries=2)  # a local function travels to the workers as it is
        def call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return fn(*args, **kwargs)

        ray.init(log_to_driver=False, ignore_reinit_error=True)
        self._max_workers = int(ray.cluster_resources()["CPU"])
        self._call = call

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Start a task, and return its future."""
        future: Future[Any] = self._call.remote(fn, args, kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from the cluster; unfinished tasks end."""
        ray.shutdown()


if __name__ == "__main__":
    axes = {"bottleneck.qdisc": ["codel", "pie"], "bulk.count": [4, 16]}
    with RayPool() as pool:
        print(sj.sweep("sweep-base.toml", axes, seeds=100, out="load", executor=pool))
