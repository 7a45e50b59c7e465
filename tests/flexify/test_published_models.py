"""Models that nobody here wrote: timm's ViT and BEiT, and The Well's AFNO.

They need `pip install --no-deps timm torchvision` (and the_well with einops for AFNO); without,
these tests are skipped.
"""

import importlib
import importlib.util
import sys
import types
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

import overtone as ot

CELLS = (32, 48)


@pytest.fixture(scope="session")
def timm():
    """timm, with two operators that torchvision's compiled part would have defined."""
    for name in ("timm", "torchvision"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install --no-deps timm torchvision")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = _define_missing_operators()
        importlib.import_module("timm.models")
        yield importlib.import_module("timm")
    del library


def _define_missing_operators():
    """torch's CPU build has no torchvision that matches, whose compiled part would define them."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


@pytest.fixture(scope="session")
def afno(timm):
    """The Well's AFNO, imported past a package file that needs neuraloperator."""
    for name in ("the_well", "einops", "huggingface_hub"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: see 'make test-all'")
    benchmark = importlib.import_module("the_well.benchmark")
    package = types.ModuleType("the_well.benchmark.models")
    package.__path__ = [str(Path(next(iter(benchmark.__path__))) / "models")]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setitem(sys.modules, package.__name__, package)
        yield importlib.import_module("the_well.benchmark.models.afno").AFNO


class Field(nn.Module):
    """A timm classifier whose head gives each token its patch, unfolded to a field."""

    def __init__(self, vit, channels):
        super().__init__()
        self.vit, self.channels = vit, channels

    def forward(self, x):
        rows = self.vit.head(self.vit.forward_features(x))
        rows = rows[:, self.vit.num_prefix_tokens :]
        # A model of variable size does not keep its grid up to date; the input tells.
        p, q = self.vit.patch_embed.patch_size
        h, w = x.shape[2] // p, x.shape[3] // q
        y = rows.reshape(-1, h, w, p, q, self.channels).permute(0, 5, 1, 3, 2, 4)
        return y.reshape(-1, self.channels, h * p, w * q)


def make_vit(timm, **options):
    vit = timm.models.VisionTransformer(
        img_size=CELLS, patch_size=8, in_chans=4, num_classes=2 * 64, global_pool="", embed_dim=24,
        depth=2, num_heads=2, **options,
    )  # fmt: skip
    return Field(vit, 2).eval()


def flexify_vit(model, mode="ckm", patches=(2, 4, 8, 16)):
    patches = tuple(p for p in patches if mode == "ckm" or p <= 8)
    return ot.flexify(
        model, "vit.patch_embed.proj", "vit.head", patches=patches, mode=mode,
        decoder_axes="p1 p2 c",
    )  # fmt: skip


def check(model, x, sizes):
    """Outputs of a flexified model by patch, after a look at values and gradients."""
    outputs = {}
    for size in sizes:
        model.zero_grad()
        with ot.patch(model, size):
            outputs[size] = model(x)
            outputs[size].square().mean().backward()
        assert outputs[size].isfinite().all()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    return outputs


VARIANTS = [{}, {"class_token": False}, {"reg_tokens": 2}, {"no_embed_class": True},
            {"dynamic_img_size": True}]  # fmt: skip


@pytest.mark.parametrize("mode", ["ckm", "csm"])
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_timm_vit(timm, mode, options):
    model = make_vit(timm, **options)
    x = torch.randn(2, 4, *CELLS)
    before, keys = model(x), list(model.state_dict())
    flexify_vit(model, mode)
    assert torch.equal(model(x), before)
    assert list(model.state_dict()) == keys
    outputs = check(model, x, (2, 4, 8))
    assert all(y.shape == (2, 2, *CELLS) for y in outputs.values())
    assert torch.equal(outputs[8], before)
    assert model.vit.pos_embed.grad.abs().sum() > 0


@pytest.mark.parametrize("size", [4, 16])
def test_timm_vit_equals_timm_at_another_patch(timm, size):
    """timm can rewrite a model's weights for another patch, with an implementation of its own."""
    model, other = make_vit(timm), make_vit(timm)
    other.load_state_dict(model.state_dict())
    vit = other.vit
    kernel = vit.patch_embed.proj.weight.detach()
    vit.set_input_size(patch_size=(size, size))  # filters the kernel (antialias), as we do not
    kernel = timm.layers.resample_patch_embed(kernel, [size, size], antialias=False)
    vit.patch_embed.proj.weight.data.copy_(kernel)
    flexify_vit(model)
    x = torch.randn(1, 4, *CELLS)
    with ot.patch(model, size):
        assert torch.allclose(model.vit.forward_features(x), vit.forward_features(x), atol=1e-4)


def test_timm_vit_on_a_field_of_another_size(timm):
    model = flexify_vit(make_vit(timm, dynamic_img_size=True))
    x = torch.randn(1, 4, 64, 48)
    for size in (4, 8, 16):
        with ot.patch(model, size):
            assert model(x).shape == (1, 2, 64, 48)


def test_timm_vit_rolls_out(timm, make_domain, make_window):
    model = flexify_vit(make_vit(timm))
    stepper = ot.FlexibleStepper(model, domain=make_domain(CELLS), context=2, predicts="change")
    window = make_window(make_domain(CELLS))
    schedule = ot.parse_schedule("4-8-16+shift")
    frames = list(ot.rollout(stepper.eval(), window, steps=6, schedule=schedule))
    assert len(frames) == 6
    assert all(frame.isfinite().all() for frame in frames)


def test_timm_beit_with_relative_positions(timm):
    vit = timm.models.Beit(
        img_size=CELLS, patch_size=8, in_chans=4, num_classes=2 * 64, global_pool="", embed_dim=24,
        depth=2, num_heads=2, use_abs_pos_emb=False, use_rel_pos_bias=True,
    )  # fmt: skip
    for block in vit.blocks:
        nn.init.normal_(block.attn.relative_position_bias_table)
    model = Field(vit, 2).eval()
    x = torch.randn(2, 4, *CELLS)
    before = model(x)
    flexify_vit(model)
    assert torch.equal(model(x), before)
    outputs = check(model, x, (2, 4, 8, 16))
    assert all(y.shape == (2, 2, *CELLS) for y in outputs.values())


@pytest.mark.parametrize("mode", ["ckm", "csm"])
def test_the_wells_afno(afno, mode, make_domain, make_window):
    """Stores its token grid in every block, and has an embedding with channels last."""
    model = afno(4, 2, 2, CELLS, hidden_dim=16, n_blocks=2, patch_size=8).eval()
    x = torch.randn(2, *CELLS, 4)
    before, keys = model(x), list(model.state_dict())
    ot.flexify(model, "patch_embed", "patch_debed", patches=(2, 4, 8), mode=mode)
    assert torch.equal(model(x), before)
    assert list(model.state_dict()) == keys
    outputs = check(model, x, (2, 4, 8))
    assert all(y.shape == (2, *CELLS, 2) for y in outputs.values())
    assert torch.equal(outputs[8], before)
    stepper = ot.FlexibleStepper(
        model,
        domain=make_domain(CELLS),
        context=2,
        predicts="change",
        to_input=lambda fields: fields.flatten(1, 2).movedim(1, -1),
        to_frame=lambda output: output.movedim(-1, 1),
    ).eval()
    window = make_window(make_domain(CELLS))
    frames = list(ot.rollout(stepper, window, steps=4, schedule=ot.Cycle(4, 8)))
    assert all(frame.isfinite().all() for frame in frames)


def test_the_wells_afno_in_three_dimensions(afno):
    model = afno(2, 2, 3, (16, 8, 16), hidden_dim=16, n_blocks=1, patch_size=4).eval()
    ot.flexify(model, "patch_embed", "patch_debed", patches=(2, 4, 8))
    x = torch.randn(1, 16, 8, 16, 2)
    for size in (2, 4, 8):
        with ot.patch(model, size):
            assert model(x).shape == x.shape
