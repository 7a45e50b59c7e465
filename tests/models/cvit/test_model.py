"""CViT: places, patches, the published sizes, and the face it shares with emulators."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import overtone as ot
from overtone.models.cvit import CViT, CViTArchitecture, build_cvit, parts
from overtone.models.flops import call_flops

SMALL = {"width": 24, "heads": 2, "blocks": 2, "mlp_dim": 24, "latent_dim": 12,
         "decoder_width": 24, "decoder_heads": 2, "decoder_mlp_dim": 24}  # fmt: skip


@pytest.fixture
def make(make_domain):
    def make(domain=None, **options):
        return build_cvit(domain=domain or make_domain(), **({"context": 3} | SMALL | options))

    return make


def centres(domain):
    axes = [
        (torch.arange(n, dtype=torch.float64) + 0.5) * h
        for n, h in zip(domain.shape, domain.spacing, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


@pytest.mark.parametrize("shape", [(48,), (20, 32), (16, 16, 24)])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
def test_predicts_a_frame_at_every_patch(make_domain, make, make_window, shape, boundary):
    domain = make_domain(shape, boundary)
    model, window = make(domain), make_window(domain)
    for patch in (4, 8, 16):
        frame = model(window, patch=patch, shift=3)
        assert frame.shape == (2, 2, *shape)
        assert frame.isfinite().all()


@pytest.mark.parametrize("boundaries", ["periodic", ("periodic", ("wall", "open"))])
def test_querying_at_grid_points_is_the_grid_output(make_domain, make, make_window, boundaries):
    domain = make_domain(boundaries=boundaries)
    model = make(domain).double()
    window = make_window(domain, dtype=torch.float64)
    for patch, shift in ((4, 0), (16, (3, 5))):
        frame = model(window, patch, shift)
        values = model.query(window, centres(domain), patch, shift)
        assert values.shape == (2, 32 * 48, 2)
        assert torch.allclose(values.mT.reshape(frame.shape), frame, atol=1e-12)


def test_grid_points_of_another_resolution_are_queries_too(make_domain, make, make_window):
    model = make(make_domain((32, 48))).double()
    window = make_window(make_domain((24, 40)), dtype=torch.float64)
    other = ot.Domain((24, 40), model.domain.extent, "periodic", ("a", "b"), 0.1)
    window = ot.Window(window.fields, other)
    values = model.query(window, centres(other), 8)
    assert torch.allclose(values.mT.reshape(2, 2, 24, 40), model(window, 8), atol=1e-12)


def test_queries_are_continuous_between_points(make, make_window):
    """On ever finer lines the largest step shrinks with the spacing, so nothing jumps."""
    model = make().double()
    window = make_window(model.domain, batch=1, dtype=torch.float64)
    steps = []
    for n in (1001, 4001):
        line = torch.linspace(-0.3, 2.3, n, dtype=torch.float64)  # across cells and the seam
        values = model.query(window, torch.stack([line, 1.4 * line], dim=-1), 8)
        steps.append(values.diff(dim=1).abs().max().item())
    assert steps[1] < 0.3 * steps[0]


def test_periodic_axes_wrap(make_domain, make, make_window):
    model = make(make_domain(boundaries=("periodic", "wall"))).double()
    window = make_window(model.domain, dtype=torch.float64)
    place = torch.tensor([[0.7, 1.1]], dtype=torch.float64)
    further = place + torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    assert torch.allclose(model.query(window, place, 8), model.query(window, further, 8))


@pytest.mark.parametrize("tokenizer", ["ckm", "fixed"])
def test_the_base_patch_is_a_plain_convolution(make_domain, make, tokenizer):
    model = make(tokenizer=tokenizer, patches=(8,))
    assert model.encoder.patching.weight.shape == (24, 2, 8, 8)
    fields = torch.randn(1, 2, 2, 32, 48)
    grid = parts.PatchGrid.lay(model.domain, 8)
    with torch.no_grad():
        model.encoder.place_embedding.zero_()
        tokens = model.encoder.embed(fields, grid)
        patching = model.encoder.patching
        plain = F.conv2d(fields[0], patching.weight, patching.bias, stride=8)
    assert torch.equal(tokens[0], plain.movedim(1, -1))


def test_smooth_fields_have_similar_tokens_at_every_patch(make):
    """What PI-resize is for: a linear field means nearly the same to a kernel and its resize."""
    model = make(make_smooth_domain(), patches=(8, 16)).double()
    x = torch.linspace(-1, 1, 64, dtype=torch.float64)
    field = (x[:, None] + 0.5 * x).expand(1, 1, 2, 64, 64)
    with torch.no_grad():
        model.encoder.place_embedding.zero_()
        coarse, fine = (
            model.encoder.embed(field, parts.PatchGrid.lay(model.domain, p)) for p in (16, 8)
        )
    pooled = fine.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).mean(dim=(3, 5))
    assert F.cosine_similarity(coarse.flatten(), pooled.flatten(), dim=0) > 0.95


def make_smooth_domain():
    return ot.Domain((64, 64), (1.0, 1.0), "wall", ("a", "b"), 0.1)


def test_embeddings_stay_at_their_places_when_the_grid_is_shifted(make_domain, make):
    model = make(make_domain((64,)), patches=(4, 8)).double()
    fields = torch.zeros(1, 1, 2, 64, dtype=torch.float64)
    still, moved = (
        model.encoder.embed(fields, parts.PatchGrid.lay(model.domain, 4, shift))[0, 0]
        for shift in (0, 2)
    )
    halfway = (still + still.roll(-1, 0)) / 2
    assert torch.allclose(moved, halfway)


@pytest.mark.parametrize("boundaries", ["periodic", "wall"])
@pytest.mark.parametrize("context", [1, 3])
def test_gradients_reach_every_parameter(make_domain, make, make_window, boundaries, context):
    domain = make_domain((32, 32), boundaries)
    for patch in (4, 16):
        model = make(domain, context=context).train()
        change, stats = model.predict_change(make_window(domain), patch)
        assert change.shape == (2, 1, 2, 32, 32)
        assert stats.change.shape == (2, 1, 2)
        change.square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.abs().max() > 0, name


def test_forward_adds_the_change_in_physical_units(make, make_window):
    model = make().double()
    window = make_window(model.domain, dtype=torch.float64)
    change, stats = model.predict_change(window, 8, last_only=True)
    expected = window.fields[:, -1] + change[:, 0] * stats.change[:, 0, :, None, None]
    assert torch.allclose(model(window, 8), expected)
    scale = torch.tensor([1e-6, 1e4], dtype=torch.float64).reshape(2, 1, 1)
    scaled = model(ot.Window(window.fields * scale, model.domain), patch=8)
    assert torch.allclose(scaled, expected * scale, rtol=1e-9, atol=0)


def test_fewer_and_more_frames_than_the_context(make, make_window):
    model = make(context=3)
    long = make_window(model.domain, frames=5)
    assert torch.equal(model(long, patch=8), model(long.last(3), patch=8))
    assert not torch.allclose(model(long.last(2), patch=8), model(long.last(3), patch=8))


def test_places_in_parts_and_recomputation_change_nothing(make, make_window, monkeypatch):
    model = make().double()
    window = make_window(model.domain, dtype=torch.float64)
    whole, gradients = model(window, 8).detach(), []
    monkeypatch.setattr(parts, "QUERY_CHUNK", 100)
    with torch.no_grad():
        assert torch.allclose(model(window, 8), whole, atol=1e-12)
    for enabled in (False, True):
        model.checkpoint_activations(enabled)
        model.zero_grad()
        model.predict_change(window, 8)[0].square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for a, b in zip(*gradients, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("patch", [4, 8, 16])
def test_places_look_at_the_tokens_around_them_from_the_start(make_domain, boundary, patch):
    """Otherwise it takes thousands of updates until the decoder knows where a place is."""
    domain = make_domain((64, 64), boundary)
    model = build_cvit(domain=domain, context=2, size="mini")
    grid, cells = (parts.PatchGrid.lay(domain, p) for p in (patch, 1))
    tokens = torch.randn(1, grid.num_tokens, 48, requires_grad=True)
    for row, column in ((0, 0), (17, 30), (40, 63)):  # a corner, inside, a side
        latent = model._latents(cells)[None, row * 64 + column]
        values = model.decoder(tokens, model._latents(grid), latent)
        (pull,) = torch.autograd.grad(values.square().sum(), tokens)
        away = [
            abs(torch.tensor(grid.centres(axis)) * 64 - cell - 0.5)
            for axis, cell in enumerate((row, column))
        ]
        if boundary == "periodic":
            away = [torch.minimum(d, 64 - d) for d in away]
        near = ((away[0] < 1.5 * patch)[:, None] & (away[1] < 1.5 * patch)).flatten()
        share = pull[0].norm(dim=-1)[near].sum() / pull[0].norm(dim=-1).sum()
        assert share > min(3 * near.float().mean(), 0.8)


def test_overfits_two_windows():
    domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("a", "b"), 0.1)
    model = build_cvit(domain=domain, context=2, patches=(4, 8), **SMALL).train()
    window = ot.Window(torch.randn(2, 2, 2, 16, 16).cumsum(dim=1), domain)
    target = torch.randn(2, 1, 2, 16, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for _, patch in itertools.product(range(70), (4, 8)):
        loss = (model.predict_change(window, patch)[0] - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for patch in (4, 8):
        assert (model.predict_change(window, patch)[0] - target).square().mean() < 0.1


@pytest.mark.parametrize(("size", "millions"), [("s", 13), ("b", 30), ("l", 92)])
def test_parameters_of_the_published_sizes(size, millions):
    """Counts of CViT's own table: 128x128 cells, three fields, ten frames, patch 8."""
    domain = ot.Domain((128, 128), (1.0, 1.0), "periodic", ("a", "b", "c"))
    with torch.device("meta"):
        model = build_cvit(domain=domain, size=size, patches=8, tokenizer="fixed", context=10)
    assert model.num_parameters == pytest.approx(millions * 1e6, rel=0.03)


