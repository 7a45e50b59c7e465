"""The promises of flexify as a whole: equality at the base patch, nothing to re-register."""

import copy
import io
import os
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

import overtone as ot

MODES = ["ckm", "csm"]
CASES = [((64,), "p1 c"), ((32, 48), "p1 p2 c"), ((16, 16, 32), "p1 p2 p3 c")]


def flexible(model, mode="ckm", patches=(2, 4, 8), axes="p1 p2 c", **options):
    axes = axes if model.linear else None
    return ot.flexify(
        model, "embed", "head", patches=patches, mode=mode, decoder_axes=axes, **options
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("cells", "axes"), CASES)
def test_base_patch_is_the_original_bit_for_bit(make_plain, cells, axes, linear, mode):
    model = make_plain(cells, linear=linear, axes=axes)
    x = torch.randn(2, 2, *cells)
    before = model(x)
    parameters = list(model.parameters())
    assert flexible(model, mode, axes=axes) is model
    assert torch.equal(model(x), before)
    outputs = []
    for size in (2, 4, 8):
        with ot.patch(model, size):
            outputs.append(model(x))
    assert torch.equal(outputs[-1], before)
    assert all(y.shape == x.shape and y.isfinite().all() for y in outputs)
    assert not torch.allclose(outputs[0], outputs[1])
    assert torch.equal(model(x), before)
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("linear", [True, False])
def test_gradients_reach_every_weight_at_every_patch(make_plain, linear, mode):
    model = flexible(make_plain(linear=linear), mode)
    for size in (2, 4, 8):
        model.zero_grad()
        with ot.patch(model, size):
            model(torch.randn(1, 2, 32, 48)).square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0 or name.endswith("in_proj_bias"), name


