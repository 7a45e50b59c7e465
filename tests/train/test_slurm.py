"""Submitting to SLURM, without a cluster: submitit's own debug kind runs the job here."""

import pytest
import submitit

from overtone.errors import ConfigError
from overtone.guard.folders import strangers
from overtone.models.storage import load_folder
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


# submitit leaves the job that it started to itself.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_job_from_submission_to_model(small, tmp_path, monkeypatch):
    """As `overtone train --slurm` does it, but submitit starts the job on this machine."""
    monkeypatch.setenv("OVERTONE_SLURM_GPUS", "0")
    monkeypatch.setenv("OVERTONE_SLURM_CPUS", "1")
    # It waits 15 seconds for a result, in which one busy core does not even import torch.
    monkeypatch.setattr(submitit.LocalJob, "_results_timeout_s", 120)
    folder = tmp_path / "run"
    number = submit(small(train__updates=2), folder, cluster="local")
    assert submitit.LocalJob(folder / "slurm", number).results() == ["finished"]
    assert (folder / "best" / "model.safetensors").exists()
    assert strangers(folder) == []  # logs of the job are the run's own
    again = submit(small(train__updates=3), folder, cluster="local")
    assert submitit.LocalJob(folder / "slurm", again).results() == ["finished"]
    assert load_folder(folder / "last")[1]["training"]["updates"] == 3


def test_a_folder_of_the_users_own_gets_no_job(small, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="is not a run"):
        submit(small(), tmp_path, cluster="local")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
