"""A sweep on a cluster with Slurm: pip install 'sojourn[cluster]' dask-jobqueue.

Run it on the login node, where it stays until the sweep is over. If it is stopped, or jobs end at
their time limit, the same command continues.
"""

from dask_jobqueue import SLURMCluster
from distributed import Client

import sojourn as sj

JOBS, CORES = 4, 32

if __name__ == "__main__":
    cluster = SLURMCluster(
        cores=CORES,
        processes=CORES,  # a run takes one core
        memory="64GB",
        walltime="02:00:00",
    )
    cluster.adapt(minimum_jobs=JOBS, maximum_jobs=JOBS)  # a job that ends is submitted again
    with cluster, Client(cluster) as client:
        table = sj.sweep(
            "sweep-base.toml",
            {"bottleneck.qdisc": ["codel", "pie"], "bulk.count": [4, 16]},
            seeds=100,
            out="load",
            executor=client.get_executor(pure=False, retries=2),
            progress=True,
        )
    print(table)
