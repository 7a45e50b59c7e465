# %% [markdown]
# # The dial: one model, many prices
#
# A model that was trained for several patches can be asked for a cheap answer or a good one, and a
# schedule is a price between the two. Here the packaged shear-flow model is evaluated with a few of
# them, on flows that are simulated on the spot.

# %%
import os

import overtone as ot
from overtone.report.figures.dial import rollout_dial
from overtone.solvers.datasets import build_system, generate

FLOWS, STEPS = map(int, os.environ.get("OVERTONE_EXAMPLE_FLOWS", "4x40").split("x"))
START = 28 if STEPS == 40 else 0  # where the shear layers have rolled up

# %% [markdown]
# Two shear layers that roll up, with a seed of their own: nobody was trained on them. The model was
# trained on averages over 2 x 2 cells, so they are read in the same way (`coarsen`).

# %%
system = build_system("shear_flow", grid=(128, 128), reynolds=5e3)
steps = START + 8 + STEPS
flows = generate(
    system, "flows", trajectories=FLOWS, steps=steps, splits=(0.0, 0.0, 1.0), seed=1000
)
model = ot.load("shear-flow-mini-csm")
print(ot.data.WellFolder(flows, "test", model.context, coarsen=2))

# %% [markdown]
# `+shift` moves the patch grid by another offset at every step, which costs nothing.

# %%
schedules = ["16", "16+shift", "8", "4-8-16", "4-8-16+shift", "4"]
found = ot.evaluate(model, flows, schedules=schedules, steps=STEPS, start=START, coarsen=2)
print(found)

# %% [markdown]
# Each point is a schedule: what it costs, in tokens and in seconds, and how wrong it is.

# %%
rollout_dial(found.results)

# %% [markdown]
# And what the cheapest and the dearest one look like at the end.

# %%
folder = ot.data.WellFolder(flows, "test", model.context, coarsen=2)
ot.plot_rollout(model, folder, schedule=["16+shift", "4"], steps=STEPS, start=START)
