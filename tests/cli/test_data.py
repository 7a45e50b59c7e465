"""The `data` commands, as a user types them."""

import io
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from overtone.cli.data import tables
from overtone.data import Header, WellWriter, import_arrays, write_well
from overtone.data.location import Location
from overtone.guard.folders import MARKER

VARIANTS = [f"--set={name}={'1,' * 300}1" for name in ("reynolds", "schmidt")]


def test_from_nothing_to_a_picture(overtone, tmp_path):
    out = tmp_path / "flows"
    generate = ("data", "generate", "Shear_Flow", "--out", out, "--grid", "16x32")
    options = ("--trajectories", 3, "--steps", 4, "--set", "reynolds=100,200")
    code, text = overtone(*generate, *options)
    assert code == 0, text
    assert len([*out.rglob("*.hdf5")]) == 6
    code, text = overtone("data", "show", out, "--out", tmp_path / "a.png")
    assert code == 0
    assert "reynolds: 100, 200" in text
    assert (tmp_path / "a.png").stat().st_size > 10_000
    code, text = overtone("data", "check", out)
    assert (code, "0 errors, 0 warnings" in text) == (0, True)
    (out / "stats.yaml").unlink()
    code, text = overtone("data", "stats", out)
    assert code == 0
    assert (out / "stats.yaml").exists()


