"""The hub, against a stand-in on this machine: what is fetched, refused, kept and written."""

import contextlib
import hashlib
import logging
from types import SimpleNamespace

import pytest
import torch

import overtone as ot
from overtone import hub as module
from overtone.errors import CheckpointError
from overtone.hub import FILES, Repository, download, parse, upload
from tests.hub_stand_in import TOKEN

NAME = "acme/waves"


@pytest.fixture(scope="module")
def files(make_model, tmp_path_factory):
    """The files of a model's folder."""
    folder = tmp_path_factory.mktemp("files") / "model"
    make_model().save(folder, training={"seed": 3}, card="---\nlicense: mit\n---\n# it\n")
    names = ("config.json", "model.safetensors", "README.md")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture
def pushed(hub, files):
    """A repository with a model; its commit."""
    return hub.add(NAME, files)


def equal(model, files, tmp_path):
    """Whether a model is the one of the files."""
    folder = tmp_path / "expected"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    own, other = model.state_dict(), ot.load(folder).state_dict()
    return all(torch.equal(own[name], other[name]) for name in other)


# names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acme/waves", Repository("acme/waves")),
        ("acme/waves@v1.2", Repository("acme/waves", "v1.2")),
        ("acme/waves@feature/x", Repository("acme/waves", "feature/x")),
        ("hf://acme/waves-2@main", Repository("acme/waves-2", "main")),
        ("waves", None),
        ("./acme/waves", None),
        ("../acme/waves", None),
        ("/acme/waves", None),
        ("acme/waves/best", None),
        ("acme/waves@", None),
        ("acme/waves@a@b", None),
        ("acme/wav es", None),
        ("acme/.hidden", None),
        ("https://acme/waves", None),
    ],
)
def test_which_names_can_be_repositories(text, expected):
    assert parse(text) == expected
    if expected is not None:
        assert parse(str(expected)) == expected


def test_a_revision_is_given_once():
    assert parse("acme/waves", "v1") == parse("acme/waves@v1", "v1") == Repository(NAME, "v1")
    with pytest.raises(CheckpointError, match="names a revision, and revision is 'v2'"):
        parse("acme/waves@v1", "v2")
    with pytest.raises(CheckpointError, match="hf://org/name"):
        parse("hf://waves")


def test_a_commit_is_forty_digits():
    assert Repository(NAME, "a" * 40).pinned
    assert not any(Repository(NAME, text).pinned for text in (None, "main", "a" * 39, "g" * 40))


# reading


def test_a_repository_is_a_model(pushed, files, tmp_path):
    model = ot.Emulator.from_pretrained(NAME)
    assert equal(model, files, tmp_path)
    assert not model.training
    assert equal(ot.load(f"hf://{NAME}@{pushed}"), files, tmp_path)


def test_only_known_files_are_fetched(hub, files, tmp_path):
    others = {
        "train.py": b"raise SystemExit",
        "pytorch_model.bin": b"\x80\x04",
        "sub/x.json": b"{}",
    }
    hub.add(NAME, files | others)
    folder = download(Repository(NAME)).folder
    assert {p.name for p in folder.iterdir()} == {*files} == {*hub.names()}
    assert {*files} <= {*FILES}


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_repository_without_a_model_is_refused_before_anything_is_fetched(hub, files, missing):
    files = {name: content for name, content in files.items() if name != missing}
    hub.add(NAME, files | {"pytorch_model.bin": b"\x80\x04", "modeling.py": b"raise SystemExit"})
    with pytest.raises(CheckpointError, match=f"no {missing}.*'modeling.py'.*pickles"):
        ot.load(NAME)
    assert not hub.names() + hub.names("HEAD")


def test_a_revision_is_the_one_that_was_asked_for(hub, files, make_model, tmp_path):
    first = hub.add(NAME, files)
    torch.manual_seed(1)
    make_model().save(tmp_path / "other")
    newer = {p.name: p.read_bytes() for p in (tmp_path / "other").iterdir()}
    hub.add(NAME, newer)
    hub.repos[NAME].refs["v1"] = first
    assert equal(ot.load(NAME), newer, tmp_path)
    for model in (ot.load(f"{NAME}@v1"), ot.load(NAME, revision="v1"), ot.load(f"{NAME}@{first}")):
        assert equal(model, files, tmp_path)
    assert equal(ot.Emulator.from_pretrained(NAME, revision=first), files, tmp_path)


def test_a_digest_from_elsewhere_pins_the_weights(pushed, files):
    digest = hashlib.sha256(files["model.safetensors"]).hexdigest()
    ot.load(NAME, sha256=digest)
    with pytest.raises(CheckpointError, match="not the weights that were asked for"):
        ot.load(NAME, sha256="0" * 64)


def test_what_is_cached_is_not_fetched_again(hub, pushed, files, tmp_path):
    ot.load(NAME)
    hub.asked.clear()
    ot.load(NAME)
    assert not hub.names()
    assert hub.asked  # a branch may have moved
    hub.asked.clear()
    ot.load(f"{NAME}@{pushed}")
    assert not hub.asked  # a commit can't


