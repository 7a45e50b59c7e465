"""Small Well files of known values."""

import numpy as np
import pytest

pytest.importorskip("h5py")

from overtone.data import FieldSpec, Header, write_well

SPECS = (FieldSpec("density"), FieldSpec("pressure"), FieldSpec("velocity", 1), FieldSpec("D", 2))


@pytest.fixture(scope="session")
def make_header():
    def make(shape=(6, 8), boundaries="periodic", dt=0.25, **options):
        extent = tuple(float(n) / 4 for n in shape)
        return Header("toy", tuple(shape), extent, boundaries, dt, **options)

    return make


@pytest.fixture(scope="session")
def make_values():
    """Random values of each field, in The Well's shapes, that change slowly."""

    def make(shape=(6, 8), num=2, steps=9, specs=SPECS, seed=0):
        random = np.random.default_rng(seed)
        values = {
            spec: random.standard_normal(spec.stored_shape(num, steps, shape), dtype=np.float32)
            for spec in specs
        }
        for spec, array in values.items():
            if spec.time_varying:
                array += 2 * array.take([0], axis=int(spec.sample_varying))
        return values

    return make


@pytest.fixture(scope="session")
def stack():
    """Fields in The Well's shapes as one array `(n, T, C, *S)`: the slow and obvious way."""

    def stacked(values, num, steps, shape):
        parts = []
        for spec, array in values.items():
            if not spec.sample_varying:
                array = np.stack([array] * num)
            if not spec.time_varying:
                array = np.stack([array] * steps, axis=1)
            for axis, varies in enumerate(spec.varies(len(shape))):
                if not varies:
                    array = np.stack([array] * shape[axis], axis=2 + axis)
            flat = array.reshape(num, steps, *shape, -1)
            parts += [flat[..., c] for c in range(flat.shape[-1])]
        return np.stack(parts, axis=2)

    return stacked


@pytest.fixture
def make_folder(tmp_path, make_header, make_values):
    """A Well folder with some files in each split; returns its path and the values by split."""

    def make(files=(2, 1, 1), shape=(6, 8), num=2, steps=9, specs=SPECS, **options):
        header, values = make_header(shape, **options), {}
        for number, (split, count) in enumerate(
            zip(("train", "valid", "test"), files, strict=True)
        ):
            for index in range(count):
                content = make_values(shape, num, steps, specs, seed=10 * number + index)
                path = tmp_path / "toy" / "data" / split / f"toy_{index}.hdf5"
                write_well(path, content, header)
                values.setdefault(split, []).append(content)
        return tmp_path / "toy", values

    return make
