"""One part of an update.

The loss, and what it may not see.
"""

import pytest
import torch

import overtone as ot
from overtone.normalize import statistics
from overtone.train import objective
from overtone.train.config import TrainConfig
from overtone.train.objective import FLOOR, LOSSES, choices, losses, nmse, supervise

DOMAIN = ot.Domain((16,), (1.0,), "periodic", ("u",), 0.1)
TIMES = pytest.mark.parametrize("time", ["fold", "attend"])


def make(**options):
    torch.manual_seed(0)
    sizes = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "layer_scale": 1.0}
    return ot.build("vit", domain=DOMAIN, patches=(2, 4), context=3, **(sizes | options)).train()


def run(model, config, window, target):
    chosen = choices(config, model.patches, 1, update=3, done=0.0)
    return list(losses(model.predict_change, window, target, chosen, config, causal=model.causal))


def frames(unroll=1):
    torch.manual_seed(1)
    x = torch.randn(2, 3 + unroll, 1, 16).cumsum(dim=1)
    return ot.Window(x[:, :3], DOMAIN), x[:, 3:]


def test_choices_are_reproducible_and_shifts_are_off_by_default():
    config = TrainConfig(unroll=3)
    assert choices(config, (2, 4), 2, 5, 0.0) == choices(config, (2, 4), 2, 5, 0.0)
    assert {shift for _, shift in choices(config, (2, 4), 2, 5, 0.0)} == {(0, 0)}
    shifted = [choices(TrainConfig(shift=True), (4,), 1, u, 0.0)[0][1] for u in range(30)]
    assert set(shifted) == {(0,), (1,), (2,), (3,)}
    seldom = [choices(TrainConfig(shift=0.1), (4,), 1, u, 0.0)[0][1] for u in range(30)]
    assert seldom.count((0,)) > 20


def test_a_run_is_unrolled_from_a_share_of_its_budget_on():
    """The first step is drawn as without, and each of the others anew."""
    late, never = (TrainConfig(unroll=n, unroll_from=0.5, shift=True) for n in (3, 1))
    for update in range(20):
        once = choices(never, (2, 4, 8), 2, update, 0.7)
        assert choices(late, (2, 4, 8), 2, update, 0.4999) == once
        for done in (0.5, 1.0):
            assert choices(late, (2, 4, 8), 2, update, done)[:1] == once
            assert len(choices(late, (2, 4, 8), 2, update, done)) == 3
    steps = zip(*(choices(late, (2, 4, 8), 2, update, 0.5) for update in range(20)), strict=True)
    by_step = [tuple(step) for step in steps]
    assert len({tuple(patch for patch, _ in step) for step in by_step}) == 3
    assert len({tuple(shift for _, shift in step) for step in by_step}) == 3


def test_steps_that_are_not_unrolled_need_no_target():
    """The data have targets for all steps; one alone is compared with the first of them."""
    model, config = make(), TrainConfig(unroll=3, unroll_from=0.5)
    window, target = frames(unroll=3)
    chosen = choices(config, model.patches, 1, update=3, done=0.2)
    found = list(losses(model.predict_change, window, target, chosen, config, causal=False))
    alone = losses(model.predict_change, window, target[:, :1], chosen, config, causal=False)
    assert [x.item() for x in found] == [x.item() for x in alone]


@TIMES
def test_unrolling_goes_on_from_the_models_own_frame(time):
    """The second loss equals that of a window which ends in the first prediction."""
    model, config = make(time=time), TrainConfig(unroll=2)
    window, target = frames(unroll=2)
    (first, second) = choices(config, model.patches, 1, update=3, done=0.0)
    found = run(model, config, window, target)
    with torch.no_grad():
        change, stats = model.predict_change(window, *first, last_only=True)
        frame = stats.add_change(window.fields[:, -1:], change)[:, 0]
        slid = window.slide(frame)
        change, stats = model.predict_change(slid, *second, last_only=True)
        true = stats.change_between(slid.fields[:, -1:], target[:, 1:2])
        error = (change - true).square().mean(-1) / (true.square().mean(-1) + 1e-2)
    assert found[1].item() == pytest.approx(error.mean().item(), rel=1e-5)


