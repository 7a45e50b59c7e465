"""The whole model again, in loops and without any code of the library."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

import overtone as ot


def by_loops(model, fields, strides):
    """The frame that a folded `vit` predicts on a periodic line, without any code of the library.

    Fields are `(T, C, n)`; `strides` are those of the encoder's two stages.
    """
    mean, std = fields.mean(dim=(0, 2)), fields.std(dim=(0, 2), correction=0)
    std = (std * model.scale).sqrt()
    step = fields.diff(dim=0).square().mean(dim=(0, 2)).sqrt()
    num_frames, num_fields, _ = fields.shape
    x = torch.stack([(fields[t, c] - mean[c]) / std[c]
                     for t in range(num_frames) for c in range(num_fields)])  # fmt: skip
    coder = model.tokenizer
    for i, stride in enumerate(strides):
        x = _read(coder.encoders[i], x, stride)
        if i == 0:
            x = detail = F.gelu(coder.encoder_norms[0](x.T)).T
    tokens = x.T
    for block in model.processor.blocks:
        y = block.norm(tokens)
        gate, value = block.mlp.inward(y).chunk(2, dim=-1)
        inner = gate * gate.sigmoid() * value @ block.mlp.out.weight.T * block.mlp.out.scale
        tokens = tokens + _attention(block.space, y, model.architecture.max_turns) + inner
    x = model.processor.norm(tokens).T
    for i, stride in enumerate(reversed(strides)):
        x = _write(coder.decoders[i], x, stride)
        if i == 0:
            passed = coder.skips[0].weight @ detail if coder.skips else 0
            x = F.gelu(coder.decoder_norms[0]((x + passed).T)).T
    unit = (step * model.pace * std).sqrt()
    return fields[-1] + unit[:, None] * x


def _read(stage, x, stride):
    """Each token from the taps around its own cells."""
    taps, tokens = stage.weight.shape[-1], []
    for j in range(x.shape[1] // stride):
        first = j * stride - (taps - stride) // 2
        seen = [stage.weight[..., k] @ x[:, (first + k) % x.shape[1]] for k in range(taps)]
        tokens.append(stage.bias + sum(seen))
    return torch.stack(tokens, dim=1)


def _write(stage, tokens, stride):
    """The reverse: each token adds to all cells under its taps."""
    taps, cells = stage.weight.shape[-1], tokens.shape[1] * stride
    x = stage.bias[:, None].repeat(1, cells)
    for j, k in itertools.product(range(tokens.shape[1]), range(taps)):
        x[:, (j * stride - (taps - stride) // 2 + k) % cells] += tokens[:, j] @ stage.weight[..., k]
    return x


def _attention(space, y, max_turns):
    """Full attention of heads of four numbers: two pairs, turned once and most often."""
    place = (torch.arange(len(y), dtype=torch.float64) + 0.5) / len(y)
    turns = torch.tensor([1, max_turns], dtype=torch.float64)
    turn = torch.exp(2j * math.pi * place[:, None] * turns)
    heads = []
    for rows in torch.arange(y.shape[1]).split(4):
        q, k = (
            norm(y @ layer.weight[rows].T)
            for norm, layer in ((space.q_norm, space.q), (space.k_norm, space.k))
        )
        q, k = ((x[:, ::2] + 1j * x[:, 1::2]) * turn for x in (q, k))
        weights = ((q @ k.conj().T).real / 2).softmax(dim=-1)
        heads.append(weights @ y @ space.v.weight[rows].T)
    return torch.cat(heads, dim=1) @ space.out.weight.T * space.out.scale


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("tokenizer", "kernels", "patch", "strides"),
    [
        ("fixed", (2, 2), 4, (2, 2)),
        ("csm", (4, 3), 4, (2, 2)),
        ("csm", (4, 3), 2, (2, 1)),
        ("ckm", (4, 2), 8, (4, 2)),
    ],
)
def test_a_folded_model_by_loops(make_domain, make_model, tokenizer, kernels, patch, strides, skip):
    """Frame by frame the channels, patch by patch the tokens, pair by pair the attention."""
    model = make_model(
        make_domain((24,)), tokenizer=tokenizer, patches=(patch,), width=8, context=3,
        base_kernel=kernels, stage_dim=6, decoder="paper", layer_scale=1.0, skip=skip, time="fold",
    ).double()  # fmt: skip
    for parameter in model.parameters():  # norms and biases are no longer ones and zeros
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.pace.copy_(torch.tensor([0.3, 2.0]))
    model.scale.copy_(torch.tensor([0.7, 4.0]))
    fields = torch.randn(3, 2, 24, dtype=torch.float64).cumsum(dim=0) + 5
    expected = by_loops(model, fields, strides)
    frame = model(ot.Window(fields[None], model.domain), patch)[0]
    torch.testing.assert_close(frame, expected, rtol=1e-6, atol=1e-6)
