"""The whole model: identities, boundaries, gradients, precision, and refusals."""

import itertools
from functools import partial

import pytest
import torch

import overtone as ot
from overtone.models.processors import PROCESSORS

KINDS = list(itertools.product(PROCESSORS, ["csm", "ckm"]))
EQUIVARIANT = [kind for kind in KINDS if kind[0] in ("vit", "axial")]
ATTEND = pytest.mark.parametrize("time", ["attend"])
FOLD = pytest.mark.parametrize("time", ["fold"])


@pytest.fixture(params=["fold", "attend"])
def time(request):
    """How frames meet: both ways, in every test here that does not name one."""
    return request.param


@pytest.fixture
def make_model(make_model, time):
    return partial(make_model, time=time)


@FOLD
@pytest.mark.parametrize("tokenizer", ["csm", "ckm"])
def test_every_field_of_every_frame_is_read(make_model, make_window, tokenizer):
    """Turned over, it has the same mean and spread; so the model must have looked at its cells."""
    model = make_model(tokenizer=tokenizer, context=4)
    window = make_window(model.domain, frames=4)
    change, _ = model.predict_change(window, 8)
    for frame, field in itertools.product(range(4), range(2)):
        fields = window.fields.clone()
        fields[:, frame, field] = fields[:, frame, field].flip(-1)
        other, _ = model.predict_change(ot.Window(fields, model.domain), 8)
        assert (other - change).std() > 0.1 * change.std(), (frame, field)