@TIMES
def test_no_gradient_flows_through_the_past(time):
    model, config = make(time=time), TrainConfig(unroll=2)
    window, target = frames(unroll=2)
    model.zero_grad()
    run(model, config, window, target)[1].backward()
    alone = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    first, second = choices(config, model.patches, 1, update=3, done=0.0)
    with torch.no_grad():
        change, stats = model.predict_change(window, *first, last_only=True)
        slid = window.slide(stats.add_change(window.fields[:, -1:], change)[:, 0])
    one = TrainConfig(unroll=1)
    (loss,) = losses(model.predict_change, slid, target[:, 1:], [second], one, causal=False)
    loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, alone[name], msg=name)


def test_noise_is_on_the_input_and_not_on_the_target():
    seen = {}

    def predict(window, patch, shift, *, last_only):
        seen["window"] = window.fields
        return make(time="attend").predict_change(window, patch, shift, last_only=last_only)

    window, target = frames()
    config = TrainConfig(noise=0.1)
    list(losses(predict, window, target, [(4, (0,))], config, causal=True))
    added = seen["window"] - window.fields
    scale = window.fields.std(dim=(1, 3), keepdim=True, correction=0)
    assert 0.05 < (added / scale).std().item() < 0.15


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@TIMES
def test_lower_precisions_are_near_full_precision(precision, time):
    model = make(time=time)
    window, target = frames()
    (full,) = run(model, TrainConfig(), window, target)
    (lower,) = run(model, TrainConfig(precision=precision), window, target)
    assert lower.dtype == torch.float32
    assert lower.item() == pytest.approx(full.item(), rel=0.05)


@TIMES
def test_without_causality_the_last_frame_alone_is_supervised(time):
    model = make(time=time, causal=False)
    window, target = frames()
    (loss,) = run(model, TrainConfig(loss="mse"), window, target)
    (patch, shift), *_ = choices(TrainConfig(), model.patches, 1, update=3, done=0.0)
    change, stats = model.predict_change(window, patch, shift, last_only=True)
    true = stats.change_between(window.fields[:, -1:], target)
    torch.testing.assert_close(loss, (change - true).square().mean())


@pytest.mark.parametrize("boundary", ["periodic", "wall", "open", ("wall", "open")])
@TIMES
def test_shifts_train_on_every_kind_of_boundary(boundary, time):
    sides = boundary if isinstance(boundary, str) else [boundary]
    domain = ot.Domain((18,), (1.0,), sides, ("u",), 0.1)
    sizes = {"context": 3, "width": 16, "heads": 2, "time": time}
    model = ot.build("vit", domain=domain, patches=(2, 4), **sizes).train()
    x = torch.randn(2, 4, 1, 18).cumsum(dim=1)
    window, target = ot.Window(x[:, :3], domain), x[:, 3:]
    for shift in range(4):
        model.zero_grad()
        chosen, causal = [(4, (shift,))], model.causal
        (loss,) = losses(model.predict_change, window, target, chosen, TrainConfig(), causal=causal)
        loss.backward()
        assert loss.isfinite()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_nmse_by_hand():
    target = torch.tensor([[[[1.0, -1.0], [2.0, 2.0]]]])  # (1, 1, 2 fields, 2 cells)
    prediction = target + torch.tensor([0.5, 1.0]).reshape(1, 1, 2, 1)
    expected = (0.25 / (1 + FLOOR) + 1.0 / (4 + FLOOR)) / 2
    assert nmse(prediction, target).item() == pytest.approx(expected)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_perfect_prediction_has_no_loss(kind):
    domain = ot.Domain((8,), (1.0,), "periodic", ("u",), 0.1)
    frames = torch.randn(2, 5, 1, 8)
    window = ot.Window(frames[:, :4], domain)
    stats = statistics(window.fields)
    changes = stats.change_between(frames[:, :4], frames[:, 1:])
    assert supervise(kind, changes, stats, window, frames[:, 1:]).item() == 0
    last = supervise(kind, changes[:, -1:], stats.last(), window, frames[:, 1:])
    assert last.item() == 0


