"""Folders whose weights or configuration are not what was saved, of every kind of model."""

import contextlib
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import overtone as ot
from overtone.files import sha256
from tests.models.conftest import MAKERS


@pytest.fixture(scope="module", params=[kind for kind in MAKERS if kind != "flexible"])
def whole(request, make_domain, tmp_path_factory):
    """A model of each kind that can be built from its folder, and the folder."""
    torch.manual_seed(0)
    model = MAKERS[request.param](make_domain())
    folder = tmp_path_factory.mktemp("whole") / "model"
    model.save(folder)
    return model, folder


@pytest.fixture
def model(whole):
    return whole[0]


@pytest.fixture
def saved(whole, tmp_path):
    """A copy of the folder, to be damaged."""
    return shutil.copytree(whole[1], tmp_path / "model")


def rewrite(folder, change):
    """Change the weights of a folder, and the checksum beside them."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | {"sha256": sha256(path)}))


def first_of(weights):
    """Name of the first large tensor."""
    return max(weights, key=lambda name: weights[name].numel())


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(saved, value):
    names = []

    def spoil(weights):
        names.append(first_of(weights))
        weights[names[0]].flatten()[3] = value

    rewrite(saved, spoil)
    with pytest.raises(ot.CheckpointError, match=f"'{names[0]}' in .* hold NaN or infinity"):
        ot.load(saved)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.int64, torch.complex64])
def test_weights_of_other_kinds_are_refused_by_name(saved, dtype):
    names = []

    def cast(weights):
        names.append(first_of(weights))
        weights[names[0]] = weights[names[0]].to(dtype)

    rewrite(saved, cast)
    with pytest.raises(ot.CheckpointError, match=f"'{names[0]}' in .* are {dtype}; the model has"):
        ot.load(saved)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_converted(saved, model, make_window, dtype):
    def halve(weights):
        for name, tensor in weights.items():
            if tensor.dtype == torch.float32:
                weights[name] = tensor.to(dtype)

    rewrite(saved, halve)
    again = ot.load(saved)
    assert {p.dtype for p in again.parameters()} == {torch.float32}
    window = make_window(model.domain)
    assert torch.allclose(again(window, 8), model(window, 8), atol=0.05)


@pytest.mark.parametrize("name", ["pace", "scale"])
def test_a_present_folder_without_its_units_is_not_whole(saved, name):
    rewrite(saved, lambda weights: weights.pop(name))
    with pytest.raises(ot.CheckpointError, match=rf"missing \['{name}'\]"):
        ot.load(saved)


def test_a_digest_from_elsewhere_pins_the_weights(saved, model):
    digest = sha256(saved / "model.safetensors")
    other = "0" * 64
    for load in (ot.load, type(model).from_pretrained):
        assert load(saved, sha256=digest).kind == model.kind
        assert load(saved, sha256=digest.upper()).kind == model.kind
        with pytest.raises(ot.CheckpointError, match=f"has the SHA-256 {digest}, .* was {other}"):
            load(saved, sha256=other)
        for wrong in ("", "abc", digest[:-1], 7):
            with pytest.raises(ot.CheckpointError, match="expected the 64 hexadecimal digits"):
                load(saved, sha256=wrong)
    # Whoever replaces weights and checksum together is found by the digest alone.
    rewrite(saved, lambda weights: weights[first_of(weights)].add_(1))
    assert ot.load(saved).kind == model.kind
    with pytest.raises(ot.CheckpointError, match="not the weights that were asked for"):
        ot.load(saved, sha256=digest)


NESTED = "[" * 100_000
DAMAGE = {
    "a list": lambda text: "[1, 2]",
    "a number": lambda text: "5",
    "nothing": lambda text: "",
    "nesting": lambda text: NESTED,
    "digits": lambda text: text.replace('"sha256"', '"x": ' + "9" * 6000 + ', "sha256"'),
    "no UTF-8": lambda text: b"\xff\xfe\xff" + text.encode(),
    "a list in the place of all": lambda text: _replaced(text, list),
    "a text in the place of all": lambda text: _replaced(text, str),
    "a number in the place of all": lambda text: _replaced(text, lambda _: 7),
    "null in the place of all": lambda text: _replaced(text, lambda _: None),
    "huge numbers": lambda text: _numbers(text, 10**9),
    "numbers beyond any": lambda text: _numbers(text, 10**400),
    "negative numbers": lambda text: _numbers(text, -3),
    "broken numbers": lambda text: _numbers(text, 2.5),
    "texts for numbers": lambda text: _numbers(text, "8"),
    "NaN": lambda text: _numbers(text, float("nan")),
}


def _replaced(text, by):
    content = json.loads(text)
    parts = [key for key, value in content.items() if isinstance(value, dict)]
    return json.dumps(content | {key: by(content[key]) for key in parts})


def _numbers(text, value):
    """All numbers of the configuration replaced."""

    def change(part):
        if isinstance(part, dict):
            return {key: change(entry) for key, entry in part.items()}
        if isinstance(part, list):
            return [change(entry) for entry in part]
        return value if isinstance(part, (int, float)) and not isinstance(part, bool) else part

    return json.dumps(change(json.loads(text)))


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_configuration_of_any_kind_is_refused(saved, damage):
    path = saved / "config.json"
    content = DAMAGE[damage](path.read_text())
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ot.CheckpointError) as error:
        ot.load(saved)
    assert len(str(error.value)) < 1500
    assert str(error.value).isprintable()


@pytest.mark.parametrize("value", [10**9, "many", -1, 0, 2.5, None, [3], True, {}])
def test_each_number_of_a_configuration_may_be_wrong(saved, value):
    """One at a time, so that none hides behind another."""
    path = saved / "config.json"
    content = json.loads(path.read_text())
    part = "options" if "options" in content else "architecture"
    names = [k for k, v in content[part].items() if type(v) in (int, float)]
    assert len(names) > 1
    for name in names:
        changed = content | {part: content[part] | {name: value}}
        path.write_text(json.dumps(changed))
        with contextlib.suppress(ot.CheckpointError):  # some numbers may well be another
            ot.load(saved)


def test_a_run_without_a_model_yet_is_told_to_go_on(tmp_path):
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(ot.CheckpointError, match="before it kept its first model: .*--resume"):
        ot.load(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    with pytest.raises(ot.CheckpointError, match="Expected a folder that Emulator.save wrote"):
        ot.load(tmp_path)
