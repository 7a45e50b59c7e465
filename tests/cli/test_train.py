"""`overtone train` as it is typed."""

import subprocess
import sys


def overtone(*arguments):
    command = [sys.executable, "-m", "overtone", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_recipes_are_listed_and_shown():
    done = overtone("train", "list")
    assert "shear-flow-mini" in done.stdout.splitlines()
    done = overtone("train", "shear-flow-7m", "train.max_minutes=30", "--show")
    assert "max_minutes: 30.0" in done.stdout


def test_mistakes_are_one_message_and_code_2(tmp_path):
    for arguments, message in (
        (["shear-flo-mini"], "did you mean 'shear-flow-mini'"),
        (["shear-flow-mini", "train.bach=3"], "did you mean 'train.batch'"),
        (["shear-flow-7m", f"data.path={tmp_path}/none"], "none"),
    ):
        done = overtone("train", *arguments, "--out", str(tmp_path / "run"))
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
