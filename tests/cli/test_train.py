"""`overtone train` as it is typed, and `overtone info` on what it left."""

import errno

import pytest

from overtone.train.recipes import recipe


def test_the_recipes_are_listed_and_shown(overtone):
    code, text = overtone("train", "list")
    assert (code, "shear-flow-mini" in text.splitlines()) == (0, True)
    code, text = overtone("train", "shear-flow-7m", "train.max_minutes=30", "--show")
    assert (code, "max_minutes: 30.0" in text) == (0, True)


def test_mistakes_are_one_message_and_code_2(overtone, tmp_path):
    for arguments, message in (
        (["shear-flo-mini"], "did you mean 'shear-flow-mini'"),
        (["shear-flow-mini", "train.bach=3"], "did you mean 'train.batch'"),
        (["shear-flow-7m", f"data.path={tmp_path}/none"], "none"),
    ):
        code, text = overtone("train", *arguments, "--out", tmp_path / "run")
        assert code == 2, text
        assert message in text
        assert "Traceback" not in text


def damaged_run(folder, lines):
    folder.mkdir()
    (folder / "config.json").write_text(recipe("shear-flow-mini").model_dump_json())
    (folder / "metrics.jsonl").write_text(lines)
    return folder


@pytest.mark.filterwarnings("default")
def test_info_on_a_damaged_run(overtone, tmp_path):
    run = damaged_run(tmp_path / "[bold]run", '{"kind": "tr\n[]\n')
    code, text = overtone("info", run)
    assert code == 0, text
    assert text.count("warning: ") == 1
    assert "2 of 2 lines can't be read and are left out (line 1: " in text
    assert ["curves", "none", "yet"] in [line.split() for line in text.splitlines()]


def test_info_where_nothing_can_be_drawn(overtone, tmp_path, monkeypatch):
    line = '{"kind": "train", "update": 1, "loss": 1, "losses": {"4": 1}, "lr": 1, "seconds": 1, '
    run = damaged_run(tmp_path / "[bold]run", line + '"flops": 1}\n')
    code, text = overtone("info", run)
    assert (code, "[bold]run/curves.png" in text) == (0, True)

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system", "curves.png")

    monkeypatch.setattr("overtone.report.style.save", refuse)
    code, text = overtone("info", run)
    assert (code, "not drawn: Read-only file system: 'curves.png'" in text) == (0, True)