def test_import_and_check(overtone, tmp_path):
    array = np.random.default_rng(0).standard_normal((4, 5, 3, 6, 8))
    np.save(tmp_path / "a.npy", array + 3 * array[:, :1])
    out = tmp_path / "out"
    arguments = ("data", "import", tmp_path / "a.npy", "--fields", "rho,u:1", "--out", out)
    code, text = overtone(*arguments, "--dt", 0.1, "--boundaries", "periodic,wall/open")
    assert code == 0, text
    file = next((out / "data/train").iterdir())
    file.write_bytes(file.read_bytes()[:1000])
    code, text = overtone("data", "check", out)
    assert code == 1
    assert "1 errors, 0 warnings" in text
    assert "truncated or damaged" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "nowhere"), "'nowhere' does not exist"),
        (("show", "nowhere"), "'nowhere' does not exist"),
        (("stats", "nowhere"), "'nowhere' does not exist"),
        (("generate", "shear_flo", "--out", "x"), "did you mean 'shear_flow'?"),
        (("generate", "shear_flow", "--out", "x", "--grid", "axb"), "grid is 'axb'"),
        (("generate", "shear_flow", "--out", "x", "--grid", "2x2"), "at least 4 cells"),
        (("generate", "shear_flow", "--out", "x", "--grid", "16.9x16"), "grid is 16.9; expected"),
        (("generate", "shear_flow", "--out", "x", "--grid", "nanx16"), "grid is 'nanx16'"),
        (("generate", "shear_flow", "--out", "x", "--grid", "100000x100000"), " TB, but only"),
        (("generate", "kolmogorov_flow", "--out", "x", "--set", "forcing=2.5"), "forcing is 2.5"),
        (("generate", "shear_flow", "--out", "x", "--set", "reynolds=inf"), "reynolds is 'inf'"),
        (("generate", "shear_flow", "--out", "x", "--steps", "1000000000"), " PB, but only"),
        (("generate", "shear_flow", "--out", "x", "--trajectories", "1" + "0" * 40), " files;"),
        (("generate", "shear_flow", "--out", "x", "--splits", "nan,0,1"), "splits is 'nan,0,1'"),
        (("generate", "shear_flow", "--out", "x", "--splits", "-1,1,1"), "from 0 to 1"),
        (
            ("generate", "shear_flow", "--out", "x", *VARIANTS),
            "90601 variants; expected at most 10000",
        ),
        (("generate", "shear_flow", "--out", "x", "--set", "reynolds"), "expected name=value"),
        (("generate", "shear_flow", "--out", "x", "--set", "reynold=1"), "mean 'reynolds'?"),
        (("generate", "shear_flow", "--out", "x", "--splits", "1,1,1"), "add up to 1"),
        (("import", "no.npy", "--fields", "a", "--out", "x"), "'no.npy' does not exist"),
        (("import", "no.npy"), "there is no --out; expected the folder of the new dataset, or"),
        (("import", "no.npy", "--out", "x", "--extent", "1,2"), "extent is '1,2'"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_two(
    overtone, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    code, text = overtone("data", *arguments)
    assert code == 2
    assert message in text
    assert "Traceback" not in text
    assert [*tmp_path.iterdir()] == []


HOSTILE = "x[/x][red]\x1b[31m\x07:smile:"
HARMLESS = r"x[/x][red]\x1b[31m\x07:smile:"


def test_what_files_say_is_shown_and_not_obeyed(overtone, tmp_path):
    """Markup, emoji, escape sequences and bytes that are no text, in names and attributes."""
    values = np.random.default_rng(0).standard_normal((1, 3, 4, 4))
    path = tmp_path / "[bold]folder" / "data" / "train" / "a.hdf5"
    header = Header("toy", (4, 4), (1.0, 1.0), "open", parameters={"speed": 1.0})
    write_well(path, {"a": values}, header)
    with h5py.File(path, "r+") as file:
        file.attrs["dataset_name"] = HOSTILE
        file.attrs["grid_type"] = np.bytes_(b"\xff\x1b")
        file.attrs["speed"] = HOSTILE
        file["t0_fields"].move("a", HOSTILE.replace("/", "|"))
        file["t0_fields"].attrs["field_names"] = [HOSTILE.replace("/", "|")]
        file["t0_fields"][HOSTILE.replace("/", "|")][0, 0, 0, 0] = np.nan
    folder = tmp_path / "[bold]folder"
    code, text = overtone("data", "check", folder)
    assert code == 1
    assert f"field '{HARMLESS.replace('/', '|')}', cell (0, 0)" in text
    assert f"{folder}" in text
    found = "".join(table_text(table) for table in tables(folder))
    assert HARMLESS in found
    assert HARMLESS.replace("/", "|") in found
    assert r"\xff\x1b" in found
    assert not any(character in text + found for character in "\x1b\x07\udcff")


def table_text(table):
    console = Console(file=io.StringIO(), width=300)
    console.print(table)
    return console.file.getvalue()


def test_parameters_that_are_numbers_here_and_texts_there(tmp_path):
    for number, speed in enumerate((2.0, 1.0, "fast")):
        path = tmp_path / f"{number}.hdf5"
        header = Header("toy", (4,), (1.0,), "open", parameters={"speed": 1.0})
        write_well(path, {"a": np.ones((1, 3, 4))}, header)
        with h5py.File(path, "r+") as file:
            file.attrs["speed"] = speed
    assert "speed: 1, 2, fast" in table_text(tables(tmp_path)[0])


SMALL_FILES = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv.pop(1))))
from overtone.cli.app import main
main()
"""


@pytest.mark.parametrize("command", ["import", pytest.param("generate", marks=pytest.mark.slow)])
def test_a_disk_that_is_full_in_the_middle(overtone, tmp_path, command):
    """Files can't grow beyond a limit: one message, no crash at the end, and it can go on."""
    np.save(tmp_path / "a.npy", np.ones((12, 600, 1, 32, 32), np.float32))
    arguments = {
        "import": (tmp_path / "a.npy", "--fields=a", "--splits=0.1,0.8,0.1"),
        "generate": ("kuramoto_sivashinsky", "--trajectories=3", "--steps=400"),
    }[command]
    limit = {"import": 10_000_000, "generate": 4_100_000}[command]
    out = tmp_path / "out"
    line = [sys.executable, "-c", SMALL_FILES, limit, "data", command, *arguments, "--out", out]
    done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    where = re.escape(str(out / "data"))
    assert re.search(rf"error: '{where}/.*_000.hdf5' can't be written: File too large", done.stderr)
    assert "Traceback" not in done.stderr
    assert "HDF5" not in done.stderr
    left = {p.name for p in tmp_path.rglob("*") if p.is_file()} - {MARKER, "out-frames.png"}
    assert left == {"a.npy"}
    code, text = overtone("data", command, *arguments, "--out", out)
    assert code == 0, text


def test_ctrl_c_during_an_import_leaves_nothing(overtone, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.ones((12, 6, 1, 8, 8), np.float32))

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WellWriter, "append", interrupt)
    with pytest.raises(KeyboardInterrupt):
        import_arrays(tmp_path / "a.npy", tmp_path / "out", fields="a")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


