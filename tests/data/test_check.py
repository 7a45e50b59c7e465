"""Each seeded fault is found, in the right file and at the right place."""

import re

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data import FieldSpec, Header, Storage, check, location, write_stats, write_well
from overtone.data.layout import DEFAULTS


@pytest.fixture
def folder(make_folder):
    path, _ = make_folder()
    write_stats(path)
    return path


def found(folder, severity="error"):
    return [(f.file, f.message) for f in check(folder) if f.severity == severity]


def test_a_good_dataset_has_no_findings(folder):
    progress = []
    assert check(folder, progress=lambda n, m: progress.append((n, m))) == []
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_truncated(folder):
    path = folder / "data/train/toy_1.hdf5"
    path.write_bytes(path.read_bytes()[:-2000])
    ((file, message),) = found(folder)
    assert file == str(path)
    assert "truncated or damaged" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is an empty file"),
        (b"<!DOCTYPE html><html>404", "not an HDF5 file: it begins with '<!DOCTYPE html>"),
        (b"version https://git-lfs.github.com/spec/v1", "It may be a failed download"),
    ],
)
def test_failed_downloads(folder, content, message):
    (folder / "data/valid/toy_0.hdf5").write_bytes(content)
    ((_, text),) = found(folder)
    assert message in text


def test_not_finite_values_are_located(folder):
    path = folder / "data/test/toy_0.hdf5"
    with h5py.File(path, "r+") as file:
        file["t1_fields/velocity"][1, 4, 2, 3, 1] = np.nan
        file["t1_fields/velocity"][1, 6, 0, 0, 0] = np.inf
        file["t0_fields/pressure"][0, 8, 5, 7] = -np.inf
    messages = [message for file, message in found(folder) if file == str(path)]
    assert "Inf in trajectory 0, step 8, field 'pressure', cell (5, 7)" in messages
    assert "NaN in trajectory 1, step 4, field 'velocity_y', cell (2, 3)" in messages
    assert "field 'velocity' has 2 values that are NaN or infinite in all" in messages


def test_missing_group(folder):
    with h5py.File(folder / "data/train/toy_0.hdf5", "r+") as file:
        del file["scalars"]
    ((_, message),) = found(folder)
    assert "lacks the group 'scalars'" in message


def test_damaged_values(folder, make_header, make_values):
    values = make_values()
    path = folder / "data/train/toy_1.hdf5"
    write_well(path, values, make_header(), storage=Storage(fletcher32=True))
    content = bytearray(path.read_bytes())
    content[content.find(next(iter(values.values()))[0, 0].tobytes()[:64]) + 5] ^= 1
    path.write_bytes(content)
    ((_, message),) = found(folder)
    assert "can't be read" in message


def test_other_grid_fields_and_boundaries(folder, make_header, make_values):
    other = folder / "data/train/z.hdf5"
    write_well(other, make_values((6, 6)), make_header((6, 6)))
    ((file, message),) = found(folder)
    assert (file, message.split(";")[0]) == (str(other), "grid is (6, 6)")
    write_well(other, make_values(specs=(FieldSpec("density"),)), make_header())
    ((_, message),) = found(folder)
    assert message.startswith("channels is (density)")
    write_well(other, make_values(), make_header(boundaries="wall", dt=0.5))
    ((_, message),) = found(folder)
    assert message.startswith("boundaries is ((wall, wall)")
    assert "dt 0.5 and extent" in found(folder, "warning")[0][1]


def test_missing_and_incomplete_statistics(folder):
    text = (folder / "stats.yaml").read_text()
    (folder / "stats.yaml").write_text(text.replace("pressure", "presure"))
    assert len(found(folder)) == 6
    assert "lacks pressure" in found(folder)[0][1]
    (folder / "stats.yaml").unlink()
    assert "no stats.yaml" in found(folder, "warning")[0][1]


def test_missing_and_empty_splits_and_constant_fields(folder, make_header, make_values):
    (folder / "data/test/toy_0.hdf5").unlink()
    assert "split 'test' has no HDF5 files" in found(folder)[0][1]
    (folder / "data/test").rmdir()
    assert "no split test" in found(folder, "warning")[0][1]
    values = make_values()
    next(iter(values.values()))[:] = 1.0
    write_well(folder / "data/train/toy_1.hdf5", values, make_header())
    assert "field 'density' never changes" in [m for _, m in found(folder, "warning")]


def test_one_file_and_no_folder(folder, tmp_path):
    assert check(folder / "data/train/toy_0.hdf5") == []
    with pytest.raises(ot.DataError, match="does not exist"):
        check(tmp_path / "nothing")


