"""Submitting a run to SLURM, through submitit.

The job runs one task for each GPU, saves when the scheduler gives notice, and is queued again and
resumed until it is finished.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from overtone.errors import ConfigError
from overtone.guard.folders import claim
from overtone.train.config import RunConfig
from overtone.train.folder import FILES, KIND, RunFolder


class SlurmTask:
    """What a SLURM task does; submitit sends it to the node.

    Args:
        config: of the run.
        folder: of the run.
    """

    def __init__(self, config: str, folder: str):
        self.config, self.folder = config, folder

    def __call__(self) -> str:
        """Train, as one of the job's ranks."""
        import submitit

        from overtone.train.run import train

        environment = submitit.JobEnvironment()
        os.environ.setdefault("MASTER_ADDR", environment.hostnames[0])
        os.environ.setdefault("MASTER_PORT", "29500")
        os.environ["RANK"] = str(environment.global_rank)
        os.environ["WORLD_SIZE"] = str(environment.num_tasks)
        os.environ["LOCAL_RANK"] = str(environment.local_rank)
        config = RunConfig.model_validate_json(self.config)
        return train(config, self.folder, resume=True).status

    def checkpoint(self) -> Any:
        """What to queue after a time-out or a preemption: the same, resumed."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


def submit(config: RunConfig, folder: str | Path, *, cluster: str | None = None) -> str:
    """Queue a run and return the job's number.

    Nodes, GPUs, hours and partition come from `OVERTONE_SLURM_NODES`, `_GPUS` (of a node), `_HOURS`
    and `_PARTITION`.

    Args:
        config: of the run.
        folder: of the run, on a file system that the nodes see.
        cluster: submitit's kind of cluster; found by itself if None.
    """
    try:
        import submitit
    except ImportError as error:
        raise ConfigError("--slurm needs submitit: pip install 'overtone[slurm]'") from error
    folder = Path(folder).resolve()
    RunFolder(folder).require_free(resume=True)
    claim(folder, KIND, FILES, error=ConfigError)  # or its logs would make the folder another's
    executor = submitit.AutoExecutor(folder=str(folder / "slurm"), cluster=cluster)
    if cluster is None and executor.cluster != "slurm":
        raise ConfigError(
            "--slurm found no SLURM here (no sbatch); run without it, or log in there"
        )
    executor.update_parameters(**_resources(os.environ))
    return executor.submit(SlurmTask(config.model_dump_json(), str(folder))).job_id


def _resources(environment: Any) -> dict[str, Any]:
    """What to ask SLURM for."""
    gpus = int(environment.get("OVERTONE_SLURM_GPUS", "1"))
    wanted: dict[str, Any] = {
        "name": "overtone",
        "nodes": int(environment.get("OVERTONE_SLURM_NODES", "1")),
        "tasks_per_node": max(gpus, 1),
        "timeout_min": int(60 * float(environment.get("OVERTONE_SLURM_HOURS", "24"))),
        "cpus_per_task": int(environment.get("OVERTONE_SLURM_CPUS", "8")),
    }
    if gpus:
        wanted["gpus_per_node"] = gpus
    if "OVERTONE_SLURM_PARTITION" in environment:
        wanted["slurm_partition"] = environment["OVERTONE_SLURM_PARTITION"]
    return wanted
