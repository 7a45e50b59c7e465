"""Commands and the hub: models are pushed, and every command takes their names."""

import os
import subprocess
import sys

import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec, Header, write_well
from overtone.hub import NEEDED
from tests.hub_stand_in import TOKEN, serving

NAME = "acme/waves"


@pytest.fixture
def logged_in(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)


@pytest.fixture
def folder(make_model, make_domain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_model(make_domain(fields=("a",))).save("it", training={"seed": 0, "updates": 5})
    return tmp_path / "it"


@pytest.fixture
def data(tmp_path):
    random = torch.Generator().manual_seed(0)
    frames = torch.randn(2, 12, 32, 48, generator=random).cumsum(1).numpy()
    header = Header("toy", (32, 48), (2.0, 3.0), "periodic", dt=0.1)
    write_well(tmp_path / "data" / "data" / "test" / "toy.hdf5", {FieldSpec("a"): frames}, header)
    return tmp_path / "data"


def test_from_push_to_rollout_by_name(hub, folder, data, overtone, logged_in):
    code, said = overtone("push", "it", NAME, "--license", "mit", "--message", "First")
    assert code == 0, said
    commit = hub.repos[NAME].refs["main"]
    assert "model it is a folder" in said
    assert f"wrote {NAME}@{commit}" in said
    assert hub.messages == ["First"]
    code, said = overtone("info", NAME)
    assert code == 0
    assert f"the repository {NAME}, commit {commit}" in " ".join(said.split())
    common = ("--steps", "2", "--schedule", "8")
    code, said = overtone("rollout", f"{NAME}@{commit}", data, "--out", "predicted", *common)
    assert code == 0, said
    assert f"model {NAME}@{commit} is the repository {NAME}@{commit}, commit {commit}" in said
    code, said = overtone("rollout", "it", data, "--out", "same", *common)
    there, here = (
        ot.data.WellFolder(path, "test", context=1, horizon=4)[0][1]
        for path in ("predicted", "same")
    )
    assert torch.equal(there, here)


def test_a_folder_of_that_name_comes_first_and_it_is_said(hub, folder, overtone, logged_in):
    assert overtone("push", "it", NAME)[0] == 0
    folder.rename(folder.parent / "waves")
    (folder.parent / "acme").mkdir()
    (folder.parent / "waves").rename(folder.parent / NAME)
    hub.asked.clear()
    said = " ".join(overtone("info", NAME)[1].split())
    assert f"{NAME} is a folder (a repository of that name would be hf://{NAME})" in said
    assert not hub.asked
    said = " ".join(overtone("info", f"hf://{NAME}")[1].split())
    assert f"the repository {NAME}, commit" in said


def test_mistakes_are_one_message_and_exit_code_two(hub, folder, overtone, monkeypatch):
    cases = {
        ("push", "it", NAME): "there is no token here",
        ("push", "it", "waves"): "names no repository; expected org/name",
        ("push", "it", NAME, "--card", "none.md"): "the card 'none.md' can't be read",
        ("push", "it", NAME, "--license", "a b"): "expected an identifier such as mit",
        ("push", "nothing", NAME): "'nothing' does not exist",
        ("info", NAME): "there is no repository 'acme/waves'",
        ("info", f"{NAME}@v1"): "there is no repository 'acme/waves@v1'",
        ("info", "it@v1"): "'it@v1' does not exist",
    }
    for arguments, expected in cases.items():
        code, said = overtone(*arguments)
        assert (code, said.count("error:")) == (2, 1)
        assert expected in said
        assert "Traceback" not in said


def test_a_private_push(hub, folder, overtone, logged_in):
    assert overtone("push", "it", NAME, "--private", "--revision", "next")[0] == 0
    assert hub.repos[NAME].private
    assert {*hub.repos[NAME].refs} == {"main", "next"}


def test_the_variables_of_the_hub_are_respected(folder, tmp_path):
    """In processes of their own: the library reads them when it is imported."""
    with serving() as server:
        environment = os.environ | {
            "HF_ENDPOINT": server.url,
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "0",
            "HF_TOKEN": TOKEN,
            "NO_PROXY": "127.0.0.1",
        }
        files = {name: (folder / name).read_bytes() for name in NEEDED}
        server.state.add(NAME, files, private=True)

        def run(**changes):
            command = [sys.executable, "-m", "overtone", "info", NAME]
            return subprocess.run(
                command, env=environment | changes, capture_output=True, text=True, timeout=240
            )

        done = run()
        assert done.returncode == 0, done.stderr
        assert server.state.names()
        server.state.asked.clear()
        done = run(HF_HUB_OFFLINE="1")
        assert done.returncode == 0, done.stderr
        assert not server.state.asked
    assert (tmp_path / "home" / "hub" / "models--acme--waves").is_dir()