def set_raw(where, key, value):
    """Put any bytes, shape or type in the place of an attribute."""

    def change(file):
        target = file[where]
        if key in target.attrs:
            del target.attrs[key]
        if isinstance(value, bytes):
            target.attrs.create(key, np.bytes_(value))
        else:
            target.attrs[key] = value

    return change


MALFORMED = [
    (set_raw("/", "n_spatial_dims", "two"), "'n_spatial_dims' of / is 'two'; expected a whole"),
    (set_raw("/", "n_trajectories", 2.5), "'n_trajectories' of / is '2.5'; expected a whole"),
    (set_raw("/", "n_trajectories", [2, 2]), "expected a whole number"),
    (set_raw("/", "n_trajectories", np.nan), "expected a whole number"),
    (set_raw("/", "dataset_name", ["a", "b"]), "expected one name"),
    (set_raw("/", "dataset_name", 5.0), "'dataset_name' of / is '5.0'; expected names"),
    (set_raw("/", "simulation_parameters", np.zeros((2, 2))), "expected names"),
    (set_raw("/", "simulation_parameters", h5py.Empty("f4")), None),
    (set_raw("/", "grid_type", np.zeros(8000)), "expected names"),
    (set_raw("dimensions", "spatial_dims", np.arange(2)), "expected names"),
    (set_raw("dimensions/x", "sample_varying", "no"), "expected 1 times true or false"),
    (set_raw("t0_fields/density", "time_varying", [True, True]), "expected 1 times true or false"),
    (set_raw("t0_fields/density", "dim_varying", np.ones((2, 2), bool)), "expected 2 times true"),
    (set_raw("t0_fields/density", "dim_varying", "xy"), "expected 2 times true or false"),
    (set_raw("t0_fields", "field_names", b"\xff\xfe"), r"lacks the dataset '\xff\xfe'"),
    (set_raw("t0_fields", "field_names", ["/t0_fields/density"]), "lacks the dataset '/t0_fiel"),
    (set_raw("boundary_conditions/x_periodic", "bc_type", b"\xff"), r"is '\xff'; expected one of"),
    (set_raw("boundary_conditions/x_periodic", "bc_type", "²"), "expected one of WALL"),
    (set_raw("boundary_conditions/x_periodic", "bc_type", [0, 1]), "expected one of WALL"),
]


@pytest.mark.parametrize(("change", "message"), MALFORMED)
def test_malformed_attributes_name_their_file_and_the_rest_is_checked(folder, change, message):
    path = folder / "data/train/toy_0.hdf5"
    with h5py.File(path, "r+") as file:
        change(file)
    with h5py.File(folder / "data/train/toy_1.hdf5", "r+") as file:
        file["t0_fields/density"][0, 0, 0, 0] = np.nan
    errors = found(folder)
    assert errors[-1][0] == str(folder / "data/train/toy_1.hdf5")
    first = [text for file, text in errors if file == str(path)]
    assert message is None or message in first[0]
    assert len(first) == (message is not None)


def test_a_huge_attribute_is_not_read(folder, monkeypatch):
    monkeypatch.setattr("overtone.data.attributes.MAX_ATTRIBUTE_BYTES", 50_000)
    with h5py.File(folder / "data/train/toy_0.hdf5", "r+") as file:
        del file.attrs["dataset_name"]
        file.attrs["dataset_name"] = np.zeros(7000)
    ((_, message),) = found(folder)
    assert "attribute 'dataset_name' of / has 56.0 kB" in message


def test_an_error_that_nobody_thought_of_does_not_end_the_check(folder, monkeypatch):
    def fail(file, *_):
        if file.filename.endswith("train/toy_0.hdf5"):
            raise ZeroDivisionError("a surprise")
        return original(file, *_)

    original = location.read_layout
    monkeypatch.setattr(location, "read_layout", fail)
    ((file, message),) = found(folder)
    assert file.endswith("train/toy_0.hdf5")
    assert message == "can't be checked: ZeroDivisionError: a surprise"


@pytest.mark.parametrize(
    ("unit", "warned", "severity"),
    [
        (
            1e-3,
            "'velocity_y' has a variance of 1e-06 over space; .* add 1e-07 .* another unit",
            "warning",
        ),
        (1e-2, None, "warning"),
        (1e-32, "'velocity' has values up to .*e-32; models work from 1e-30 to 1e.30", "warning"),
        (1e32, "'velocity' has values up to .*e\\+32; models work from 1e-30 to 1e.30", "warning"),
        (1e39, "'velocity' has values up to .*e\\+39, infinite in float32", "error"),
    ],
)
def test_units_that_measures_or_models_can_not_take(
    tmp_path, make_header, make_values, unit, warned, severity
):
    values = {spec: array.astype(np.float64) for spec, array in make_values(num=9).items()}
    velocity = next(spec for spec in values if spec.name == "velocity")
    fluctuation = values[velocity][..., 1]
    fluctuation /= fluctuation.std(axis=(2, 3), keepdims=True)
    values[velocity] *= [1.0, unit] if unit < 1 and unit > 1e-9 else [unit, unit]
    values[velocity] += [0.0, 7.0] if 1e-9 < unit < 1 else [0.0, 0.0]  # the mean plays no role
    write_well(tmp_path / "a.hdf5", values, make_header(), storage=Storage("float64"))
    write_stats(tmp_path)
    findings = found(tmp_path, severity)
    if warned is None:
        assert findings == []
        return
    assert re.search(warned, findings[0][1])
    assert all("velocity" in message for _, message in findings)


