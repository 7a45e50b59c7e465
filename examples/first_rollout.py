"""A first result: one trained model, a flow that it has never seen, two schedules."""

import overtone as ot
from overtone.solvers.datasets import build_system, generate

system = build_system("shear_flow", grid=(128, 128), reynolds=5e3)
flows = generate(system, "flows", trajectories=1, steps=76, splits=(0, 0, 1), seed=7)
model = ot.load("shear-flow-mini-csm")  # one model, trained for patches of 4, 8 and 16 cells
data = ot.data.WellFolder(flows, "test", model.context, coarsen=2)
window, _ = ot.data.collate([data[28]])  # (B, T, C, *space), in physical units
frames = list(ot.rollout(model, window, steps=40, schedule="4-8-16+shift"))
print(frames[-1].shape)
schedules = ["16", "4-8-16+shift"]
print(ot.evaluate(model, flows, schedules=schedules, steps=40, start=28, coarsen=2))
ot.plot_rollout(model, data, schedule=schedules, steps=40, start=28).savefig("rollout.png")
