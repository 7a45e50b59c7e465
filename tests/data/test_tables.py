"""The tables of `overtone data show`, on files of known values."""

import h5py
from rich.console import Console

from overtone.cli.data import tables
from overtone.data import write_stats


def text_of(folder, width=200):
    console = Console(width=width)
    with console.capture() as capture:
        for table in tables(folder):
            console.print(table)
    return capture.get()


def test_the_tables_say_it_all(make_folder):
    folder, _ = make_folder(boundaries=("periodic", ("wall", "open")), parameters={"reynolds": 1e4})
    text = text_of(folder)
    for words in (
        "density (scalar), pressure (scalar), velocity (vector), D (tensor)",
        "6 x 8 (cartesian)",
        "x: periodic, y: wall below, open above",
        "reynolds: 10000",
        "none",
    ):
        assert words in text
    assert [line.split()[:3] for line in text.splitlines() if "train" in line] == [
        ["train", "2", "4"]
    ]
    write_stats(folder)
    assert "stats.yaml" in text_of(folder)
    assert "(no splits)" in text_of(folder / "data/train")


def test_forty_columns_are_enough(make_folder):
    text = text_of(make_folder()[0], width=40)
    assert "split: train\nfiles: 2\ntrajectories: 4\nframes each: " in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 40


def test_names_are_text(make_folder):
    folder, _ = make_folder(parameters={"[bold]x": 1.0})
    for path in folder.rglob("*.hdf5"):
        with h5py.File(path, "r+") as file:
            file.attrs["dataset_name"] = "[bold]\x1b[2J"
    text = text_of(folder)
    assert r"[bold]\x1b[2J" in text
    assert "[bold]x: 1" in text
    assert "\x1b" not in text
