"""Which patch, and which shift of the patch grid, at which rollout step.

A schedule is a pure function of the step: the same step always gets the same `Choice`. Every
schedule has a short string form that `parse_schedule` reads back, so that a command line, a
results file and a figure's legend all say the same thing:

| schedule                                  | string form                |
|-------------------------------------------|----------------------------|
| `Constant(16)`                            | `16`                       |
| `Cycle(4, 8, 16)`                         | `4-8-16`                   |
| `Dwell((4, 8, 16), each=2)`               | `dwell:4-8-16:2`           |
| `Warmup((4, 4, 8, 8), then=16)`           | `warmup:4-4-8-8:16`        |
| `ReverseWarmup(16, (8, 8, 4, 4), steps=10)` | `reverse:16:8-8-4-4:10`  |
| `Bursts(coarse=16, fine=4, every=5)`      | `bursts:16:4:5`            |
| `RandomChoice((4, 8, 16), seed=0)`        | `random:4-8-16:0`          |
| `Explicit([4, 4, 16])`                    | `explicit:4-4-16`          |
| `Shifted(s, kind="stratified", seed=0)`   | `s+shift`                  |
| `Shifted(s, kind="random", seed=7)`       | `s+shift:random:7`         |
| `Shifted(s, offsets=[(3, 5), (0, 8)])`    | `s+shift:at:3x5-0x8`       |
| what `overtone plan` chose, from its file | `plan:FILE`                |

A patch with one int for each axis is written `4x8`.

The schedules are those of the paper's section on inference-time schedules and its appendix on
schedule families; shifts are our own addition.
"""

from overtone.schedules.forms import (
    Planned,
    parse_schedule,
    read_patches,
)
from overtone.schedules.kinds import (
    Bursts,
    Choice,
    Constant,
    Cycle,
    Dwell,
    Explicit,
    Patch,
    RandomChoice,
    ReverseWarmup,
    Schedule,
    Shifted,
    Warmup,
    require_countable,
    write_patch,
    write_patches,
)

__all__ = [
    "Bursts",
    "Choice",
    "Constant",
    "Cycle",
    "Dwell",
    "Explicit",
    "Patch",
    "Planned",
    "RandomChoice",
    "ReverseWarmup",
    "Schedule",
    "Shifted",
    "Warmup",
    "parse_schedule",
    "read_patches",
    "require_countable",
    "write_patch",
    "write_patches",
]
