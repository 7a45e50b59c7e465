"""FLOP counts against what the layers' shapes say."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import overtone as ot
from overtone.models.flops import FFT_FLOPS, call_flops
from overtone.models.processors import PROCESSORS


def model_of(tokenizer="fixed", patches=(4,), processor="vit", context=2, **options):
    domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("u",), 0.1)
    return ot.build(
        processor, tokenizer=tokenizer, patches=patches, domain=domain, context=context, **options
    )


def test_a_deeper_model_adds_just_its_blocks():
    counts = [
        call_flops(m, m.domain, 4, frames=2, training=True)
        for m in (model_of(blocks=n) for n in (2, 3, 4))
    ]
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0


def test_linear_layers_of_a_block_are_counted_by_hand():
    d, m, tokens = 24, 40, 2 * 16
    args = {"width": d, "heads": 3, "mlp_dim": m, "time": "attend"}
    per_block = [
        call_flops(x, x.domain, 4, frames=2) for x in (model_of(blocks=n, **args) for n in (3, 2))
    ]
    linear = 2 * tokens * (8 * d * d + 3 * d * m)
    time_attention = 2 * 2 * 16 * d * 2 * 2
    space_attention = 2 * 2 * 2 * d * 16 * 16
    assert per_block[0] - per_block[1] == linear + time_attention + space_attention


def test_a_folded_block_is_counted_by_hand():
    """One frame of tokens, and no time attention."""
    d, m, tokens = 24, 40, 16
    args = {"width": d, "heads": 3, "mlp_dim": m}
    three, two = (
        call_flops(x, x.domain, 4, frames=2) for x in (model_of(blocks=n, **args) for n in (3, 2))
    )
    assert three - two == 2 * tokens * (4 * d * d + 3 * d * m) + 2 * 2 * d * tokens**2


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("training", [False, True])
def test_a_longer_folded_context_costs_its_channels_alone(processor, training):
    """The encoder's first stage reads them; the gradient of its kernel costs as much again."""
    two, seven = (
        call_flops(m, m.domain, 8, frames=m.context, training=training)
        for m in (model_of("csm", (4, 8), processor, context=n, stage_dim=6) for n in (2, 7))
    )
    taps, outputs = 4 * 4, 4 * 4
    assert seven - two == (1 + training) * 2 * 5 * 6 * taps * outputs


def test_spectral_mixing_is_counted_by_hand():
    d, m, frames, cells = 24, 40, 2, 16
    args = {"processor": "afno", "width": d, "heads": 3, "mlp_dim": m, "mode_blocks": 4}
    args |= {"time": "attend"}
    per_block = [
        call_flops(x, x.domain, 4, frames=2) for x in (model_of(blocks=n, **args) for n in (3, 2))
    ]
    linear = 2 * frames * cells * (4 * d * d + d * d + 3 * d * m)
    time_attention = 2 * 2 * 16 * d * 2 * 2
    modes = frames * 4 * 3  # of a 4x4 grid of tokens a real transform keeps 4x3
    network = 2 * modes * 2 * (2 * d) * (2 * d // 4)
    transforms = 2 * 2.5 * frames * d * cells * 4  # there and back, log2(16) = 4
    assert per_block[0] - per_block[1] == linear + time_attention + network + transforms


def test_transforms_are_counted_by_the_formula():
    with FlopCounterMode(display=False, custom_mapping=FFT_FLOPS) as counter:
        x = torch.empty(3, 8, 16, dtype=torch.complex64, device="meta")
        torch.fft.fftn(x, dim=(1, 2))
    assert counter.get_total_flops() == 5 * 3 * 128 * 7


def test_counting_leaves_the_model_alone_and_scales_with_the_batch():
    model = model_of("csm", (4, 8))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    one, two = (call_flops(model, model.domain, 8, frames=2, batch=b) for b in (1, 2))
    assert two == 2 * one
    assert not model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert call_flops(model, model.domain, 4, frames=2) > 3 * one


def test_in_training_every_frame_that_attends_is_computed_to_the_end():
    """Also by the last block, which predicts the last frame alone when it is a forecast."""
    d, m, tokens = 24, 40, 4 * 16
    model = model_of(blocks=1, context=4, width=d, heads=3, mlp_dim=m, time="attend")
    linear = 2 * tokens * (8 * d * d + 3 * d * m)
    trained = call_flops(model, model.domain, 4, frames=4, training=True)
    assert trained > 3 * linear > 2 * call_flops(model, model.domain, 4, frames=4)
