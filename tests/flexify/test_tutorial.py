"""The tutorial's code runs, block after block."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "flexify.md"


def test_the_code_of_the_tutorial_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    names = {"__name__": "tutorial"}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["y"].shape == (1, 2, 64, 64)
    assert capsys.readouterr().out.count("torch.Size([1, 2, 64, 64])") == 6
