"""One step as a program: shifts by rolling, constants as they are."""

import pytest
import torch

import overtone as ot
from overtone.export.program import Step, moved_axes, trace, waves


@pytest.mark.parametrize("processor", ["vit", "axial", "swin", "afno"])
@pytest.mark.parametrize("shape", [(32, 48), (20, 34)], ids=["divided", "undivided"])
def test_rolling_is_shifting(make_domain, make_model, processor, shape):
    domain = make_domain(shape, ("periodic", "wall"))
    model = make_model(domain, processor, patches=(4, 8), window=3)
    fields = waves(domain, 3, samples=2).fields
    step = Step(model, domain, 8)
    with torch.no_grad():
        for shift in (0, 1, 5, 8, 19, -3):  # by a whole patch is not at all, also if undivided
            own = model(ot.Window(fields, domain), 8, (shift, 0))
            assert torch.equal(step(fields, torch.tensor([shift, 0])), own)
        moved, still = step(fields, torch.tensor([3, 0])), step(fields, torch.tensor([0, 0]))
    assert not torch.allclose(moved, still, atol=1e-6)


def test_which_axes_move(make_domain, make_model):
    domain = make_domain(boundaries=("periodic", "open"))
    assert moved_axes(make_model(domain), domain) == (True, False)
    unet = ot.baseline("unet", domain=domain, context=2, size="mini", width=4, levels=1)
    assert moved_axes(unet, domain) == (False, False)


def test_windows_to_try_with_are_smooth_and_travel(make_domain):
    domain = make_domain((64,), "periodic")
    fields = waves(domain, 4, samples=3).fields
    assert fields.shape == (3, 4, 2, 64)
    spread = fields.std(dim=(1, 3))
    assert spread.min() > 0.1
    assert (fields.diff(dim=-1).abs().amax(dim=(1, 3)) < spread).all()
    assert (fields[..., 0] - fields[..., -1]).abs().max() < 0.5  # round the seam, too
    change = fields.diff(dim=1).square().mean(dim=(1, 3)).sqrt()
    assert (change > 0.02 * spread).all()
    assert torch.equal(fields, waves(domain, 4, samples=3).fields)
    assert not torch.equal(fields, waves(domain, 4, samples=3, seed=1).fields)


def test_a_program_holds_tables_and_no_paths(make_domain, make_model):
    model = make_model(make_domain(boundaries="wall"))
    program = trace(model, model.domain, 8)
    operations = [str(node.target) for node in program.graph.nodes]
    assert not any("cos" in name or "arange" in name for name in operations)
    assert not any("stack_trace" in node.meta for node in program.graph.nodes)
    window = waves(model.domain, 3, samples=5)
    with torch.no_grad():
        found, own = program.module()(window.fields), model(window, 8)
    assert torch.allclose(found, own, rtol=0, atol=1e-5)


def test_rolling_is_shifting_for_models_without_our_tokenizers(make_domain):
    """Flexified ones, and the one baseline with patches."""
    layers = torch.nn.Conv2d(4, 6, 16, stride=16), torch.nn.ConvTranspose2d(6, 2, 16, stride=16)
    flexible = ot.flexify(torch.nn.Sequential(*layers), "0", "1", patches=(4, 8, 16))
    domain = make_domain((16, 32))
    fields = waves(domain, 2, samples=2).fields
    for model in (
        ot.FlexibleStepper(flexible, domain=domain, context=2).eval(),
        ot.baseline("afno_net", domain=domain, context=2, size="mini", width=8, blocks=1),
    ):
        step = Step(model, domain, 8)
        with torch.no_grad():
            for shift in ((0, 0), (3, 6), (1, -2)):
                own = model(ot.Window(fields, domain), 8, shift)
                assert torch.equal(step(fields, torch.tensor(shift)), own)


def test_an_exact_program_is_the_model_bit_for_bit(make_domain, make_model):
    model = make_model(make_domain(boundaries=("periodic", "wall")))
    window, shift = waves(model.domain, 3, samples=3), torch.tensor([5, 0])
    programs = [trace(model, model.domain, 8, exact=exact) for exact in (True, False)]
    real = [str(node.target) for node in programs[1].graph.nodes]
    assert not any("view_as_complex" in name for name in real)  # ONNX has no products of them
    with torch.no_grad():
        exact, rounded = (program.module()(window.fields, shift) for program in programs)
        own = model(window, 8, (5, 0))
    assert torch.equal(exact, own)
    assert torch.allclose(rounded, own, rtol=0, atol=1e-5)
