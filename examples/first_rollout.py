"""The public face in fifteen lines: build, predict, roll out, save, load.

The model is untrained, so its frames stay close to the last one it was given.
"""

import torch

import overtone as ot

domain = ot.Domain(
    shape=(64, 128), extent=(1.0, 2.0), boundaries=("periodic", "periodic"),
    fields=("tracer", "pressure", "velocity_x", "velocity_z"), dt=0.1,
)  # fmt: skip
model = ot.build("vit", tokenizer="csm", patches=(4, 8, 16), size="tiny", domain=domain, context=4)
fields = torch.randn(2, 4, 4, 64, 128)  # (B, T, C, *space): your data, in physical units
window = ot.Window(fields, domain)
frame = model(window, patch=8)  # (B, C, *space), physical units
for frame in ot.rollout(model, window, steps=6, schedule=ot.Cycle(4, 8, 16)):
    print(tuple(frame.shape), f"{frame.std():.3f}")
model.save("run/model")
model = ot.Emulator.from_pretrained("run/model")

shifted = ot.parse_schedule("16+shift")
print(f"{shifted}: {shifted.tokens(domain, steps=40)} tokens for 40 steps")
