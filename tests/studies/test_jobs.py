import os
import signal

import pytest
from rich.progress import Progress

from overtone.errors import OvertoneError
from studies import jobs
from studies.jobs import Job, run_jobs


@pytest.fixture
def make_job(tmp_path):
    def make(name, *arguments):
        return Job(name, arguments, tmp_path / "logs" / f"{name}.log", lambda: 0.5)

    return make


@pytest.fixture
def progress():
    return Progress(disable=True)


def test_all_jobs_run_and_leave_their_logs(make_job, progress, tmp_path):
    wanted = [make_job("version", "--version"), make_job("help", "--help")]
    run_jobs([*wanted, make_job("again", "--version")], workers=2, progress=progress)
    assert (tmp_path / "logs" / "version.log").read_text().startswith("overtone ")
    assert "evaluate" in (tmp_path / "logs" / "help.log").read_text()
    assert (tmp_path / "logs" / "again.log").read_text()
    assert not progress.tasks


def test_a_failure_names_the_job_and_shows_the_end_of_its_log(make_job, progress):
    with pytest.raises(
        OvertoneError, match=r"(?s)bad failed with exit code 2.*no recipe 'nothing'"
    ):
        run_jobs([make_job("bad", "train", "nothing")], workers=1, progress=progress)


def test_a_failure_stops_the_others(make_job, progress, monkeypatch, tmp_path):
    slow = make_job("slow", "train", "kuramoto-sivashinsky-mini", "--out", str(tmp_path / "run"))
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path))
    stopped = []
    original = jobs._Running.stop
    monkeypatch.setattr(jobs._Running, "stop", lambda self: stopped.append(self) or original(self))
    with pytest.raises(OvertoneError, match="bad failed"):
        run_jobs([slow, make_job("bad", "train", "nothing")], workers=2, progress=progress)
    assert stopped[0].job.name == "slow"
    assert stopped[0].process.poll() is not None


def test_sigterm_stops_the_jobs_and_is_an_interrupt(make_job, progress, monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path))
    slow = make_job("slow", "train", "kuramoto-sivashinsky-mini", "--out", str(tmp_path / "run"))
    stopped = []
    original = jobs._Running.stop
    monkeypatch.setattr(jobs._Running, "stop", lambda self: stopped.append(self) or original(self))
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(jobs.time, "sleep", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        run_jobs([slow], workers=1, progress=progress)
    assert stopped[0].process.poll() is not None
    assert signal.getsignal(signal.SIGTERM) == before
