"""A fixed-patch model of your own, made flexible in two lines: `flexify` and `with ot.patch`.

The model is untrained; flexify one that you have trained, then fine-tune it at all its patches.
"""

import torch
from torch import nn

import overtone as ot


class PatchTransformer(nn.Module):
    """Frames joined into channels, patches of 8 cells, a Transformer, and the next frame."""

    def __init__(self, shape=(32, 64), channels=2, context=2, patch=8, width=48):
        super().__init__()
        self.patch_size, self.channels = patch, channels
        tokens = (shape[0] // patch) * (shape[1] // patch)
        self.encoder = nn.Conv2d(context * channels, width, kernel_size=patch, stride=patch)
        self.pos_embed = nn.Parameter(0.1 * torch.randn(1, tokens, width))
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=96, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, num_layers=2)
        self.decoder = nn.Linear(width, patch * patch * channels)

    def forward(self, x):
        """`(B, T * C, *space)` to `(B, C, *space)`."""
        x = self.encoder(x)
        rows, columns = x.shape[-2:]
        x = self.blocks(x.flatten(2).transpose(1, 2) + self.pos_embed)
        p = self.patch_size
        x = self.decoder(x).reshape(-1, rows, columns, p, p, self.channels)
        return x.permute(0, 5, 1, 3, 2, 4).reshape(-1, self.channels, rows * p, columns * p)


model = PatchTransformer().eval()
frames = torch.randn(1, 2, 2, 32, 64)  # (B, T, C, *space): your data
fixed = model(frames.flatten(1, 2))

ot.flexify(model, "encoder", "decoder", patches=(4, 8, 16), decoder_axes="p1 p2 c")
for size in (4, 8, 16):
    with ot.patch(model, size):
        print(size, tuple(model(frames.flatten(1, 2)).shape))
assert torch.equal(model(frames.flatten(1, 2)), fixed)  # outside: the model as it was

domain = ot.Domain((32, 64), (1.0, 2.0), "periodic", fields=("u", "v"), dt=0.1)
stepper = ot.FlexibleStepper(model, domain=domain, context=2)
window = ot.Window(frames, domain)
for frame in ot.rollout(stepper, window, steps=6, schedule=ot.parse_schedule("4-8-16+shift")):
    print(tuple(frame.shape), f"{frame.std():.3f}")