def one_file(folder, values, **options):
    """A dataset of scalars `(n, T, *S)` in one file, without further findings."""
    shape = next(iter(values.values())).shape[2:]
    specs = {FieldSpec(k) if isinstance(k, str) else k: v for k, v in values.items()}
    header = Header("toy", shape, (1.0,) * len(shape), "open", **options)
    write_well(folder / "a.hdf5", specs, header)
    write_stats(folder)
    return [message for _, message in found(folder, "warning")]


def drifting(num, steps, *shape):
    noise = np.random.default_rng(1).standard_normal((num, steps, *shape))
    return noise + 3 * noise[:, :1]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ((17, 16, 8), "17 trajectories have 16 frames each.*--layout"),
        ((16, 15, 8), None),  # few
        ((17, 17, 8), None),
        ((4, 20, 20), "one-dimensional grid of 20 cells has 20 frames.*--layout"),
        ((4, 21, 20), "one-dimensional grid of 20 cells has 21 frames"),
        ((4, 22, 20), None),
        ((4, 20, 20, 20), None),
    ],
)
def test_shapes_as_of_mixed_up_axes(tmp_path, size, said):
    messages = one_file(tmp_path, {"a": drifting(*size)})
    assert len(messages) == (said is not None)
    assert said is None or re.search(said, messages[0])


def test_trajectories_are_counted_over_all_files(folder):
    assert found(folder, "warning") == []  # 8 trajectories of 9 frames
    for number in range(5):
        (folder / f"data/train/more_{number}.hdf5").write_bytes(
            (folder / "data/train/toy_0.hdf5").read_bytes()
        )
    ((file, message),) = found(folder, "warning")
    assert file == str(folder)
    assert message.startswith("18 trajectories have 9 frames each")


def test_frames_that_have_nothing_in_common(tmp_path):
    """Also where a trajectory is read in several blocks, and in one component of several."""
    values = drifting(2, 12, 8, 8)
    noise = np.random.default_rng(2).standard_normal((2, 12, 8, 8))
    assert one_file(tmp_path, {"a": values}) == []
    (message,) = one_file(tmp_path, {"a": values, "b": noise})
    assert re.search(r"neighbouring frames of 'b' hardly correlate \(-?0.0\d on average\)", message)
    both = {"a": values, FieldSpec("u", 1): np.stack([values, noise], -1)}
    assert "frames of 'u_y' hardly" in one_file(tmp_path, both)[0]
    # An offset makes nothing alike, and the border between trajectories is none between frames.
    (message,) = one_file(tmp_path, {"b": noise + 100})
    assert "hardly correlate" in message
    pair = np.stack([values[:, 0], -values[:, 0]], 1)[:1].repeat(2, 0)
    assert "(-1.00 on average)" in one_file(tmp_path, {"a": pair})[0]


def test_likeness_does_not_depend_on_the_size_of_blocks(tmp_path, monkeypatch):
    noise = {"b": np.random.default_rng(2).standard_normal((3, 12, 8, 8))}
    whole = one_file(tmp_path, noise)
    monkeypatch.setattr("overtone.data.stats.BLOCK_BYTES", 5 * 8 * 64)
    assert one_file(tmp_path, noise) == whole
    assert len(whole) == 1


def test_fields_that_are_constant_in_time(tmp_path):
    values = drifting(2, 5, 8, 8)
    still = np.broadcast_to(values[:, :1], values.shape).copy()
    (message,) = one_file(tmp_path, {"a": values, "b": still})
    assert message.startswith("field 'b' is constant in time")
    still[1, 4, 0, 0] += 1e-3
    assert one_file(tmp_path, {"b": still}) == []


def test_dt_that_nobody_gave(tmp_path):
    values = {"a": drifting(2, 5, 8, 8)}
    assert one_file(tmp_path, values, attributes={DEFAULTS: "extent x,boundaries"}) == []
    (message,) = one_file(tmp_path, values, attributes={DEFAULTS: "dt,boundaries"})
    assert message.startswith("dt is 1 by default")
