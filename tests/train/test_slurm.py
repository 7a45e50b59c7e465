"""Submitting to SLURM, without a cluster: submitit's own debug kind runs the job here."""

import pytest

from overtone.errors import ConfigError
from overtone.train.slurm import SlurmTask, _resources, submit


def test_resources_come_from_the_environment():
    assert _resources({})["tasks_per_node"] == 1
    wanted = _resources(
        {"OVERTONE_SLURM_GPUS": "8", "OVERTONE_SLURM_NODES": "2", "OVERTONE_SLURM_HOURS": "1.5",
         "OVERTONE_SLURM_PARTITION": "gpu"}
    )  # fmt: skip
    assert (wanted["nodes"], wanted["tasks_per_node"], wanted["gpus_per_node"]) == (2, 8, 8)
    assert (wanted["timeout_min"], wanted["slurm_partition"]) == (90, "gpu")
    assert "gpus_per_node" not in _resources({"OVERTONE_SLURM_GPUS": "0"})


def test_without_slurm_the_error_says_so(small, tmp_path):
    with pytest.raises(ConfigError, match="no SLURM here"):
        submit(small(), tmp_path / "run")


def test_a_job_that_is_preempted_asks_to_be_resumed(small, tmp_path):
    task = SlurmTask(small().model_dump_json(), str(tmp_path / "run"))
    again = task.checkpoint()
    assert again.function is task