def test_the_small_size_is_the_papers():
    domain = ot.Domain((128, 256), (1.0, 2.0), "periodic", ("a", "b", "c", "d"))
    with torch.device("meta"):
        a = build_cvit(domain=domain, size="s").architecture
    assert (a.blocks, a.width, a.mlp_dim, a.heads) == (5, 384, 384, 6)
    assert a.latent_grid == (128, 256)


def test_save_and_load_are_bit_exact(tmp_path, make, make_window):
    model = make(patches=((4, 8), 8))
    model.save(tmp_path / "model", training={"seed": 3})
    again = CViT.from_pretrained(tmp_path / "model")
    assert again.architecture == model.architecture
    window = make_window(model.domain)
    assert torch.equal(model(window, (4, 8)), again(window, (4, 8)))
    assert CViTArchitecture.from_dict(model.architecture.to_dict()) == model.architecture
    with pytest.raises(ot.CheckpointError, match="unknown keys"):
        ot.Emulator.from_pretrained(tmp_path / "model")


def test_an_emulators_folder_is_no_cvit(tmp_path, make_model):
    make_model().save(tmp_path / "model")
    with pytest.raises(ot.CheckpointError, match="it is not a CViT's"):
        CViT.from_pretrained(tmp_path / "model")


def test_rolls_out_and_counts_its_flops(make, make_window):
    model = make()
    window = make_window(model.domain)
    frames = list(ot.rollout(model, window, steps=3, schedule=ot.Cycle(4, 8, 16)))
    assert all(frame.isfinite().all() for frame in frames)
    counts = [call_flops(model, model.domain, patch, frames=3) for patch in (16, 8, 4)]
    assert counts == sorted(counts)


