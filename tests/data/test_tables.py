"""The tables of `overtone data show`, on files of known values."""

from rich.console import Console

from overtone.cli.data import tables
from overtone.data import write_stats


def text_of(folder):
    console = Console(width=200)
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
    assert [line.split("│")[1:4] for line in text.splitlines() if "train" in line] == [
        [" train ", "     2 ", "            4 "]
    ]
    write_stats(folder)
    assert "stats.yaml" in text_of(folder)
    assert "(no splits)" in text_of(folder / "data/train")
