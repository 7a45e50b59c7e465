"""The stack of blocks: attention by its formula, causality, shifts, and freed memory."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import overtone as ot
from overtone.grid import PatchGrid
from overtone.models.processors import PROCESSORS, Transformer
from overtone.models.processors.attention import (
    AxialAttention,
    DropPath,
    FullAttention,
    Gate,
    Heads,
    ScaledLinear,
    attend,
)
from overtone.models.processors.rope import space_rotation, time_rotation


def grid(shape=(8, 12), boundary="periodic"):
    domain = ot.Domain(tuple(4 * n for n in shape), (1.0,) * len(shape), boundary, ("u",))
    return PatchGrid.lay(domain, 4)


def make(kind="vit", context=4, **options):
    sizes = {"dim": 16, "num_heads": 2, "num_blocks": 3, "mlp_dim": 24, "layer_scale": 1.0}
    return Transformer(kind, context=context, **(sizes | options)).double().eval()


def tokens_on(patch_grid, frames=4):
    return torch.randn(2, frames, *patch_grid.shape, 16, dtype=torch.float64)


def test_attention_along_an_axis_equals_the_formula():
    q, k, v = (torch.randn(2, 5, 3, 4, 2, 8, dtype=torch.float64) for _ in range(3))
    for axis in (1, 2, 3):
        result = attend(q, k, v, axis).reshape(q.shape)
        qa, ka, va = (x.movedim(axis, -2) for x in (q, k, v))
        weights = (qa @ ka.transpose(-1, -2) / 8**0.5).softmax(-1)
        assert torch.allclose(result, (weights @ va).movedim(-2, axis))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_on_a_cpu_attention_is_computed_in_full_precision(dtype):
    """Autocast or not; the result alone is rounded."""
    q, k, v = (torch.randn(1, 9, 2, 8) for _ in range(3))
    expected = attend(q, k, v.to(dtype).float(), 1).to(dtype)
    assert torch.equal(attend(q, k, v.to(dtype), 1), expected)
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(attend(q, k, v.to(dtype), 1), expected)


def test_autocast_leaves_the_norm_and_rotation_of_queries_and_keys_alone():
    heads = Heads(16, 2, scale=1.0)
    x, rotation = torch.randn(2, 5, 16), torch.randn(5, 4, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q, (k, v) = heads.queries(x, rotation), heads.keys_values(x, rotation)
    assert (q.dtype, k.dtype, v.dtype) == (torch.float32, torch.float32, torch.bfloat16)
    half = heads.bfloat16()
    assert half.queries(x.bfloat16(), rotation).dtype == torch.bfloat16


@pytest.mark.parametrize("kind", PROCESSORS)
@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 4)])
def test_shape_is_kept_in_any_dimension(kind, shape):
    there = grid(shape)
    assert make(kind)(tokens_on(there), there).shape == (2, 4, *shape, 16)


@pytest.mark.parametrize("shape", [(9,), (9, 1), (1, 9), (1, 9, 1)])
def test_axial_is_full_attention_on_a_grid_one_token_wide(shape):
    there = grid(shape, "wall")
    vit, axial = make("vit"), make("axial")
    axial.load_state_dict(vit.state_dict())
    tokens = tokens_on(there)
    assert torch.allclose(vit(tokens, there), axial(tokens, there))


def test_axial_differs_from_full_attention_elsewhere():
    there = grid((3, 3))
    vit, axial = make("vit"), make("axial")
    axial.load_state_dict(vit.state_dict())
    tokens = tokens_on(there)
    assert not torch.allclose(vit(tokens, there), axial(tokens, there), atol=1e-3)


@pytest.mark.parametrize("kind", PROCESSORS)
def test_causality_in_time(kind):
    there = grid((3, 4))
    model, tokens = make(kind), tokens_on(there)
    changed = tokens.clone()
    changed[:, 2] = torch.randn_like(changed[:, 2])
    before, after = model(tokens, there), model(changed, there)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 3], after[:, 3])


def test_without_causality_the_first_frame_sees_the_last():
    there = grid((3, 4))
    model, tokens = make(causal=False), tokens_on(there)
    changed = tokens.clone()
    changed[:, -1] = torch.randn_like(changed[:, -1])
    assert not torch.allclose(model(tokens, there)[:, 0], model(changed, there)[:, 0])


@pytest.mark.parametrize("kind", PROCESSORS)
def test_last_only_is_the_last_frame_of_all(kind):
    there = grid((3, 4))
    model, tokens = make(kind), tokens_on(there)
    assert torch.allclose(model(tokens, there, last_only=True), model(tokens, there)[:, -1:])


@pytest.mark.parametrize("kind", ["vit", "axial"])
def test_periodic_processor_commutes_with_shifts_of_tokens(kind):
    there = grid((6, 8))
    model, tokens = make(kind), tokens_on(there)
    rolled = model(torch.roll(tokens, (2, 3), (2, 3)), there)
    assert torch.allclose(rolled, torch.roll(model(tokens, there), (2, 3), (2, 3)))


@pytest.mark.parametrize("kind", PROCESSORS)
def test_checkpointing_changes_nothing(kind):
    there = grid((3, 4), "wall")
    model, tokens = make(kind), tokens_on(there)
    gradients = []
    for enabled in (False, True):
        model.checkpointing = enabled
        model.zero_grad()
        model(tokens, there).square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("kind", PROCESSORS)
def test_one_frame_models_have_no_time_attention(kind):
    there = grid((3, 4))
    model = make(kind, context=1)
    model(tokens_on(there, frames=1), there).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_scaled_linear_is_a_layer_scale_behind_a_projection():
    layer = ScaledLinear(5, 3, scale=0.1)
    with torch.no_grad():
        layer.scale.copy_(torch.tensor([1.0, 2.0, 3.0]))
    x = torch.randn(7, 5)
    assert torch.allclose(layer(x), (x @ layer.weight.T) * layer.scale, atol=1e-6)


def test_without_a_layer_scale_a_projection_is_bare():
    layer = ScaledLinear(5, 3, scale=0.0)
    x = torch.randn(7, 5)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert torch.equal(layer(x), x @ layer.weight.T)


@pytest.mark.parametrize("kind", PROCESSORS)
@pytest.mark.parametrize("context", [1, 4])
def test_an_mlp_behind_the_mixing_sees_what_it_mixed(kind, context):
    """The paper's order, time, space, MLP, each on the norm of what the one before it left."""
    there = grid((3, 4))
    model = make(kind, context=context, mlp="behind", num_blocks=1)
    x = tokens_on(there, frames=context)
    space = space_rotation(there, model.head_dim, model.max_turns, x)
    time = time_rotation(context, model.head_dim, x)
    (block,) = model.blocks
    y = x
    if context > 1:
        y = y + block.time(block.time_norm(y), time, last_only=False)  # pyright: ignore[reportCallIssue]
    y = y + block.space(block.norm(y), space, there)  # pyright: ignore[reportCallIssue]
    y = y + block.mlp(block.mlp_norm(y))  # pyright: ignore[reportCallIssue]
    torch.testing.assert_close(model(x, there), model.norm(y))
    beside = make(kind, context=context, num_blocks=1)
    beside.load_state_dict(
        {k: v for k, v in model.state_dict().items() if "mlp_norm" not in k}, strict=True
    )
    assert not torch.allclose(beside(x, there), model(x, there))


