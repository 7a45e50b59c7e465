# %% [markdown]
# # Make somebody's ViT flexible, train it, roll it out
#
# A fixed-patch model, made flexible in two lines (`flexify` and `with ot.patch`), then trained at
# all its patches and rolled out with a schedule that moves between them.

# %%
import os

import torch
from torch import nn

import overtone as ot

MINUTES = float(os.environ.get("OVERTONE_EXAMPLE_MINUTES", "3"))  # of training


# %% [markdown]
# Somebody's model: it knows nothing of Overtone.


# %%
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


torch.manual_seed(0)
model = PatchTransformer().eval()

# %% [markdown]
# Two lines make it flexible. Outside of `with ot.patch` it is the model that it was, to the bit.

# %%
frames = torch.randn(1, 2, 2, 32, 64)  # (B, T, C, *space)
fixed = model(frames.flatten(1, 2))
ot.flexify(model, "encoder", "decoder", patches=(4, 8, 16), decoder_axes="p1 p2 c")
for size in (4, 8, 16):
    with ot.patch(model, size):
        print(size, tuple(model(frames.flatten(1, 2)).shape))
assert torch.equal(model(frames.flatten(1, 2)), fixed)


# %% [markdown]
# Data: two fields of waves that travel across a periodic box, each at its own speed.


# %%
def waves(trajectories, frames, *, seed):
    random = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(32) / 32, torch.arange(64) / 64, indexing="ij")
    time = torch.arange(frames).reshape(-1, 1, 1, 1) / 40
    fields = torch.zeros(trajectories, frames, 2, 32, 64)
    for modes, speed in (((1, 1), 1.0), ((2, 1), -0.5), ((1, 3), 2.0)):
        phase, size = torch.rand(2, trajectories, 1, 2, 1, 1, generator=random)
        angle = modes[0] * y + modes[1] * x - speed * time + phase
        fields += size * torch.sin(2 * torch.pi * angle)
    return fields


# %% [markdown]
# A `FlexibleStepper` gives it the face that training and rollouts know; it reads normalised frames
# and predicts the change, as our own models do.

# %%
domain = ot.Domain((32, 64), (1.0, 2.0), "periodic", fields=("u", "v"), dt=0.1)
stepper = ot.FlexibleStepper(model, domain=domain, context=2, predicts="change")
stepper, history = ot.fit(stepper, waves(16, 40, seed=0), minutes=MINUTES)
history

# %%
test = waves(1, 40, seed=1)
for frame in ot.rollout(stepper, ot.Window(test[:, :2], domain), steps=6, schedule="4-8-16+shift"):
    print(tuple(frame.shape), f"{frame.std():.3f}")
ot.plot_rollout(stepper, test[0], steps=12)