@FOLD
@pytest.mark.parametrize("boundary", ["periodic", "wall", "open"])
@pytest.mark.parametrize("shape", [(20,), (12, 20), (8, 8, 12)])
@pytest.mark.parametrize("tokenizer", ["csm", "ckm", "fixed"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_whatever_a_folded_model_is_made_of_all_of_it_learns(
    make_domain, make_model, make_window, processor, tokenizer, shape, boundary
):
    domain = make_domain(shape, boundary)
    patches = (4,) if tokenizer == "fixed" else (2, 4)
    model = make_model(domain, processor, tokenizer, patches, refine=3, skip=True)
    change, stats = model.train().predict_change(make_window(domain), 4, 1)
    assert change.shape == (2, 1, 2, *shape)
    assert stats.unit.shape == (2, 1, 2)
    assert change.isfinite().all()
    change.square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(("processor", "tokenizer"), KINDS)
@pytest.mark.parametrize("shape", [(48,), (32, 40), (16, 16, 24)])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
def test_predicts_a_frame_at_every_patch_in_1d_2d_3d(
    make_domain, make_model, make_window, processor, tokenizer, shape, boundary
):
    domain = make_domain(shape, boundary)
    model = make_model(domain, processor, tokenizer)
    window = make_window(domain)
    for patch in (4, 8, 16):
        frame = model(window, patch=patch, shift=3)
        assert frame.shape == (2, 2, *shape)
        assert frame.isfinite().all()


@pytest.mark.parametrize(("processor", "tokenizer"), KINDS)
@pytest.mark.parametrize("boundary", ["periodic", ("periodic", ("wall", "open"))])
def test_gradients_are_finite_and_reach_every_parameter(
    make_domain, make_model, make_window, processor, tokenizer, boundary
):
    """Every parameter that is counted is used, at every patch."""
    domain = make_domain(boundaries=boundary)
    for patch in (4, 8, 16):
        model = make_model(domain, processor, tokenizer)
        change, _ = model.predict_change(make_window(domain), patch)
        change.square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("processor", PROCESSORS)
def test_fixed_models_use_every_parameter_too(make_domain, make_model, make_window, processor):
    domain = make_domain(boundaries="open")
    model = make_model(domain, processor, tokenizer="fixed", patches=(8,))
    model.predict_change(make_window(domain), 8)[0].square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


@pytest.mark.parametrize("shape", [(48,), (32, 48), (16, 16, 32)])
@pytest.mark.parametrize(
    ("processor", "tokenizer"), [*EQUIVARIANT, ("vit", "fixed"), ("axial", "fixed")]
)
def test_on_periodic_domains_whole_patch_shifts_commute(
    make_domain, make_model, make_window, processor, tokenizer, shape
):
    domain = make_domain(shape)
    patches = (8,) if tokenizer == "fixed" else (4, 8, 16)
    model = make_model(domain, processor, tokenizer, patches, skip=True).double()
    window = make_window(domain, dtype=torch.float64)
    for patch in patches:
        shifts = (patch, 2 * patch, 3 * patch)[: domain.ndim]
        move = {"shifts": shifts, "dims": tuple(range(-domain.ndim, 0))}
        rolled = ot.Window(torch.roll(window.fields, **move), domain)
        assert torch.allclose(
            model(rolled, patch=patch), torch.roll(model(window, patch=patch), **move), atol=1e-10
        )


@pytest.mark.parametrize(("processor", "tokenizer"), KINDS)
def test_a_shift_by_whole_patches_is_no_shift(make_model, make_window, processor, tokenizer):
    model = make_model(processor=processor, tokenizer=tokenizer)
    window = make_window(model.domain)
    for patch in (4, 8, 16):
        shifted = model(window, patch=patch, shift=(patch, 3 * patch))
        assert torch.equal(shifted, model(window, patch=patch))


def test_shifted_windows_commute_with_shifts_by_whole_windows(make_domain, make_model, make_window):
    model = make_model(make_domain((32, 48)), "swin", window=4).double()
    window = make_window(model.domain, dtype=torch.float64)
    move = {"shifts": (16, 32), "dims": (-2, -1)}
    rolled = ot.Window(torch.roll(window.fields, **move), model.domain)
    assert torch.allclose(
        model(rolled, patch=4), torch.roll(model(window, patch=4), **move), atol=1e-10
    )


@pytest.mark.parametrize("shape", [(48,), (32, 48), (16, 8, 24)])
@pytest.mark.parametrize("tokenizer", ["csm", "ckm", "fixed"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_shifting_the_grid_is_shifting_the_fields_the_other_way(
    make_domain, make_model, make_window, processor, tokenizer, shape
):
    domain = make_domain(shape)
    patches = (8,) if tokenizer == "fixed" else (4, 8)
    model = make_model(domain, processor, tokenizer, patches, skip=True).double()
    window = make_window(domain, dtype=torch.float64)
    shift, dims = (3, 5, 6)[: domain.ndim], tuple(range(-domain.ndim, 0))
    rolled = ot.Window(torch.roll(window.fields, [-s for s in shift], dims), domain)
    expected = torch.roll(model(rolled, patch=8), shift, dims)
    assert torch.allclose(model(window, patch=8, shift=shift), expected, atol=1e-10)
    assert not torch.allclose(model(window, patch=8), expected, atol=1e-4)


@pytest.mark.parametrize("boundary", ["wall", "open", ("periodic", ("wall", "open"))])
def test_any_shift_keeps_the_grid_on_every_boundary(make_domain, make_model, make_window, boundary):
    domain = make_domain((19, 22), boundary)
    model = make_model(domain)
    window = make_window(domain, batch=1)
    for shift in itertools.product((0, 1, 7), (0, 4, 15)):
        assert model(window, patch=8, shift=shift).shape == (1, 2, 19, 22)


@ATTEND
@pytest.mark.parametrize("processor", PROCESSORS)
def test_no_target_leaks_into_its_own_prediction(make_model, make_window, processor):
    """Perturb the last frame: predictions made at earlier frames are unchanged."""
    model = make_model(processor=processor)
    window = make_window(model.domain)
    changed = window.fields.clone()
    changed[:, -1] = 50 * torch.randn_like(changed[:, -1])
    before, _ = model.predict_change(window, 8)
    after, _ = model.predict_change(ot.Window(changed, model.domain), 8)
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1], atol=1e-3)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_last_only_equals_the_last_of_every_frame(make_model, make_window, processor):
    model = make_model(processor=processor).double()
    window = make_window(model.domain, dtype=torch.float64)
    change, stats = model.predict_change(window, 4)
    frame = stats.last().add_change(window.fields[:, -1:], change[:, -1:])[:, 0]
    assert torch.allclose(model(window, patch=4), frame, atol=1e-12)


def test_of_more_frames_than_the_context_the_latest_count(make_model, make_window):
    model = make_model(context=3)
    long = make_window(model.domain, frames=6)
    assert torch.equal(model(long, patch=8), model(long.last(3), patch=8))
    earliest = ot.Window(long.fields[:, :3], model.domain)
    assert not torch.allclose(model(long, patch=8), model(earliest, patch=8))


@ATTEND
def test_fewer_frames_than_the_context(make_model, make_window):
    model = make_model(context=3)
    assert model(make_window(model.domain, frames=2), patch=8).shape == (2, 2, 32, 48)


def test_a_model_of_one_frame(make_domain, make_model, make_window):
    model = make_model(context=1)
    window = make_window(model.domain, frames=1)
    frames = list(ot.rollout(model, window, steps=3, schedule=ot.Cycle(4, 8)))
    assert all(frame.isfinite().all() for frame in frames)
    model.predict_change(window, 8)[0].square().mean().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_samples_of_a_batch_do_not_mix(make_model, make_window):
    model = make_model().double()
    window = make_window(model.domain, batch=3, dtype=torch.float64)
    alone = ot.Window(window.fields[1:2], model.domain)
    assert torch.allclose(model(window, patch=8)[1:2], model(alone, patch=8), atol=1e-12)


def test_units_do_not_matter(make_model, make_window):
    """A field of amplitude 1e-6 is predicted like one of amplitude 1."""
    model = make_model().double()
    window = make_window(model.domain, dtype=torch.float64)
    scale = torch.tensor([1e-6, 1e4], dtype=torch.float64).reshape(2, 1, 1)
    scaled = model(ot.Window(window.fields * scale, model.domain), patch=8)
    assert torch.allclose(scaled, model(window, patch=8) * scale, rtol=1e-9, atol=0)


def test_constant_and_steady_windows(make_model):
    model = make_model()
    constant = torch.full((1, 3, 2, 32, 48), 7.0)
    assert torch.allclose(
        model(ot.Window(constant, model.domain), patch=8), constant[:, 0], rtol=1e-3
    )
    steady = torch.randn(1, 1, 2, 32, 48).expand(1, 3, 2, 32, 48)
    frame = model(ot.Window(steady, model.domain), patch=8)
    assert torch.allclose(frame, steady[:, 0], atol=1e-3)


def test_another_resolution_of_the_same_system(make_domain, make_model, make_window):
    model = make_model(make_domain((32, 48)))
    assert model(make_window(make_domain((40, 64))), patch=8).shape == (2, 2, 40, 64)


def test_patches_with_one_int_for_each_axis(make_domain, make_model, make_window):
    model = make_model(make_domain(), patches=((4, 8), 8))
    assert model.patches == ((4, 8), 8)
    window = make_window(model.domain)
    assert model(window, patch=(4, 8)).shape == model(window, patch=(8, 8)).shape
    with pytest.raises(ot.PatchError, match=r"patch \(8, 4\).*knows \(4, 8\), 8"):
        model(window, patch=(8, 4))


# The blocks see tokens, whatever those were made from.
@pytest.mark.parametrize("time", ["fold", pytest.param("attend", marks=pytest.mark.slow)])
def test_coprime_patches_on_a_grid_of_sixty(make_domain, make_model, make_window):
    domain = make_domain((60, 60))
    for tokenizer in ("csm", "ckm"):
        model = make_model(domain, tokenizer=tokenizer, patches=(3, 4, 5))
        window = make_window(domain)
        for patch in (3, 4, 5):
            moved = ot.Window(window.fields.roll((patch, 2 * patch), (-2, -1)), domain)
            expected = model(window, patch=patch).roll((patch, 2 * patch), (-2, -1))
            torch.testing.assert_close(model(moved, patch=patch), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("tokenizer", ["csm", "ckm"])
@pytest.mark.parametrize("stages", [1, 3])
def test_other_numbers_of_stages(make_model, make_window, tokenizer, stages):
    model = make_model(tokenizer=tokenizer, stages=stages)
    assert len(model.tokenizer.encoders) == stages
    assert model(make_window(model.domain), patch=16).isfinite().all()


@pytest.mark.parametrize(("processor", "tokenizer"), KINDS)
def test_bfloat16_autocast_is_close_to_float32(make_model, make_window, processor, tokenizer):
    model = make_model(processor=processor, tokenizer=tokenizer)
    window = make_window(model.domain)
    for patch in (4, 8, 16):
        reference, _ = model.predict_change(window, patch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half, _ = model.predict_change(window, patch)
            half.float().square().mean().backward()
        assert (half - reference).std() < 0.03 * reference.std()


def test_a_model_in_half_precision(make_model, make_window):
    model = make_model()
    window = make_window(model.domain)
    reference = model(window, patch=8)
    frame = model.bfloat16()(window, patch=8)
    assert frame.dtype == torch.float32
    assert (frame - reference).std() < 0.05 * (reference - window.fields[:, -1]).std()


@pytest.mark.parametrize(
    ("processor", "tokenizer", "boundary"),
    [
        ("vit", "csm", "periodic"),
        pytest.param("axial", "ckm", "wall", marks=pytest.mark.slow),
        pytest.param("vit", "csm", "wall", marks=pytest.mark.slow),
        pytest.param("axial", "ckm", "periodic", marks=pytest.mark.slow),
        pytest.param("swin", "csm", "wall", marks=pytest.mark.slow),  # masked
        pytest.param("afno", "ckm", "wall", marks=pytest.mark.slow),  # mirrored
    ],
)
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("time", ["fold", pytest.param("attend", marks=pytest.mark.slow)])
# torch's own compiler imports deprecated parts of torch.
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
# Spectral mixing: the transforms stay in the graph and run as they would without a compiler.
@pytest.mark.filterwarnings("ignore:Torchinductor does not support.*complex:UserWarning")
def test_compiles_as_one_graph(
    make_domain, make_model, make_window, processor, tokenizer, boundary, backend
):
    torch.compiler.reset()
    domain = make_domain(boundaries=boundary)
    model = make_model(domain, processor, tokenizer, blocks=1)
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend=backend)
    window = make_window(domain)
    for patch in (4, 8):
        assert torch.allclose(compiled(window, patch, 3), model(window, patch, 3), atol=1e-4)


def test_drop_path_only_acts_in_training(make_model, make_window):
    model = make_model(drop_path=0.5)
    window = make_window(model.domain)
    assert torch.equal(model(window, patch=8), model(window, patch=8))
    model.train()
    frames = [model(window, patch=8) for _ in range(8)]  # two samples, each dropped half the time
    assert not all(torch.equal(frames[0], frame) for frame in frames)


def test_sizes_have_the_parameters_their_names_promise():
    domain = ot.Domain((64, 128), (1, 2), "periodic", ("a", "b", "c", "d"))
    targets = {"tiny": 0.75e6, "7m": 7e6, "25m": 25e6, "100m": 100e6}
    for (size, target), kind in itertools.product(targets.items(), PROCESSORS):
        with torch.device("meta"):
            model = ot.build(kind, size=size, domain=domain, time="attend")
        # Spectral mixing has fewer weights than attention of the same width.
        tolerance = 0.25 if kind == "afno" else 0.15
        assert model.num_parameters == pytest.approx(target, rel=tolerance)
    widths = {"7m": (192, 3), "25m": (384, 6), "100m": (768, 12)}
    for size, (width, heads) in widths.items():
        with torch.device("meta"):
            a = ot.build("vit", size=size, domain=domain).architecture
        assert (a.width, a.heads, a.blocks) == (width, heads, 12)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_folding_costs_channels_and_saves_time_attention(make_domain, processor):
    """By so many parameters two models differ that are otherwise the same."""
    fold, attend = (
        ot.build(processor, domain=make_domain(), context=5, stage_dim=7, time=time, skip=False)
        for time in ("fold", "attend")
    )
    parts = [part for block in attend.processor.blocks for part in (block.time, block.time_norm)]
    saved = sum(p.numel() for part in parts for p in part.parameters())
    added = 4 * 2 * 7 * 4**2  # four more frames of two fields to seven channels, 4x4 taps
    assert attend.num_parameters - fold.num_parameters == saved - added
    assert {block.time for block in fold.processor.blocks} == {None}


class TestRefusals:
    """Each message says what was given, what was expected and what to do."""

    def test_patch_not_trained_for(self, make_model, make_window):
        model = make_model()
        window = make_window(model.domain)
        with pytest.raises(
            ot.PatchError, match=r"patch 2 was not.*knows 4, 8, 16.*allow_untrained"
        ):
            model(window, patch=2)
        assert model(window, patch=2, allow_untrained=True).isfinite().all()

    def test_wrong_channels(self, make_domain, make_model, make_window):
        other = make_domain(fields=("a", "b", "c"))
        with pytest.raises(
            ot.DomainError, match=r"fields \('a', 'b', 'c'\).*built for \('a', 'b'\)"
        ):
            make_model()(make_window(other), patch=8)

    def test_wrong_number_of_dimensions(self, make_domain, make_model, make_window):
        with pytest.raises(ot.DomainError, match="the window is 1D, the model was built for 2D"):
            make_model()(make_window(make_domain((32,))), patch=8)

    def test_no_batch_axis(self, make_domain, make_model):
        window = ot.Window(torch.zeros(3, 2, 32, 48), make_domain())
        with pytest.raises(ot.DomainError, match=r"without a batch axis.*unsqueeze"):
            make_model()(window, patch=8)

    def test_nan(self, make_model, make_window):
        model = make_model()
        window = make_window(model.domain)
        window.fields[0, 1, 1, 3, 4] = float("nan")
        with pytest.raises(ot.DomainError, match=r"sample 0, frame 1, field 'b', cell \(3, 4\)"):
            model(window, patch=8)

    @FOLD
    @pytest.mark.parametrize("frames", [1, 2])
    def test_window_too_short_to_fold(self, make_model, make_window, frames):
        model = make_model()
        window = make_window(model.domain, frames=frames)
        message = rf"has {frames} frames.*reads exactly 3 as channels.*context={frames}.*'attend'"
        with pytest.raises(ot.DomainError, match=message):
            model(window, patch=8)
        with pytest.raises(ot.DomainError, match=message):
            model.train().predict_change(window, 8)
        with pytest.raises(ot.DomainError, match=message):
            next(ot.rollout(model.eval(), window, steps=1, schedule=8))

    @ATTEND
    def test_window_too_short(self, make_model, make_window):
        model = make_model()
        with pytest.raises(ot.DomainError, match=r"has 1 frames.*at least 2.*built for 3"):
            model(make_window(model.domain, frames=1), patch=8)

    def test_other_time_step(self, make_domain, make_model, make_window):
        with pytest.raises(ot.DomainError, match=r"dt is 0\.2, the model steps by 0\.1"):
            make_model()(make_window(make_domain(dt=0.2)), patch=8)

    def test_axis_shorter_than_the_patch(self, make_domain, make_model, make_window):
        with pytest.raises(ot.PatchError, match="patch 16 does not fit axis 0 of 8 cells"):
            make_model()(make_window(make_domain((8, 48))), patch=16)

    def test_shift_of_wrong_length(self, make_model, make_window):
        model = make_model()
        with pytest.raises(ot.DomainError, match="shift is .1, 2, 3.; expected one int"):
            model(make_window(model.domain), patch=8, shift=(1, 2, 3))


@pytest.mark.parametrize("tokenizer", ["csm", "ckm"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_an_untrained_model_is_near_persistence(make_model, make_window, processor, tokenizer):
    """It predicts a tenth of the context's own change, at every patch, and not nothing."""
    model = make_model(processor=processor, tokenizer=tokenizer)
    window = make_window(model.domain)
    for patch in model.patches:
        change, _ = model.predict_change(window, patch, last_only=True)
        assert 0.05 < change.square().mean().sqrt().item() < 0.3