def test_bfloat16_autocast_is_close_to_float32(make, make_window):
    model = make()
    window = make_window(model.domain)
    reference, _ = model.predict_change(window, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half, _ = model.predict_change(window, 8)
    assert (half - reference).std() < 0.03 * reference.std()


@pytest.mark.slow
# torch's own compiler imports deprecated parts of torch.
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_compiles_as_one_graph(make, make_window):
    torch.compiler.reset()
    model = make()
    compiled = torch.compile(model, fullgraph=True, dynamic=False, backend="aot_eager")
    window = make_window(model.domain)
    assert torch.allclose(compiled(window, 8, 3), model(window, 8, 3), atol=1e-5)


@pytest.mark.slow
def test_memory_at_the_papers_grid(tmp_path):
    script, out = Path(__file__).parents[3] / "benchmarks" / "cvit.py", tmp_path / "cvit.json"
    subprocess.run([sys.executable, script, "--quick", "--out", out], check=True)
    runs = json.loads(out.read_text())["runs"]
    assert [run["patch"] for run in runs] == [4, 8, 16]
    assert all(run["peak_memory_bytes"] < 2e9 for run in runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "xl"}, "size is 'xl'; expected one of mini, s, b, l"),
        ({"widht": 3}, "option is 'widht'; expected one of width.*did you mean 'width'"),
        ({"patches": ()}, r"patches is \(\)"),
        ({"tokenizer": "csm"}, "CViT has 'ckm' and 'fixed'"),
        ({"tokenizer": "fixed"}, "'fixed' has one patch"),
        ({"width": 25}, "width 25 does not split into 2 heads"),
        ({"decoder_blocks": 0}, "decoder_blocks is 0"),
        ({"latent_dim": 3}, "latent_dim is 3; expected at least 4"),
        ({"latent_grid": (4, 4, 4)}, "latent_grid is .*each of 2 axes"),
    ],
)
def test_refusals_when_building(make, options, message):
    with pytest.raises(ot.OvertoneError, match=message):
        make(**options)