def test_a_branch_that_moved_is_fetched_anew(hub, pushed, files, make_model, tmp_path):
    ot.load(NAME)
    torch.manual_seed(1)
    make_model().save(tmp_path / "other")
    newer = {p.name: p.read_bytes() for p in (tmp_path / "other").iterdir()}
    commit = hub.add(NAME, newer)
    assert download(Repository(NAME)).commit == commit != pushed
    assert equal(ot.load(NAME), newer, tmp_path)


# what goes wrong


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_file_that_is_damaged_in_the_cache_is_found_and_fetched_again(
    hub, pushed, files, tmp_path, name
):
    blob = (download(Repository(NAME)).folder / name).resolve()
    content = blob.read_bytes()
    blob.write_bytes(content[:-2] + b" " + content[-1:])
    with pytest.raises(
        CheckpointError, match=f"{name} of '{NAME}' is not the file .* load .* again"
    ):
        ot.load(NAME)
    assert equal(ot.load(NAME), files, tmp_path)


def test_weights_that_arrive_altered_are_refused_each_time(hub, pushed, files, tmp_path):
    hub.altered = True
    for _ in range(2):
        with pytest.raises(CheckpointError, match="its digest differs"):
            ot.load(NAME)
    assert hub.names().count("model.safetensors") == 2
    hub.altered = False
    assert equal(ot.load(NAME), files, tmp_path)


def test_weights_that_do_not_fit_their_configuration_are_refused(hub, files):
    content = bytearray(files["model.safetensors"])
    content[-1] ^= 1
    hub.add(NAME, files | {"model.safetensors": bytes(content)})
    with pytest.raises(CheckpointError, match="SHA-256 differs from the one in config.json"):
        ot.load(NAME)


def patiently(name):
    """The model; older versions of huggingface_hub do not ask again by themselves."""
    for _ in range(2):
        with contextlib.suppress(CheckpointError):
            return ot.load(name)
    return ot.load(name)


