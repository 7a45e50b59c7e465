"""Settings that suit the data: rules on facts, told in five lines."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.domain import Domain
from overtone.errors import ConfigError
from overtone.train.config import DataConfig
from overtone.train.recipes import for_data, recipe
from overtone.train.run import make_model, read
from overtone.train.settings import change
from overtone.train.suit import Facts, explain, suit, suit_model, suitable_patches, survey_folder


def facts(shape=(64, 64), frames=(60,) * 16, valid=60, device="cpu", boundaries="periodic"):
    domain = Domain(shape, (1.0,) * len(shape), boundaries, ("a", "b"), 0.1)
    return Facts(domain, frames, valid, device, cores=2)


def chosen(**options):
    return suit(facts(**options), DataConfig(path="x"), recipe="mine", minutes=15.0)


@pytest.mark.parametrize(
    ("shape", "device", "patches"),
    [
        ((64,), "cpu", (4, 8, 16)),
        ((128, 32), "cpu", (4, 8, 16)),
        ((16, 16), "cpu", (2, 4, 8)),
        ((100, 60), "cpu", (4, 10, 20)),
        ((96, 64, 64), "cpu", (8, 16, 32)),
        ((96, 64, 64), "cuda", (4, 8, 16)),
        ((512, 512), "cpu", (16, 32, 64)),
        ((97, 61), "cpu", (4, 8, 16)),
        ((4, 4), "cpu", (1, 2)),
        ((1, 30), "cpu", (1,)),
    ],
)
def test_patches_suit_the_grid(shape, device, patches):
    assert suitable_patches(facts(shape, device=device)) == patches


@given(st.lists(st.integers(1, 700), min_size=1, max_size=3), st.sampled_from(["cpu", "cuda"]))
def test_patches_always_fit(shape, device):
    found = suitable_patches(facts(tuple(shape), device=device))
    assert 1 <= len(found) <= 3
    assert list(found) == sorted(set(found))
    assert all(1 <= patch <= max(min(shape) // 2, 1) for patch in found)


@given(st.lists(st.integers(3, 300), min_size=1, max_size=40), st.sampled_from(["cpu", "cuda"]))
def test_there_are_windows_for_whatever_is_chosen(frames, device):
    own = facts(frames=tuple(frames), valid=min(frames), device=device)
    config = suit(own, DataConfig(path="x"), recipe="mine", minutes=15.0)
    least = min(frames)
    assert config.model.context + max(config.train.unroll, 1) <= least
    assert config.model.context + config.valid.rollout_steps <= least
    windows = sum(n - config.model.context - config.train.unroll + 1 for n in frames)
    assert config.train.batch <= windows


def test_size_and_batch_follow_windows_and_machine():
    assert (chosen().model.size, chosen().train.batch) == ("tiny", 4)
    assert chosen(frames=(20,) * 4).model.size == "nano"
    assert chosen(shape=(32, 32, 32)).model.size == "nano"
    assert chosen(device="cuda").model.size == "tiny"
    assert chosen(device="cuda", frames=(60,) * 64).model.size == "7m"
    large = chosen(device="cuda", frames=(200,) * 1000)
    assert (large.model.size, large.train.batch) == ("25m", 16)
    assert chosen().optimizer.lr > large.optimizer.lr


def test_the_budget_ends_and_has_ten_points():
    config = chosen()
    assert (config.train.max_minutes, config.valid.points) == (15.0, 10)
    assert config.data.coarsen == 1


def test_a_folder_gets_a_model_that_fits_it(waves):
    config = for_data(waves)
    assert config == for_data(str(waves))
    data = read(config, waves, "train", horizon=config.train.unroll)
    model = make_model(config.model, data.domain)
    assert model.domain.shape == (64,)
    assert config.train.batch <= len(data)
    assert ot.recipes.for_data is for_data
    with pytest.raises(ConfigError, match="give --data FOLDER"):
        recipe("mine")


def test_it_is_told_in_five_lines_of_80_columns(waves):
    own = survey_folder(waves)
    lines = explain(for_data(waves), own)
    assert len(lines) == 5
    assert all(len(line) <= 80 for line in lines), lines
    assert lines[1] == "patches  4-8-16: they divide the grid; 16 to 4 tokens"
    assert "3 trajectories of 14 frames, 64 cells (all used)" in lines[0]
    assert lines[4] == "budget   15 min of training, validated at 10 points of it"


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (1, {"model.patches": [2, 4]}),
        (2, {"model.size": "7m"}),
        (2, {"model.context": 2}),
        (3, {"train.batch": 1}),
        (3, {"optimizer.lr": 1e-5}),
        (3, {"optimizer.kind": "adamw"}),
    ],
    ids=str,
)
def test_what_the_user_set_has_the_users_reasons(waves, line, changes):
    lines = explain(change(for_data(waves), changes), survey_folder(waves))
    assert [number for number, text in enumerate(lines) if "as set" in text] == [line]


def test_other_peoples_models_are_trained_with_care(make_model, make_domain):
    emulator, unet = make_model(), ot.baseline("unet", domain=make_domain(), size="mini")
    for model, kind, rate, shift in ((emulator, "muon", 8e-3, 0.5), (unet, "adamw", 1e-3, 0.0)):
        found = suit_model(model, facts(), None)
        assert (found["optimizer"].kind, found["optimizer"].lr) == (kind, rate)
        assert found["train"].shift == shift
        assert found["train"].max_minutes is None


def test_short_trajectories_are_read_in_short_windows():
    for frames in (4, 9, 17, 33, 400):
        assert chosen(frames=(frames,)).model.context == min(max(frames // 4, 2), 8)
    assert math.isfinite(chosen(frames=(3,), valid=3).optimizer.lr)
