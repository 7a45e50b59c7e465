"""Windows per second of `overtone.data.WellFolder` and `the_well.data.WellDataset`.

Both read the same files in the same run, in the same random order, into batches. Every case is
measured several times in turn, and the best of each reader counts. Run it with

    python benchmarks/data.py [--out results/data.json]
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from outcome import save
from torch.utils.data import DataLoader, Dataset, RandomSampler

from overtone.data import FieldSpec, Header, Storage, WellFolder, collate, write_well
from overtone.version import machine

FIELDS = {FieldSpec("tracer"): 0, FieldSpec("pressure"): 0, FieldSpec("velocity", 1): 1}


@dataclass(frozen=True)
class Case:
    """Files to read and how.

    Attributes:
        name: what it stands for.
        shape: the grid.
        frames: of each trajectory.
        files: of two trajectories each.
        windows: read in one measurement.
        compression: of the values.
    """

    name: str
    shape: tuple[int, ...]
    frames: int = 60
    files: int = 4
    windows: int = 400
    compression: str | None = None


CASES = (
    Case("small 2D", (64, 128)),
    Case("small 2D, gzip", (64, 128), windows=200, compression="gzip"),
    Case("2D as in the paper", (128, 256), windows=200),
    Case("3D", (32, 32, 32), windows=200),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/data.json"))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--windows", type=int, help="of each measurement; the case's own if absent")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    has_well = importlib.util.find_spec("the_well") is not None
    if not has_well:
        print("the_well is not installed: only overtone is measured (pip install the_well==1.2.0)")
    rows = []
    for case in CASES:
        if options.windows:
            case = replace(case, windows=options.windows)
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), case, options.seed)
            for workers in (0, 2):
                rows.append(measure(Path(folder), case, workers, has_well, options))
                print(describe(rows[-1]), flush=True)
    content = {
        "seed": options.seed,
        "batch": options.batch,
        "context": options.context,
        "repeats": options.repeats,
        "machine": machine(),
        "cases": rows,
    }
    save(options.out, content)
    print(f"wrote {options.out}")


def write_files(folder: Path, case: Case, seed: int) -> None:
    random = np.random.default_rng(seed)
    ndim = len(case.shape)
    header = Header("benchmark", case.shape, (1.0,) * ndim, "periodic", dt=0.1)
    storage = Storage(compression=case.compression)
    for number in range(case.files):
        lead = (2, case.frames, *case.shape)
        fields = {
            spec: random.standard_normal((*lead, *(ndim,) * order), dtype=np.float32)
            for spec, order in FIELDS.items()
        }
        path = folder / "data" / "train" / f"{number:03d}.hdf5"
        write_well(path, fields, header, storage=storage)


def measure(folder: Path, case: Case, workers: int, has_well: bool, options: Any) -> dict[str, Any]:
    """Windows per second of each reader, the best of several turns."""
    readers: dict[str, Callable[[], tuple[Dataset[Any], Any]]] = {
        "overtone": lambda: (WellFolder(folder, context=options.context), collate)
    }
    if has_well:
        readers["the_well"] = lambda: (well_dataset(folder, options.context), None)
    speeds: dict[str, list[float]] = {name: [] for name in readers}
    for turn in range(options.repeats):
        for name, make in readers.items():
            dataset, join = make()
            speeds[name].append(
                speed(dataset, join, case.windows, workers, options.batch, options.seed + turn)
            )
    row: dict[str, Any] = {**asdict(case), "workers": workers}
    row |= {name: max(values) for name, values in speeds.items()}
    if has_well:
        row["ratio"] = row["overtone"] / row["the_well"]
    return row


def well_dataset(folder: Path, context: int) -> Dataset[Any]:
    from the_well.data import WellDataset  # pyright: ignore[reportMissingImports]

    return WellDataset(
        path=str(folder),
        well_split_name="train",
        n_steps_input=context,
        n_steps_output=1,
        return_grid=False,
    )


def speed(
    dataset: Dataset[Any],
    join: Callable[..., Any] | None,
    windows: int,
    workers: int,
    batch: int,
    seed: int,
) -> float:
    """Windows per second after a first batch that starts workers and opens files."""
    random = torch.Generator().manual_seed(seed)
    sampler = RandomSampler(dataset, num_samples=windows + batch, generator=random)  # pyright: ignore[reportArgumentType]
    loader = DataLoader(
        dataset, batch_size=batch, sampler=sampler, num_workers=workers, collate_fn=join
    )
    batches = iter(loader)
    next(batches)
    began, count = time.perf_counter(), 0
    for _ in batches:
        count += batch
    return count / (time.perf_counter() - began)


def describe(row: dict[str, Any]) -> str:
    text = f"{row['name']:20} workers {row['workers']}: overtone {row['overtone']:8.0f} windows/s"
    if "the_well" in row:
        text += f", the_well {row['the_well']:8.0f}, ratio {row['ratio']:.2f}"
    return text


if __name__ == "__main__":
    main()
