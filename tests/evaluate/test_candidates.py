"""Which seconds of a model call are counted."""

import json
from dataclasses import replace

import pytest

import overtone as ot
from overtone.evaluate import Candidate, candidates, load_candidate
from overtone.evaluate.candidates import as_candidates, choose_schedules, used_patches
from overtone.models.cvit import build_cvit
from overtone.models.flops import call_flops


def test_a_folder_tells_name_config_and_training(emulator, tmp_path):
    emulator.save(tmp_path / "run" / "best", training={"seed": 7, "updates": 100})
    for path in (tmp_path / "run", tmp_path / "run" / "best"):
        found = load_candidate(path)
        assert (found.name, found.seed) == ("run", 7)
    assert found.training == {"seed": 7, "updates": 100}
    assert found.config["kind"] == "emulator"
    assert found.config["patches"] == [[4, 4], [8, 8]]
    json.dumps(found.config)
    assert load_candidate(tmp_path / "run", "mine").name == "mine"


def test_every_kind_of_model_tells_what_it_was_built_from(emulator, toy_domain):
    unet = ot.baseline("unet", domain=toy_domain, size="mini", width=4)
    cvit = build_cvit(domain=toy_domain, patches=(4, 8), context=2)
    assert Candidate("u", unet).config == {"kind": "baseline", "name": "unet", **unet.options}
    assert Candidate("c", cvit).config == {"kind": "cvit", **cvit.architecture.to_dict()}
    architecture = emulator.architecture.to_dict()
    assert Candidate("e", emulator).config == {"kind": "emulator", **architecture}
    assert [Candidate("m", m).patched for m in (unet, cvit, emulator)] == [False, True, True]


def test_what_is_unknown_is_none(roller, emulator, tmp_path):
    emulator.save(tmp_path / "bare")
    assert load_candidate(tmp_path / "bare").seed is None
    assert roller.config == {"kind": "Roller"}
    assert roller.flops(roller.model.domain, 4) == 0


def test_missing_models_are_named(tmp_path):
    with pytest.raises(ot.CheckpointError, match="does not exist"):
        load_candidate(tmp_path / "nothing")


def test_patches_are_known_in_any_form(roller):
    assert roller.knows(4)
    assert roller.knows((8, 8))
    assert not roller.knows((4, 8))
    assert not roller.knows(16)


def test_flops_are_counted_once(emulator, monkeypatch):
    candidate = Candidate("e", emulator)
    count = candidate.flops(emulator.domain, 4)
    assert count == call_flops(emulator, emulator.domain, 4, frames=3)
    monkeypatch.setattr(candidates, "call_flops", None)
    assert candidate.flops(emulator.domain, 4) == count


def test_an_unusable_device_is_one_message(emulator):
    with pytest.raises(ot.OvertoneError, match="device 'nonsense' can't be used"):
        Candidate("e", emulator).prepare("nonsense")


def test_models_must_differ_and_predict_the_same(roller, steppers, make_domain):
    named = as_candidates({"x": roller.model, "y": steppers["Persistent"]()})
    assert [c.name for c in named] == ["x", "y"]
    seeds = [Candidate("x", roller.model, {"seed": seed}) for seed in (0, 1)]
    assert as_candidates(seeds) == tuple(seeds)
    with pytest.raises(ot.OvertoneError, match="two models are called 'roller'"):
        as_candidates([roller, roller])
    with pytest.raises(ot.OvertoneError, match="at least one"):
        as_candidates([])
    other = Candidate("other", type(roller.model)(make_domain(fields=("b", "clock"))))
    with pytest.raises(ot.DomainError, match="evaluate them apart"):
        as_candidates([roller, other])


def test_how_data_was_read_in_training_is_remembered():
    trained = Candidate("a", None, {"data": {"coarsen": [2, 4], "stride": 3}})
    assert (trained.trained_on("coarsen"), trained.trained_on("stride")) == ((2, 4), 3)
    assert Candidate("b", None).trained_on("coarsen") == 1


def choose(candidate, wanted, steps=6):
    notes = []
    domain = candidate.model.domain
    chosen = choose_schedules(candidate, wanted, domain, steps, notes.append)
    return [str(schedule) for schedule in chosen], notes


def test_the_usual_ones(roller, steppers):
    assert choose(roller, None) == (["4", "8", "4-8", "4-8+shift"], [])
    fixed = steppers["Roller"]()
    fixed.patches = ((8, 16),)
    assert choose(Candidate("fixed", fixed), None) == (["8x16"], [])
    fixed.patches = (8, (4, 8), 4)
    assert choose(Candidate("mixed", fixed), None)[0][:4] == ["4", "4x8", "8", "4-4x8-8"]


def test_unknown_patches_are_left_out_with_a_note(roller):
    chosen, notes = choose(roller, ["8", "4-8-16", ot.Constant(4), "8"])
    assert chosen == ["8", "4"]
    assert notes == ["schedule 4-8-16 is left out for model 'roller', which does not know patch 16"]


def test_untrained_patches_are_taken_where_they_are_allowed(emulator, roller, toy_domain):
    """By models that can make them: a stride beyond the kernel, or a fixed patch, can't be."""
    own = Candidate("csm", emulator, allow_untrained=True)
    chosen, notes = choose(own, ["4", "2-8", "16"])
    assert chosen == ["4", "2-8"]
    assert "schedule 16 is left out for model 'csm', for which patch (16, 16) needs" in notes[0]
    assert notes[1:] == ["model 'csm' was not trained for patch 2"]
    sizes = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 3}
    fixed = ot.build("vit", domain=toy_domain, tokenizer="fixed", patches=8, **sizes)
    chosen, notes = choose(Candidate("fixed", fixed, allow_untrained=True), ["8", "4"])
    assert chosen == ["8"]
    assert "which a fixed tokenizer" in notes[0]
    foreign = replace(roller, allow_untrained=True)  # other people's models say what they know
    assert choose(foreign, ["8", "16"])[0] == ["8"]


def test_only_the_steps_that_are_made_count(roller):
    assert choose(roller, ["warmup:4-4-8:16"], steps=3)[0] == ["warmup:4-4-8:16"]
    assert used_patches(ot.parse_schedule("warmup:4-4-8:16"), 3) == (4, 8)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["16", "4-16"], "knows patch 4, 8 and can follow none of the schedules 16, 4-16"),
        (["four"], "can't be read"),
        (["explicit:4-8"], "has 2 steps, step 2 was asked for"),
        ([], "can follow none"),
    ],
)
def test_mistakes(roller, wanted, message):
    with pytest.raises(ot.PatchError, match=message):
        choose(roller, wanted)


def test_a_patch_larger_than_the_grid(steppers):
    model = steppers["Roller"]()
    model.patches = (4, 24)
    with pytest.raises(ot.PatchError, match="patch 24 does not fit axis 0 of 16 cells"):
        choose(Candidate("big", model), ["24"])
