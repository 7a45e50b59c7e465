import json
import math

import pytest
import torch

import overtone as ot
from overtone.hub import CALIBRATION as FILE
from overtone.models.calibration import ANY, Band, Calibration, load_calibration, step_of
from overtone.models.storage import save_calibration


def ratios(n, steps=3, fields=2, seed=0):
    """Errors that are ratio times disagreement, of ratios 1 … n in a random order."""
    random = torch.Generator().manual_seed(seed)
    order = torch.stack([torch.randperm(n, generator=random) + 1.0 for _ in range(steps)], dim=1)
    apart = 1 + torch.rand(n, steps, 1, generator=random).expand(n, steps, fields)
    return order[..., None] * apart, apart


def make(**changes):
    band = Band.measure(*ratios(39))
    given = {
        "weights": "a" * 64,
        "shape": (32, 48),
        "fields": ("a", "b"),
        "errors": {"4": 0.01, "4x8": 0.02},
        "bands": {("4", "patch"): band, (ANY, "patch"): Band.measure(*ratios(20))},
        "data": {"name": "flow"},
    }
    return Calibration(**(given | changes))


def test_bounds_are_order_statistics():
    """Of the ratios 1 … 39, 90 % intervals end at the second smallest and the second largest."""
    band = Band.measure(*ratios(39))
    assert band.factor == pytest.approx([20.0] * 3)
    assert band.bounds[0.9][0] == pytest.approx([2.0] * 3)
    assert band.bounds[0.9][1] == pytest.approx([38.0] * 3)
    assert band.bounds[0.5][0] == pytest.approx([10.0] * 3)
    assert band.bounds[0.5][1] == pytest.approx([30.0] * 3)
    assert torch.tensor(band.fields).shape == (3, 2)


def test_an_interval_holds_its_share_of_what_is_exchangeable():
    """Split conformal prediction: at least the level, whatever the distribution is."""
    random = torch.Generator().manual_seed(1)
    draws = torch.randn(4000, 24, generator=random).exp() ** 2  # heavy tails
    inside = {0.5: 0, 0.9: 0}
    for row in draws:
        band = Band.measure(row[:23, None, None], torch.ones(23, 1, 1))
        for level, (low, high) in band.bounds.items():
            inside[level] += bool(low[0] <= row[23] <= high[0])
    # (n + 1 - 2k)/(n + 1) with n = 23: k = 6 gives 12/24, k = 1 gives 22/24.
    assert inside[0.5] / 4000 == pytest.approx(12 / 24, abs=0.025)
    assert inside[0.9] / 4000 == pytest.approx(22 / 24, abs=0.015)


def test_too_few_rollouts_have_no_interval_of_a_level():
    assert 0.9 not in Band.measure(*ratios(18)).bounds
    assert 0.9 in Band.measure(*ratios(19)).bounds
    assert not Band.measure(*ratios(2)).bounds


def test_lost_rollouts_are_bounded_by_nothing():
    errors, apart = ratios(19)
    errors[3] = math.inf
    band = Band.measure(errors, apart)
    assert math.isinf(band.bounds[0.9][1][0])
    assert all(math.isfinite(value) for value in band.bounds[0.5][1])


def test_it_reads_back_as_it_was_written(tmp_path):
    errors, apart = ratios(19)
    errors[0] = math.inf
    lost = Band.measure(errors, apart)
    calibration = make(bands={("4", "patch"): lost})
    (tmp_path / FILE).write_text(calibration.to_json())
    found = load_calibration(tmp_path, "a" * 64)
    assert found.band("4", "patch").factor == pytest.approx(lost.factor, rel=1e-4)
    assert found.band("4", "patch").bounds[0.9][1] == pytest.approx(lost.bounds[0.9][1], rel=1e-4)
    assert (found.shape, found.fields, found.data) == ((32, 48), ("a", "b"), {"name": "flow"})
    assert load_calibration(tmp_path / "nowhere", "a" * 64) is None


def test_other_schedules_have_the_band_of_all():
    calibration = make()
    assert calibration.band("4", "patch").count == 39
    assert calibration.band("adaptive:0.02", "patch").count == 20
    assert calibration.band("4", "16+shift") is None


def test_patches_are_known_by_what_they_are(make_domain):
    calibration = make()
    assert step_of((4, 4)) == step_of(4) == "step 4"
    assert calibration.error_of((4, 4)) == calibration.error_of(4) == 0.01
    assert calibration.error_of((4, 8)) == 0.02
    assert calibration.error_of(16) is None
    assert calibration.on(make_domain()) is calibration
    assert calibration.on(make_domain((64, 48))) is None
    assert calibration.on(make_domain(fields=("a", "c"))) is None


def test_a_model_carries_it_from_folder_to_folder(tmp_path, make_model):
    model = make_model()
    model.save(tmp_path / "one")
    loaded = ot.load(tmp_path / "one")
    assert loaded.calibration is None
    save_calibration(tmp_path / "one", make(weights=loaded.digest))
    again = ot.load(tmp_path / "one")
    assert again.calibration.band("4", "patch").count == 39
    again.save(tmp_path / "two")
    assert ot.load(tmp_path / "two").calibration.errors == {"4": 0.01, "4x8": 0.02}
    again.save(tmp_path / "two")  # it is ours, and replaced with the rest
    # Other weights are not what was measured.
    half = {name: tensor.half() for name, tensor in again.state_dict().items()}
    again.save(tmp_path / "half", weights=half)
    assert not (tmp_path / "half" / FILE).exists()


def test_one_of_other_weights_is_refused(tmp_path, make_model):
    make_model().save(tmp_path / "one")
    with pytest.raises(ot.CheckpointError, match="of other weights than those in"):
        save_calibration(tmp_path / "one", make())
    (tmp_path / "one" / FILE).write_text(make().to_json())
    model = ot.load(tmp_path / "one")  # the model itself is sound
    with pytest.raises(ot.CheckpointError, match="measured with other weights.*overtone calibrate"):
        _ = model.calibration


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.update(format="overtone-calibration-9"),
        lambda c: c.pop("bands"),
        lambda c: c["bands"][0]["factor"].append(1.0),
        lambda c: c["bands"][0]["factor"].__setitem__(0, "NaN"),
        lambda c: c["bands"][0]["factor"].__setitem__(0, -1.0),
        lambda c: c["bands"][0].update(fields=[[1.0]] * 3),
        lambda c: c.update(errors=3),
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path, spoil):
    content = json.loads(make().to_json())
    spoil(content)
    (tmp_path / FILE).write_text(json.dumps(content))
    with pytest.raises(ot.CheckpointError, match="can't be read as a calibration"):
        load_calibration(tmp_path, "a" * 64)