@pytest.mark.parametrize("mlp", ["beside", "behind"])
def test_a_dropped_sample_passes_a_block_unchanged(mlp):
    """So each branch can be dropped: time, space and MLP."""
    there = grid((3, 4))
    model = make(mlp=mlp, num_blocks=2, drop_path=1 - 1e-9).train()
    x = tokens_on(there)
    assert model.blocks[0].drop_path.rate == 0
    tokens = model.blocks[1](
        x, there, space_rotation(there, 8, model.max_turns, x), time_rotation(4, 8, x), False
    )
    assert torch.equal(tokens, x)


def test_drop_path_drops_whole_samples_and_keeps_the_mean():
    drop = DropPath(0.25).train()
    y = drop(torch.ones(4000, 3, 5))
    per_sample = y.flatten(1)
    assert (per_sample == per_sample[:, :1]).all()
    assert y.mean().item() == pytest.approx(1.0, abs=0.03)
    assert torch.equal(drop.eval()(torch.ones(2, 3)), torch.ones(2, 3))


def test_the_gate_is_silu_times_value_and_so_is_its_gradient():
    pair = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    gate, value = pair.chunk(2, dim=-1)
    torch.testing.assert_close(Gate.apply(pair), F.silu(gate) * value)
    assert torch.autograd.gradcheck(Gate.apply, (pair,))


CODE = """
import torch
from overtone.models.processors.transformer import release_freed

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

torch.zeros(2**20)
held = [torch.zeros(2**16) for _ in range(800)]  # 200 MB in blocks that malloc keeps when freed
gaps = held[1::2]
before = resident()
del held
release_freed()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")
def test_gaps_between_live_blocks_are_given_back():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 90 * 2**20


@pytest.mark.parametrize("shape", [(5,), (4, 6), (2, 3, 4)])
@pytest.mark.parametrize("kind", [AxialAttention, FullAttention])
def test_where_all_values_are_alike_attention_returns_them(kind, shape):
    """Each axis by itself gives them back, so their mean does, and no sum would."""
    q, k, v = (torch.randn(2, 3, *shape, 2, 8) for _ in range(3))
    same = v[:, :1, *(slice(1) for _ in shape)].expand_as(v)
    mixed = kind(16, 2, scale=1.0).mix(q, k, same).reshape(same.shape)
    torch.testing.assert_close(mixed, same)


def test_drop_path_grows_with_depth_from_nothing():
    rates = [block.drop_path.rate for block in make(drop_path=0.3, num_blocks=4).blocks]
    assert rates == pytest.approx([0.0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("context", [1, 4])
def test_every_branch_of_a_block_may_be_dropped(context):
    """Of equal samples each is passed on as it came, or with branches that are scaled up."""
    there = grid((3, 4))
    block = make(context=context, drop_path=0.5, num_blocks=2).blocks[1].train()
    tokens = tokens_on(there, frames=context)[:1].expand(64, -1, -1, -1, -1)
    rotations = (
        space_rotation(there, 8, 16, tokens),
        time_rotation(context, 8, tokens),
    )
    added = block(tokens, there, *rotations, False) - tokens
    whole = added.flatten(1)[:, :1].unique().numel()
    # Both branches, either of them, or none; a model of one frame has one branch.
    assert whole == (4 if context > 1 else 2)
    assert bool((added == 0).flatten(1).all(dim=1).any())
