"""Only what Overtone wrote, and lists, is replaced or removed."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.guard import folders
from overtone.guard.folders import (
    MARKER,
    claim,
    inside,
    is_ours,
    remove,
    replacing_owned,
    require_ours,
    strangers,
)


def write(path, text="ours"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tree(path):
    return {
        p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_symlink() or not p.is_dir()
    } - {MARKER}


@pytest.fixture
def model(tmp_path):
    """A folder of ours with two files."""
    with replacing_owned(tmp_path / "model", "model") as scratch:
        write(scratch / "config.json")
        write(scratch / "deep" / "weights")
    return tmp_path / "model"


def replace(path, **options):
    with replacing_owned(path, "model", **options) as scratch:
        write(scratch / "config.json", "new")


def test_a_folder_of_ours_is_replaced_whole(model):
    replace(model)
    assert tree(model) == {"config.json"}
    assert (model / "config.json").read_text() == "new"
    assert os.listdir(model.parent) == ["model"]
    assert json.loads((model / MARKER).read_text())["files"] == ["config.json"]


@pytest.mark.parametrize("name", ["thesis.tex", "deep/thesis.tex", "new/er/thesis.tex", ".hidden"])
def test_whatever_else_is_in_it_is_named_and_nothing_touched(model, name):
    write(model / name, "mine")
    before = tree(model)
    with pytest.raises(ot.OvertoneError, match=f"did not write: '{name}'.*Nothing was touched"):
        replace(model)
    assert tree(model) == before
    assert (model / "config.json").read_text() == "ours"


def test_a_link_is_somebodys_and_is_never_followed(model, tmp_path):
    write(tmp_path / "thesis" / "text", "mine")
    (model / "link").symlink_to(tmp_path / "thesis")
    with pytest.raises(ot.OvertoneError, match="did not write: 'link'"):
        replace(model)
    remove(model)
    assert (tmp_path / "thesis" / "text").read_text() == "mine"
    assert tree(model) == {"link"}


def test_a_folder_without_a_marker_is_not_ours_whatever_it_holds(tmp_path):
    write(tmp_path / "own" / "config.json", "mine")
    with pytest.raises(ot.OvertoneError, match="not one that Overtone marked.*'config.json'"):
        replace(tmp_path / "own")
    assert (tmp_path / "own" / "config.json").read_text() == "mine"


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "null", "\xff", '{"kind": "model", "version": 1, "files": [1]}',
                '{"kind": "model", "version": 99, "files": ["config.json"]}']
)  # fmt: skip
def test_a_marker_that_can_not_be_read_makes_nothing_ours(model, content):
    (model / MARKER).write_bytes(content.encode("latin-1"))
    assert not is_ours(model, "model")
    with pytest.raises(ot.OvertoneError, match="left alone"):
        replace(model)
    remove(model)
    assert tree(model) == {"config.json", "deep/weights"}


def test_another_kind_is_left_alone(model):
    with pytest.raises(ot.OvertoneError, match="another kind .model, not run"):
        claim(model, "run")
    with (
        pytest.raises(ot.OvertoneError, match="expected a run folder|did not write"),
        replacing_owned(model, "run"),
    ):
        pass
    assert tree(model) == {"config.json", "deep/weights"}


def test_an_empty_folder_and_a_missing_one_are_free_and_a_file_is_not(tmp_path):
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    replace(tmp_path / "empty")
    replace(tmp_path / "missing")
    write(tmp_path / "file", "mine")
    with pytest.raises(ot.OvertoneError, match="is a file"):
        replace(tmp_path / "file")
    with pytest.raises(ot.OvertoneError, match="is a file"):
        claim(tmp_path / "file", "model")
    assert (tmp_path / "file").read_text() == "mine"


def test_inputs_the_working_directory_and_homes_are_never_replaced(model, monkeypatch):
    for read in (model, model / "deep", model / "deep" / "weights"):
        with pytest.raises(ot.OvertoneError, match="which this command reads"):
            replace(model, inputs=[read])
    with monkeypatch.context() as patch:
        patch.chdir(model / "deep")
        with pytest.raises(ot.OvertoneError, match="the working directory"):
            replace(model)
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(model))
        with pytest.raises(ot.OvertoneError, match="your home"):
            replace(model)
    with pytest.raises(ot.OvertoneError, match="can't be replaced"):
        require_ours("/", "model")
    link = model.parent / "link"
    link.symlink_to(model)
    with pytest.raises(ot.OvertoneError, match="which this command reads"):
        replace(model, inputs=[link])
    assert tree(model) == {"config.json", "deep/weights"}


def test_what_appears_while_the_new_one_is_made_moves_into_it(model):
    with replacing_owned(model, "model") as scratch:
        write(scratch / "config.json", "new")
        write(model / "deep" / "notes", "mine")
        write(model / "config.json.kept", "mine")
    assert tree(model) == {"config.json", "deep/notes", "config.json.kept"}
    assert (model / "deep" / "notes").read_text() == "mine"


def test_files_of_others_are_carried_along_where_that_is_asked_for(model):
    write(model / "notes", "mine")
    replace(model, carry=True)
    assert tree(model) == {"config.json", "notes"}
    replace(model, carry=True)
    assert tree(model) == {"config.json", "notes"}
    with pytest.raises(ot.OvertoneError, match="'notes'"):
        replace(model)


def test_carrying_along_makes_no_folder_ours(tmp_path):
    write(tmp_path / "own" / "config.json", "mine")
    with pytest.raises(ot.OvertoneError, match="left alone"):
        replace(tmp_path / "own", carry=True)


def test_a_failure_leaves_the_old_one(model):
    with pytest.raises(KeyboardInterrupt), replacing_owned(model, "model") as scratch:
        write(scratch / "config.json", "new")
        raise KeyboardInterrupt
    assert tree(model) == {"config.json", "deep/weights"}
    assert os.listdir(model.parent) == ["model"]


def test_files_are_added_to_a_folder_one_by_one(tmp_path):
    write(tmp_path / "out" / "report.html", "mine")
    folder = claim(tmp_path / "out", "results")
    write(folder.file("results.json"))
    write(folder.file("figures/a[1].png"))
    assert strangers(tmp_path / "out") == ["report.html"]
    again = claim(tmp_path / "out", "results")
    again.require_free("results.json", "figures/a[1].png", "new")
    assert again.file("figures/a[1].png") == tmp_path / "out" / "figures" / "a[1].png"
    with pytest.raises(ot.OvertoneError, match="report.html' exists and is not a file that"):
        again.file("report.html")
    remove(tmp_path / "out")
    assert tree(tmp_path / "out") == {"report.html"}


def test_a_listed_name_is_no_pattern(tmp_path):
    folder = claim(tmp_path, "results")
    write(folder.file("a[12]"))
    write(tmp_path / "a1", "mine")
    assert strangers(tmp_path) == ["a1"]


def test_a_folder_of_other_settings_is_refused(tmp_path):
    claim(tmp_path, "dataset", ["data/*"], settings={"seed": 0, "steps": 4})
    claim(tmp_path, "dataset", ["data/*"], settings={"seed": 0, "steps": 4})
    with pytest.raises(ot.OvertoneError, match="other settings: seed: 0 then, 1 now. Choose"):
        claim(tmp_path, "dataset", ["data/*"], settings={"seed": 1, "steps": 4})


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "link/x", "..", "figures/../.."])
def test_nothing_is_written_outside(tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ot.DataError, match="outside of"):
        inside(tmp_path / "out", name, error=ot.DataError)


def test_a_folder_that_is_a_link_is_what_it_points_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(claim(tmp_path / "link", "results").file("a"))
    assert tree(tmp_path / "real") == {"a"}


PART = st.sampled_from(["a", "b", "update-1", "update-2", "x.tmp"])


@given(st.lists(PART, min_size=1, max_size=4), st.lists(PART, min_size=1, max_size=4))
def test_patterns_of_parts(parts, prefix):
    """Independent of the function's own way: by string comparison."""
    name = "/".join(parts)
    below = "/".join((*prefix, "**"))
    assert folders._matches(name, [below]) == name.startswith("/".join(prefix) + "/")
    assert folders._matches(name, [name])
    assert folders._matches(name, ["/".join("*" * len(parts))])
    assert not folders._matches(name, ["/".join("*" * (len(parts) + 1))])
