import pytest
from matplotlib import image
from rich.console import Console

import overtone as ot
from overtone.data import FieldSpec, write_stats
from overtone.data.show import picture, tables


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


@pytest.mark.parametrize("shape", [(7,), (6, 8), (4, 5, 6)])
def test_pictures(make_folder, tmp_path, shape):
    folder, _ = make_folder(shape=shape, specs=(FieldSpec("a"), FieldSpec("u", 1)))
    path = picture(folder, tmp_path / "deep" / "frames.png", split="valid", trajectory=1)
    drawn = image.imread(path)
    assert min(drawn.shape[:2]) > 200
    assert drawn.std() > 0.05


def test_no_such_trajectory(make_folder, tmp_path):
    with pytest.raises(ot.DataError, match="has 0 to 3 in split 'train'"):
        picture(make_folder()[0], tmp_path / "a.png", trajectory=9)