@pytest.fixture
def runs(tmp_path):
    """A folder of runs of one field that is carried along x, with coordinates."""
    t, x, y = np.arange(9) * 0.2, (np.arange(16) + 0.5) / 8, (np.arange(12) + 0.5) / 4
    (tmp_path / "runs").mkdir()
    for number in range(4):
        waves = np.sin(np.pi * (x[:, None] - t[:, None, None]) + number) * np.cos(y / (number + 1))
        np.savez(tmp_path / f"runs/run{number}.npz", u=waves, t=t, x=x, y=y)
    return tmp_path / "runs"


def test_a_dry_run_tells_and_draws_and_writes_nothing_else(overtone, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text = overtone("data", "import", runs, "--dry-run")
    assert code == 0, text
    rows = [line.split() for line in text.splitlines()]
    assert ["trajectories", "4", "4", "files"] in rows
    assert ["dt", "0.2", "coordinate", "'t'"] in rows
    assert ["extent", "x", "2", "coordinate", "'x'"] in rows
    assert re.search(r"boundaries +x periodic, y periodic +default; see --boundaries", text)
    assert "wrote runs-frames.png" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["runs", "runs-frames.png"]


def test_the_picture_is_that_of_the_dataset(overtone, runs, tmp_path):
    """What is drawn before an import is what `data show` draws after it."""
    out = tmp_path / "out"
    code, text = overtone("data", "import", runs, "--out", out, "--seed", -1, "--splits=1,0,0")
    assert code == 0, text
    assert f"wrote {out}; next: overtone data check {out}" in text
    overtone("data", "show", out, "--out", tmp_path / "show.png")
    before, after = (imread(tmp_path / name) for name in ("out-frames.png", "show.png"))
    assert before.shape == after.shape
    assert np.array_equal(before[50:], after[50:])  # below the title
    assert before[50:].std() > 0.1


def test_an_ambiguous_file_lists_what_to_type(overtone, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((60, 64, 64)))
    code, text = overtone("data", "import", tmp_path / "a.npy", "--out", tmp_path / "out")
    assert code == 2
    assert "  --layout txy: 1 trajectory of 60 frames on 64x64 cells" in text
    assert "  --layout ntx: 60 trajectories of 64 frames on 64 cells" in text
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_trajectories_with_nan_are_left_out_by_name(overtone, tmp_path):
    values = np.random.default_rng(0).standard_normal((6, 5, 8, 8)).cumsum(axis=1)
    values[4, 3, 2, 1] = np.nan
    np.save(tmp_path / "a.npy", values)
    line = ("data", "import", tmp_path / "a.npy", "--layout=ntxy", "--out", tmp_path / "out")
    code, text = overtone(*line)
    assert code == 2
    assert "is NaN or missing at step 3, field 'field', cell (2, 1)" in text
    assert "--drop-nan-trajectories" in text
    code, text = overtone(*line, "--drop-nan-trajectories")
    assert code == 0, text
    assert f"left out 1 trajectories with NaN: trajectory 4 of '{tmp_path / 'a.npy'}'" in text
    assert sum(x.num_trajectories for x in map(read, (tmp_path / "out").rglob("*.hdf5"))) == 5


def read(path):
    return Location(str(path)).layout()


def test_a_killed_import_goes_on(overtone, tmp_path):
    """With the kill that nobody can catch, in the middle of a file."""
    values = np.random.default_rng(0).standard_normal((6, 5, 8, 8)).cumsum(axis=1)
    np.save(tmp_path / "a.npy", values)
    line = ["data", "import", tmp_path / "a.npy", "--layout=ntxy", "--per-file=1", "--out"]
    program = [sys.executable, "-c", KILLED, *line, tmp_path / "out"]
    done = subprocess.run(list(map(str, program)), capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    assert not (tmp_path / "out").exists()
    (hidden,) = (p for p in tmp_path.iterdir() if p.name.startswith("."))
    complete = {p.name: p.stat().st_mtime_ns for p in hidden.rglob("[!.]*.hdf5")}
    assert len(complete) == 2
    code, text = overtone(*line, tmp_path / "out")
    assert code == 0, text
    kept = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out/data/train").iterdir()}
    assert kept.items() >= complete.items()
    assert overtone("data", "check", tmp_path / "out")[0] == 0
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"a.npy", "out", "out-frames.png"}


KILLED = """
import os, signal, sys
from overtone.data import writer
original, calls = writer.WellWriter.append, []
def append(self, frame):
    calls.append(frame)
    if len(calls) == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    original(self, frame)
writer.WellWriter.append = append
from overtone.cli.app import main
main()
"""