@pytest.mark.parametrize("mode", MODES)
def test_gradient_of_the_base_kernel_is_right(make_plain, mode):
    """A finite difference in float64, along a random direction of all weights."""
    model = flexible(make_plain((8, 8), patch=4, width=4), mode, patches=(2, 4)).double()
    x = torch.randn(1, 2, 8, 8, dtype=torch.float64)
    weights = [model.embed.weight, model.head.weight, model.pos]
    directions = [torch.randn_like(weight) for weight in weights]

    def loss(step):
        with torch.no_grad():
            for weight, direction in zip(weights, directions, strict=True):
                weight.add_(step * direction)
        with ot.patch(model, 2):
            return model(x).square().sum()

    grads = torch.autograd.grad(loss(0.0), weights)
    slope = sum((g * d).sum() for g, d in zip(grads, directions, strict=True))
    h = 1e-5
    measured = (loss(h) - loss(-2 * h)) / (2 * h)
    assert torch.allclose(slope, measured, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_state_dict_is_that_of_the_original(make_plain, mode):
    original = make_plain()
    keys = list(original.state_dict())
    model = flexible(copy.deepcopy(original), mode)
    assert list(model.state_dict()) == keys
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = flexible(make_plain(), mode)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = torch.randn(1, 2, 32, 48)
    with ot.patch(model, 4), ot.patch(other, 4):
        assert torch.equal(model(x), other(x))
    # weights saved inside a context, and loaded into the original, are the original's
    with ot.patch(model, 2):
        original.load_state_dict(model.state_dict())
    assert torch.equal(original(x), model(x))


def test_deepcopy_has_a_patch_of_its_own(make_plain):
    model = flexible(make_plain())
    twin = copy.deepcopy(model)
    x = torch.randn(1, 2, 32, 48)
    with ot.patch(model, 4):
        fine = model(x)
        assert not torch.equal(twin(x), fine)
        inside = copy.deepcopy(model)
    assert torch.equal(inside(x), fine)  # copied at patch 4, it stays there
    with ot.patch(twin, 4):
        assert torch.equal(twin(x), fine)
    assert twin.pos is not model.pos


def test_pickle_makes_the_classes_again():
    parts = nn.Conv2d(2, 6, 8, 8), nn.ConvTranspose2d(6, 2, 8, 8)
    model = ot.flexify(nn.Sequential(*parts), "0", "1", patches=(4, 8))
    twin = pickle.loads(pickle.dumps(model))
    x = torch.randn(1, 2, 16, 16)
    with ot.patch(model, 4), ot.patch(twin, 4):
        assert torch.equal(model(x), twin(x))
    assert type(twin[0]) is type(model[0])
    assert isinstance(twin[0], nn.Conv2d)


@pytest.mark.parametrize("mode", MODES)
def test_compiled_each_patch_has_its_own_graph(make_plain, mode):
    model = make_plain()
    model.block = nn.Identity()  # nothing in it depends on the patch, and compiling takes time
    flexible(model, mode)
    x = torch.randn(1, 2, 32, 48)
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for repeat in range(2):
        for size in (8, 2, 4):
            with ot.patch(compiled, size):
                assert torch.allclose(compiled(x), model(x), atol=1e-5)
        assert len(graphs) == 3, f"repeat {repeat}"
    torch._dynamo.reset()


@pytest.mark.slow
def test_compiled_with_gradients(make_plain):
    model = flexible(make_plain(), "csm")
    x = torch.randn(1, 2, 32, 48)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager")
    for size in (4, 8):
        with ot.patch(model, size):
            expected = torch.autograd.grad(model(x).square().sum(), model.embed.weight)
            got = torch.autograd.grad(compiled(x).square().sum(), model.embed.weight)
        assert torch.allclose(got[0], expected[0], atol=1e-3, rtol=1e-4)
    torch._dynamo.reset()


DDP = """
import copy, sys, torch, torch.distributed as dist, overtone as ot
from collections import OrderedDict
from torch import nn

dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 1), rank=0, world_size=1)
parts = {"embed": nn.Conv2d(2, 16, 8, 8), "act": nn.GELU(), "head": nn.ConvTranspose2d(16, 2, 8, 8)}
model = ot.flexify(nn.Sequential(OrderedDict(parts)), "embed", "head", patches=(2, 4, 8))
twin, parallel = copy.deepcopy(model), nn.parallel.DistributedDataParallel(model)
x = torch.randn(2, 2, 32, 48)
for size in (2, 4, 8):
    parallel.zero_grad()
    twin.zero_grad()
    with ot.patch(parallel, size), ot.patch(twin, size):
        parallel(x).square().sum().backward()
        twin(x).square().sum().backward()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
del parallel  # before its group: see overtone.train.parallel.ranks
dist.destroy_process_group()
"""


def test_ddp(tmp_path):
    # In a process of its own: threads that hang in C++ would take the whole suite with them.
    environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ}
    command = [sys.executable, "-c", DDP, str(tmp_path / "store")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


def test_other_devices_and_precisions_follow(make_plain):
    model = flexible(make_plain(linear=False)).to(torch.bfloat16)
    with ot.patch(model, 4):
        assert model(torch.randn(1, 2, 32, 48, dtype=torch.bfloat16)).dtype == torch.bfloat16
    model = flexible(make_plain()).to("meta")
    with ot.patch(model, 4):
        assert model(torch.empty(1, 2, 32, 48, device="meta")).shape == (1, 2, 32, 48)


@pytest.mark.parametrize("mode", MODES)
def test_autocast_is_close_to_full_precision(make_plain, mode):
    model = flexible(make_plain(), mode)
    x = torch.randn(1, 2, 32, 48)
    with ot.patch(model, 4):
        full = model(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = model(x)
    assert (half.float() - full).abs().max() < 0.1 * full.abs().max()


def test_query_decoders_need_no_decoder():
    class Query(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Conv2d(1, 8, 4, 4)
            self.read = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x, queries):
            tokens = self.embed(x).flatten(2).mT
            return self.read(queries, tokens, tokens)[0]

    model = ot.flexify(Query(), "embed", None, patches=(2, 4, 8))
    x, queries = torch.randn(1, 1, 16, 16), torch.randn(1, 5, 8)
    for size in (2, 4, 8):
        with ot.patch(model, size):
            assert model(x, queries).shape == (1, 5, 8)


def test_activation_checkpointing_inside_the_context(make_plain):
    from torch.utils.checkpoint import checkpoint

    model = flexible(make_plain(), "csm")
    x = torch.randn(1, 2, 32, 48)
    with ot.patch(model, 4):
        expected = torch.autograd.grad(model(x).square().sum(), model.embed.weight)[0]
        y = checkpoint(model, x, use_reentrant=False)
        got = torch.autograd.grad(y.square().sum(), model.embed.weight)[0]
    assert torch.allclose(got, expected)


def test_what_was_found_can_be_seen(make_plain):
    text = str(flexible(make_plain()))
    assert "following the patch: patch_size, pos" in text
    assert "ckm at patches 2, 4, 8" in text


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, 1)
        self.body = nn.Conv2d(4, 4, 7, 4)


WRONG = [
    ({"encoder": "embd"}, "did you mean 'embed'.*'embed' .Conv2d, kernel 8, stride 8."),
    ({"encoder": "block"}, "is a TransformerEncoderLayer; expected a Conv1d"),
    ({"decoder": "haed"}, "did you mean 'head'"),
    ({"decoder": "block.norm1"}, "is a LayerNorm; expected a ConvTranspose"),
    ({"decoder": "block.linear1"}, "32 values for each token, no multiple of the 64 cells"),
    ({"decoder_axes": None}, "pass decoder_axes='p1 p2 c'"),
    ({"decoder_axes": "p1 c"}, "decoder_axes is 'p1 c'; expected the names p1 p2 and c"),
    ({"mode": "cskm"}, "mode is 'cskm'"),
    ({"rule": "loud"}, "rule is 'loud'"),
    ({"patches": ()}, r"patches is \(\)"),
    ({"patches": (0, 4)}, "positive"),
    ({"patches": ((4, 4, 4),)}, "one for each of 2 axes"),
    ({"mode": "csm", "patches": (8, 16)}, "16 is larger than the kernel 8"),
    ({"boundaries": "sticky"}, "boundary is 'sticky'"),
    ({"grid": (4,)}, "grid is"),
    ({"embeddings": {"position": "tokens"}}, "no parameter or buffer"),
    ({"embeddings": {"pos": "middle"}}, "expected one of"),
    ({"follow": {"patch_sise": "patch"}}, "did you mean 'patch_size'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_arguments_leave_the_model_as_it_was(make_plain, options, message):
    model = make_plain()
    types = [type(module) for module in model.modules()]
    given = {"encoder": "embed", "decoder": "head", "decoder_axes": "p1 p2 c", "patches": (4, 8)}
    with pytest.raises(ot.OvertoneError, match=message):
        ot.flexify(model, **(given | options))
    assert [type(module) for module in model.modules()] == types


def test_a_model_without_such_layers():
    with pytest.raises(ot.OvertoneError, match="no layer with stride = kernel; it has 'stem' "):
        ot.flexify(Bare())
    with pytest.raises(ot.PatchError, match=r"kernel \(7, 7\) and stride \(4, 4\)"):
        ot.flexify(Bare(), "body", None)
    with pytest.raises(ot.OvertoneError, match="no convolutions at all"):
        ot.flexify(nn.Linear(2, 2))


def test_a_decoder_of_another_grid():
    model = nn.Sequential(nn.Conv2d(2, 4, 8, 8), nn.ConvTranspose2d(4, 2, 4, 4))
    with pytest.raises(ot.PatchError, match="another grid than the input"):
        ot.flexify(model, "0", "1")
    model = nn.Sequential(nn.Conv2d(2, 4, 8, 8, padding=2), nn.ConvTranspose2d(4, 2, 8, 8))
    with pytest.raises(ot.PatchError, match="padding 0"):
        ot.flexify(model, "0", "1")


def test_twice_is_refused(make_plain):
    model = flexible(make_plain())
    with pytest.raises(ot.OvertoneError, match="flexible already"):
        flexible(model)


def test_a_stored_grid_is_believed_only_where_tokens_confirm_it(make_plain):
    model = make_plain()
    model.grid_size = (32, 48)  # cells, not tokens
    x = torch.randn(1, 2, 32, 48)
    flexible(model)
    with ot.patch(model, 4):
        assert model(x).shape == x.shape
        assert model.grid_size == (32, 48)
    model = make_plain()
    model.grid_size = (4, 6)
    flexible(model)
    with ot.patch(model, 4):
        assert model.grid_size == (8, 12)
    assert model.grid_size == (4, 6)


class Windows(nn.Module):
    """A Swin's attention: windows, the second block with a shift and a mask that it keeps."""

    def __init__(self, grid, width, window, shift):
        super().__init__()
        self.window_size, self.input_resolution = (window, window), grid
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, 1))
        self.mix = nn.Linear(width, width)
        if shift:
            num = grid[0] * grid[1] // window**2
            self.register_buffer("attn_mask", torch.ones(num, window**2, window**2))

    def forward(self, x):
        h, w = self.input_resolution
        b, n, d = x.shape
        assert n == h * w, "input feature has wrong size"
        p, q = self.window_size
        rows = x.view(b, h // p, p, w // q, q, d).transpose(2, 3).reshape(-1, p * q, d)
        scores = rows @ rows.mT
        if hasattr(self, "attn_mask"):
            scores = (scores.unflatten(0, (b, -1)) * self.attn_mask).flatten(0, 1)
        rows = self.mix(scores.softmax(dim=-1) @ rows)
        return rows.view(b, h // p, w // q, p, q, d).transpose(2, 3).reshape(b, n, d)


class Swin(nn.Module):
    def __init__(self, shift, window=4, cells=64, patch=8, width=8):
        super().__init__()
        self.patch_embed = nn.Conv2d(2, width, patch, patch)
        self.grid_size = (cells // patch,) * 2
        self.blocks = nn.ModuleList(
            Windows(self.grid_size, width, window, shift=shift and i > 0) for i in range(2)
        )
        self.pos_embed = nn.Parameter(torch.zeros(1, (cells // patch) ** 2, width))
        self.head = nn.ConvTranspose2d(width, 2, patch, patch)

    def forward(self, x):
        z = self.patch_embed(x)
        grid = z.shape[2:]
        z = z.flatten(2).mT + self.pos_embed
        for block in self.blocks:
            z = block(z)
        return self.head(z.mT.unflatten(2, grid))


def test_a_swin_is_refused_at_a_patch_that_it_cannot_do():
    x = torch.randn(1, 2, 64, 64)
    masked = ot.flexify(Swin(shift=True).eval(), "patch_embed", "head", patches=(4, 8, 16))
    assert masked(x).shape == x.shape
    said = r"patch 4 makes \(16, 16\) tokens.*'blocks\.1\.attn_mask'.*\(8, 8\) tokens"
    with pytest.raises(ot.PatchError, match=said), ot.patch(masked, 4):
        masked(x)
    windowed = ot.flexify(Swin(shift=False).eval(), "patch_embed", "head", patches=(4, 8, 32))
    with ot.patch(windowed, 4):
        assert windowed(x).shape == x.shape
    said = r"tokens of patch 32 \(\(2, 2\) of \(64, 64\) cells\).*attention windows.*patch 8"
    with pytest.raises(ot.PatchError, match=said), ot.patch(windowed, 32):
        windowed(x)
    assert windowed(x).shape == x.shape


def test_errors_of_other_kinds_and_models_pass_through_a_patch(make_plain):
    windowed = ot.flexify(Swin(shift=False).eval(), "patch_embed", "head", patches=(4, 8))
    plain = ot.flexify(make_plain(linear=False), "embed", "head", patches=(4, 8))
    for model, error in ((windowed, ValueError("no matter")), (plain, RuntimeError("bad size"))):
        with pytest.raises(type(error), match=str(error)) as caught, ot.patch(model, 4):
            raise error
        assert caught.value is error
