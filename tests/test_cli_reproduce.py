import subprocess
import sys


def overtone(*arguments):
    command = [sys.executable, "-m", "overtone", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_studies_are_listed():
    done = overtone("reproduce", "list")
    assert done.returncode == 0
    assert any(line.startswith("shear-flow-mini ") for line in done.stdout.splitlines())


def test_an_unknown_study_is_one_message():
    done = overtone("reproduce", "shear-flow")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no study 'shear-flow'")
    assert "Traceback" not in done.stderr
