# %% [markdown]
# # Your own arrays in 40 lines
#
# A solver of one's own, a model that suits its grid, three minutes of training, and the question
# whether it was worth it: is the model better than "nothing changes" and "all goes on as before"?

# %%
import os

import numpy as np
import torch

import overtone as ot
from overtone.metrics import vrmse

MINUTES = float(os.environ.get("OVERTONE_EXAMPLE_MINUTES", "3"))  # of training


# %% [markdown]
# Burgers' equation, u_t = ν u_xx - (u²/2)_x, by Fourier transforms. Any program that makes arrays
# `(trajectories, frames, fields, *space)` will do.


# %%
def burgers(trajectories, frames, *, seed, cells=64, viscosity=0.03, dt=0.1, substeps=20):
    modes, step = np.arange(cells // 2 + 1), dt / substeps
    random = np.random.default_rng(seed).normal(size=(2, trajectories, 4)) / [1, 2, 3, 4]
    spectrum = np.zeros((trajectories, len(modes)), complex)
    spectrum[:, 1:5] = cells / 4 * (random[0] + 1j * random[1])
    decay, made = np.exp(-viscosity * modes**2 * step), []
    for _ in range(frames * substeps):
        made.append(np.fft.irfft(spectrum))
        flux = np.fft.rfft(made[-1] ** 2 / 2) * (modes < cells / 3)
        spectrum = decay * (spectrum - step * 1j * modes * flux)
    return np.stack(made[::substeps], axis=1)[:, :, None].astype("float32")


trained, test = burgers(24, 60, seed=0), burgers(6, 60, seed=1)
domain = ot.Domain(64, 2 * np.pi, "periodic", fields=("velocity",), dt=0.1)
print(trained.shape, domain)

# %% [markdown]
# A tenth of the trajectories is held out to validate by. Ctrl-C (or *Interrupt*) keeps the best.

# %%
torch.manual_seed(0)
model = ot.build("vit", domain=domain, patches=(4, 8, 16), context=8)
model, history = ot.fit(model, trained, minutes=MINUTES)
history

# %% [markdown]
# The first eight frames of trajectories that nobody has seen, and the ten that follow. VRMSE is 0
# for the truth and 1 for its mean.

# %%
unseen = torch.tensor(test)
window, truth = ot.Window(unseen[:, :8], domain), unseen[:, 8:18]
rivals = {name: ot.baseline(name, domain=domain) for name in ("persistence", "extrapolation")}
for name, own in {"trained": model, **rivals}.items():
    frames = torch.stack(list(ot.rollout(own, window, steps=10, schedule="4-8-16")), dim=1)
    print(f"{name:14} VRMSE over 10 steps: {vrmse(frames, truth, ndim=1).mean():.3f}")

# %%
ot.plot_rollout(model, test[0], steps=40, schedule=["4-8-16", "16"])