def test_a_download_that_is_cut_goes_on_where_it_stopped(
    hub, pushed, files, tmp_path, caplog, capsys, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    hub.cuts = 2
    with caplog.at_level(logging.CRITICAL, logger="huggingface_hub"):
        assert equal(patiently(NAME), files, tmp_path)
    parts = [wanted for m, p, wanted in hub.asked if m == "GET" and p.endswith(".safetensors")]
    starts = [int(part[len("bytes=") : -1]) for part in parts[1:]]
    half = len(files["model.safetensors"]) // 2
    assert parts[0] is None
    assert half - 1000 < starts[0] <= half < starts[1]
    assert capsys.readouterr().err == ""  # bars are for terminals


def test_a_download_that_never_ends_leaves_no_model(hub, pushed, files, tmp_path, offline):
    hub.cuts = 10_000
    with pytest.raises(CheckpointError, match="can't be reached.*no complete copy.*Try again"):
        ot.load(NAME)
    hub.cuts = 0
    assert equal(ot.load(NAME), files, tmp_path)


def test_an_interrupted_download_is_no_model_offline(hub, pushed, files, tmp_path, offline):
    (download(Repository(NAME)).folder / "model.safetensors").unlink()
    offline()
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE is set, and there is no complete"):
        ot.load(NAME)


@pytest.mark.parametrize("revision", ["v9", "f" * 40])
def test_a_revision_that_is_not_there(hub, pushed, revision):
    with pytest.raises(CheckpointError, match=f"has no revision '{revision}'; expected a branch"):
        ot.load(NAME, revision=revision)


def test_a_repository_that_is_not_there(hub, monkeypatch):
    with pytest.raises(
        CheckpointError, match="no folder 'acme/waves'; there is no repository.*no token.*HF_TOKEN"
    ):
        ot.load(NAME)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(CheckpointError, match="the token that is set does not open it"):
        ot.load(f"hf://{NAME}")


def test_a_private_repository_opens_with_a_token(hub, files, tmp_path, monkeypatch):
    hub.add(NAME, files, private=True)
    with pytest.raises(CheckpointError, match="it is private.*there is no token here"):
        ot.load(NAME)
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(CheckpointError, match="the token that is set does not open it"):
        ot.load(NAME)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert equal(ot.load(NAME), files, tmp_path)


def test_a_gated_repository_says_how_to_ask(hub, files):
    hub.add(NAME, files, gated=True)
    with pytest.raises(CheckpointError, match="ask for access on its page"):
        ot.load(NAME)


def test_offline_the_cache_is_used_and_said(hub, pushed, files, tmp_path, offline):
    ot.load(NAME)
    offline()
    hub.asked.clear()
    assert equal(ot.load(NAME), files, tmp_path)
    assert equal(ot.load(f"{NAME}@{pushed}"), files, tmp_path)
    assert not hub.asked
    found = download(Repository(NAME))
    assert (found.commit, found.note) == (
        pushed,
        "HF_HUB_OFFLINE is set: the copy in the cache is used",
    )


def test_offline_without_a_copy(hub, pushed, offline):
    offline()
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE is set.*Unset it, or load it once"):
        ot.load(NAME)
    assert not hub.asked


def test_a_hub_that_is_down_leaves_the_copy_in_the_cache(hub, pushed, files, tmp_path):
    ot.load(NAME)
    hub.down = True
    assert equal(ot.load(NAME), files, tmp_path)
    assert "can't be reached" in download(Repository(NAME)).note
    with pytest.raises(CheckpointError, match="can't be reached .*503.*no complete copy"):
        ot.load("acme/others")


def test_nobody_listens(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CheckpointError, match="can't be reached .*Connect.*Try again later"):
        ot.load(NAME)


def test_what_is_too_large_for_the_disk_is_not_fetched(hub, pushed, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(CheckpointError, match="the model 'acme/waves' takes"):
        ot.load(NAME)
    assert not hub.names()


def test_without_the_library_its_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(CheckpointError, match=r"pip install 'overtone\[hub\]'"):
        ot.load("hf://acme/waves")
    monkeypatch.setattr("overtone.models.storage.installed", lambda: False)
    with pytest.raises(CheckpointError, match=r"does not exist.*pip install 'overtone\[hub\]'"):
        ot.load("acme/waves")


# writing


@pytest.fixture
def folder(files, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def logged_in(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def held(hub, branch="main"):
    repo = hub.repos[NAME]
    return repo.commits[repo.refs[branch]]


def test_a_folder_is_written_in_one_commit(hub, folder, files, logged_in, tmp_path, capsys):
    done = upload(folder, Repository(NAME), message="First waves")
    assert {k: v for k, v in held(hub).items() if k != ".gitattributes"} == files
    assert len(hub.repos[NAME].commits) == 2  # that of the new repository, and ours
    assert hub.repos[NAME].refs["main"] == done.commit
    assert done.url.endswith(done.commit)
    assert hub.messages == ["First waves"]
    assert not hub.repos[NAME].private
    assert equal(ot.load(f"{NAME}@{done.commit}"), files, tmp_path)
    assert capsys.readouterr().err == ""  # bars are for terminals


def test_nothing_else_is_sent(hub, folder, files, logged_in):
    (folder / "notes.txt").write_text("private")
    (folder / "secret.json").write_text("{}")
    upload(folder, Repository(NAME))
    assert {*held(hub)} == {*files, ".gitattributes"}


def test_what_an_older_model_left_goes_and_all_else_stays(hub, folder, files, logged_in):
    hub.add(NAME, files | {"metrics.jsonl": b"{}", "figure.png": b"x"})
    upload(folder, Repository(NAME))
    assert {*held(hub)} == {*files, "figure.png"}


def test_a_branch_is_made_and_main_stays(hub, folder, files, logged_in):
    hub.add(NAME, {"README.md": b"old"})
    upload(folder, Repository(NAME, "next"))
    assert held(hub)["README.md"] == b"old"
    assert held(hub, "next")["README.md"] == files["README.md"]
    upload(folder, Repository(NAME, "next"))  # it may be there


def test_a_commit_is_not_written_to(hub, folder, logged_in):
    with pytest.raises(CheckpointError, match="never changes; give a branch"):
        upload(folder, Repository(NAME, "a" * 40))
    assert not hub.asked


def test_private_is_private(hub, folder, files, logged_in):
    upload(folder, Repository(NAME), private=True)
    assert hub.repos[NAME].private
    upload(folder, Repository(NAME))  # as it is
    assert hub.repos[NAME].private


def test_what_was_to_be_private_is_not_written_to_a_public_repository(
    hub, folder, files, logged_in
):
    hub.add(NAME, {"README.md": b"old"})
    with pytest.raises(CheckpointError, match="exists and is public; nothing was written"):
        upload(folder, Repository(NAME), private=True)
    assert held(hub) == {"README.md": b"old"}


def test_writing_needs_a_token_with_the_right_to(hub, folder, monkeypatch):
    with pytest.raises(CheckpointError, match="can't be written to; there is no token here"):
        upload(folder, Repository(NAME))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(CheckpointError, match="it needs the right to write there"):
        upload(folder, Repository("others/waves"))
    assert not hub.repos


def test_a_token_may_be_given(hub, folder):
    upload(folder, Repository(NAME), token=TOKEN)
    assert "config.json" in held(hub)


def test_a_head_that_the_hub_refuses_is_told_before_anything_is_sent(hub, folder, logged_in):
    (folder / "README.md").write_text("---\ntags: []\n---\n")
    with pytest.raises(CheckpointError, match='"license" is missing'):
        upload(folder, Repository(NAME))
    assert {*held(hub)} == {".gitattributes"}


def test_writing_to_a_hub_that_is_down(hub, folder, logged_in, offline):
    hub.down = True
    with pytest.raises(CheckpointError, match="nothing was written.*can't be reached"):
        upload(folder, Repository(NAME))
    offline()
    with pytest.raises(CheckpointError, match="nothing was written.*HF_HUB_OFFLINE"):
        upload(folder, Repository(NAME))


def test_names_that_the_hub_does_not_take(hub, folder, logged_in):
    with pytest.raises(CheckpointError, match="can't be a repository"):
        upload(folder, Repository("acme/a--b"))
    assert module.parse("acme/a--b") is not None
