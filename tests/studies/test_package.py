import json

import pytest
import torch
from rich.console import Console

import overtone as ot
from overtone.errors import OvertoneError
from overtone.evaluate import evaluate, load_candidate
from overtone.train.recipes import recipe
from overtone.train.run import data_folder, train
from overtone.train.settings import change
from studies import package as package_module
from studies.package import MANTISSA, package, proof_data, prove, short, short_log


@pytest.fixture(scope="module")
def trained(tmp_path_factory, small):
    """A run's folder, its configuration and an evaluation of it."""
    folder = tmp_path_factory.mktemp("package")
    config = change(recipe("kuramoto-sivashinsky-mini"), small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERTONE_CACHE", str(folder / "cache"))
        train(config, folder / "run", console=Console(quiet=True))
        candidates = [load_candidate(folder / "run", "csm")]
        results, _ = evaluate(candidates, data_folder(config.data), steps=4, windows=4)
        yield folder / "run", config, results


def test_a_packaged_model_is_the_trained_one_with_short_weights(trained, tmp_path):
    run, _, results = trained
    package(run, results, "csm", "waves", tmp_path / "weights")
    model = ot.load(run)
    before, learned = model.state_dict(), dict(model.named_parameters())
    after = ot.load(tmp_path / "weights" / "waves").state_dict()
    # How to go on with a run that nobody else has is no advice.
    assert "longer" in load_candidate(run).training
    assert "longer" not in load_candidate(tmp_path / "weights" / "waves").training
    assert after.keys() == before.keys()
    for key, tensor in after.items():
        assert tensor.dtype == torch.float32
        stored = short(before[key]).float() if key in learned else before[key]
        assert torch.equal(tensor, stored)
        # Rounded twice, to half precision and to its first bits; tiny numbers are spaced evenly.
        nearest = 2.0 ** -(MANTISSA + 1) + 2.0**-11
        assert torch.allclose(tensor, before[key], rtol=nearest, atol=2.0**-21)


@pytest.mark.parametrize("bits", [7, 8, 9, 10])
def test_short_weights_are_the_nearest_that_have_so_many_bits(bits):
    """Against arithmetic: a mantissa in [0.5, 1), scaled to whole numbers, rounded to even."""
    values = torch.randn(10_000).half()
    values[:4] = torch.tensor([0.0, -0.0, 1.0, -1 + 2.0**-11])  # the last one carries
    mantissa, exponent = torch.frexp(values.float())
    scale = 2.0 ** (bits + 1)
    nearest = torch.ldexp((mantissa * scale).round() / scale, exponent)
    normal = (values.abs() >= torch.finfo(torch.float16).smallest_normal) | (values == 0)
    assert torch.equal(short(values, bits).float()[normal], nearest[normal])
    assert torch.equal(short(short(values, bits), bits), short(values, bits))


def test_the_card_tells_the_evaluations_numbers(trained, tmp_path):
    run, config, results = trained
    package(run, results, "csm", "waves", tmp_path / "weights")
    text = (tmp_path / "weights" / "waves" / "README.md").read_text()
    for step in results.models[0].next_step:
        assert f"| {step.patch} | {step.vrmse.value:#.3g}" in text
    assert "kuramoto-sivashinsky-mini" in text
    assert "4 of 16 frames" in text
    assert config.train.shift == 0.5
    assert "shifted at random in 50 % of them" in text
    lines = (tmp_path / "weights" / "waves" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["update"] == 6


def test_a_log_keeps_its_numbers_but_for_their_ends():
    line = {"kind": "train", "update": 123456, "loss": 0.123456789, "losses": {"4": 2.0}, "x": None}
    text = json.dumps(line) + "\n" + json.dumps({"kind": "valid", "update": 2}) + "\n"
    first, second = map(json.loads, short_log(text).splitlines())
    assert first == line | {"loss": 0.1235}
    assert second == {"kind": "valid", "update": 2}


def test_a_proof_can_be_repeated_and_is_on_other_data(trained):
    run, config, _ = trained
    assert proof_data(config).seed != config.data.generate.seed
    first = prove(run, config)
    assert prove(run, config) == first
    assert set(first["vrmse"]) == {
        *(f"next step, {patch}" for patch in config.model.patches),
        "rollout, 4-8-16",
    }


def test_short_weights_that_change_errors_are_refused(trained, tmp_path, monkeypatch):
    run, _, results = trained
    monkeypatch.setattr(package_module, "MAX_CHANGE", -1.0)
    with pytest.raises(OvertoneError, match="short weights change"):
        package(run, results, "csm", "waves", tmp_path / "weights")