def test_refusals_when_asked(make_domain, make, make_window):
    model = make(make_domain(boundaries=("periodic", "wall")), tokenizer="fixed", patches=8)
    window = make_window(model.domain)
    with pytest.raises(ot.PatchError, match="was not trained for; this model knows 8"):
        model(window, 4)
    with pytest.raises(ot.PatchError, match="fixed tokenizer of patch 8 can't make patch 4"):
        model(window, 4, allow_untrained=True)
    with pytest.raises(ot.DomainError, match=r"shape \(5, 3\); expected \(Q, 2\)"):
        model.query(window, torch.zeros(5, 3), 8)
    with pytest.raises(ot.DomainError, match=r"not periodic \(\[1\]\)"):
        model.query(window, torch.tensor([[9.0, 3.1]]), 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": 10**9}, "blocks is 1000000000; expected at most 1000"),
        ({"decoder_blocks": 10**9}, "decoder_blocks is 1000000000; expected at most 1000"),
        ({"context": 10**9}, "context is 1000000000; expected at most 10000"),
        ({"latent_grid": (10**12, 4)}, "latent_grid is 1000000000000; expected at most"),
        ({"latent_grid": (10**9, 10**9)}, "a model of more than .* parameters takes .* PB"),
        ({"width": 3 * 10**8, "heads": 3}, "a model of more than .* parameters takes .* PB"),
        ({"decoder_mlp_dim": 2 * 10**9}, "a model of more than .* parameters takes .* GB"),
        ({"base_patch": 2 * 10**9}, "a model of more than .* parameters takes .* PB"),
        ({"width": "48"}, "width is '48'; expected an int"),
        ({"latent_dim": 32.0}, r"latent_dim is 32\.0; expected an int"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_built(make_domain, options, message):
    with pytest.raises(ot.OvertoneError, match=message):
        build_cvit(domain=make_domain(), **options)


def test_no_model_has_fewer_weights_than_are_counted(make_domain):
    for context in (1, 3):
        model = build_cvit(domain=make_domain(), context=context)
        assert 0.5 < model.architecture.least_weights / model.num_parameters <= 1