def test_the_first_frame_is_not_supervised_when_all_are():
    domain = ot.Domain((8,), (1.0,), "periodic", ("u",), 0.1)
    frames = torch.randn(1, 4, 1, 8)
    window, stats = ot.Window(frames[:, :3], domain), statistics(frames[:, :3])
    changes = stats.change_between(frames[:, :3], frames[:, 1:])
    changes[:, 0] += 100
    assert supervise("mse", changes, stats, window, frames[:, 1:]).item() == 0
    changes[:, 1] += 1
    assert supervise("mse", changes, stats, window, frames[:, 1:]).item() == pytest.approx(0.5)


@pytest.mark.parametrize("kind", LOSSES)
def test_the_loss_of_a_frame_does_not_depend_on_the_models_unit(kind):
    domain = ot.Domain((8,), (1.0,), "periodic", ("u", "v"), 0.1)
    frames = torch.randn(2, 5, 2, 8)
    window, following = ot.Window(frames[:, :4], domain), frames[:, 1:]
    predicted = following + 0.1 * torch.randn(2, 4, 2, 8)
    found = []
    for pace in (None, torch.tensor([0.3, 20.0])):
        stats = statistics(window.fields, pace=pace)
        changes = stats.change_between(window.fields, predicted)
        found.append(supervise(kind, changes, stats, window, following))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("processor", ["vit", "axial"])
def test_no_target_leaks_into_its_own_prediction(processor):
    """Perturbing the last frame leaves the predictions of all earlier frames unchanged."""
    domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("u", "v"), 0.1)
    model = ot.build(processor, domain=domain, patches=(4, 8), context=4, layer_scale=1.0,
                     time="attend")  # fmt: skip
    fields = torch.randn(2, 4, 2, 16, 16)
    other = fields.clone()
    other[:, -1] += torch.randn(2, 2, 16, 16)
    for patch in (4, 8):
        one, units = model.predict_change(ot.Window(fields, domain), patch)
        two, others = model.predict_change(ot.Window(other, domain), patch)
        torch.testing.assert_close(one[:, :-1], two[:, :-1])
        torch.testing.assert_close(units.change[:, :-1], others.change[:, :-1])
        assert not torch.allclose(one[:, -1], two[:, -1])


@pytest.mark.parametrize("unit", [1e-25, 1e20])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@TIMES
def test_the_loss_does_not_depend_on_units(unit, noise, time):
    model, config = make(time=time), TrainConfig(unroll=2, noise=noise)
    window, target = frames(unroll=2)
    found = []
    for scale in (1.0, unit):
        torch.manual_seed(3)
        scaled = ot.Window(scale * window.fields, DOMAIN)
        found.append(torch.stack(run(model, config, scaled, scale * target)))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=0.0)
    found[1].sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@TIMES
def test_a_field_that_is_zero_in_the_context_teaches_nothing(time):
    """Nobody knows its unit: whatever it becomes is neither rewarded nor punished."""
    model = make(time=time)
    window, target = frames()
    for following in (target, 1e20 * target):
        (loss,) = run(model, TrainConfig(), ot.Window(0 * window.fields, DOMAIN), following)
        assert loss == 0
    loss.backward()
    assert all(p.grad is None or bool((p.grad == 0).all()) for p in model.parameters())


def test_noise_is_a_share_of_each_field():
    window, _ = frames()
    for unit in (1e-25, 1e20):
        torch.manual_seed(0)
        noisy = objective._with_noise(ot.Window(unit * window.fields, DOMAIN), 0.1)
        noise = (noisy.fields / unit - window.fields).std(dim=(1, 3), correction=0)
        share = noise / window.fields.std(dim=(1, 3), correction=0)
        assert share.flatten().tolist() == pytest.approx([0.1, 0.1], rel=0.3)


def test_unrolled_steps_at_one_patch_have_shifts_of_their_own():
    config = TrainConfig(unroll=3, shift=True)
    drawn = [choices(config, (16,), 2, update, 0.0) for update in range(20)]
    different = [len({shift for _, shift in steps}) for steps in drawn]
    assert different.count(3) > 15
