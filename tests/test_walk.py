"""docs/walk.md says what happens: its hops are the calls on the stack when a model is asked."""

import ast
import re
import sys
import traceback
from pathlib import Path

import pytest

from overtone.data import WellFolder
from overtone.models.emulator import Emulator
from overtone.solvers.datasets import build_system, generate

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "overtone"
SMALL = ("model.width=16", "model.heads=2", "model.blocks=1", "model.mlp_dim=16", "train.updates=1",
         "train.batch=1", "valid.every=1", "valid.windows=1", "valid.rollouts=1",
         "valid.rollout_steps=1", "train.threads=1", "log.tensorboard=false",
         "data.workers=0")  # fmt: skip


def sections():
    """Title -> hops as (file, function)."""
    parts = (ROOT / "docs" / "walk.md").read_text().split("\n## ")[1:]
    return {
        part.partition("\n")[0]: re.findall(r"`([a-z_/]+\.py)` · `([A-Za-z_.]+)`", part)
        for part in parts
    }


def qualified_names(path):
    for node in ast.parse((PACKAGE / path).read_text()).body:
        yield getattr(node, "name", "")
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            yield f"{node.name}.{getattr(inner, 'name', '')}"


@pytest.mark.parametrize("title", sections())
def test_every_hop_exists(title):
    assert len(sections()[title]) >= 4
    for path, function in sections()[title]:
        assert function in set(qualified_names(path)), f"{path}: {function}"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = tmp_path_factory.mktemp("walk")
    return generate(system, folder, trajectories=3, steps=12, splits=(0.34, 0.33, 0.33))


@pytest.fixture
def stacks(monkeypatch):
    """What is on the stack whenever an emulator is asked: (file, function), outermost first."""
    seen, change = [], Emulator.change

    def noted(self, *arguments, **options):
        frames = [frame for frame, _ in traceback.walk_stack(sys._getframe())][::-1]
        inside = [f.f_code for f in frames if Path(f.f_code.co_filename).is_relative_to(PACKAGE)]
        hops = [(str(Path(code.co_filename).relative_to(PACKAGE)),
                 code.co_qualname.partition(".<locals>")[0]) for code in inside
                if "comp>" not in code.co_qualname]  # fmt: skip
        seen.append(list(dict.fromkeys(hops)))
        return change(self, *arguments, **options)

    monkeypatch.setattr(Emulator, "change", noted)
    return seen


def walked(stack, first, last):
    """The hops from one to another."""
    return stack[stack.index(first) : stack.index(last) + 1]


def test_from_the_train_command_to_the_emulator(overtone, stacks, data, tmp_path):
    settings = (*SMALL, f"data.path={data}")
    assert overtone("train", "kuramoto-sivashinsky-mini", *settings, "--out", tmp_path)[0] == 0
    title = "`overtone train shear-flow-mini`, down to the emulator"
    *hops, (file, change) = sections()[title]
    assert (file, change) == ("models/emulator.py", "Emulator.change")
    stack = next(stack for stack in stacks if ("train/loop.py", "Trainer._backward") in stack)
    assert walked(stack, ("cli/train.py", "train"), stack[-1]) == hops
    assert len(hops) <= 8  # and one more to the emulator


def test_from_the_evaluate_command_to_the_emulator(overtone, stacks, data, tmp_path, make_model):
    domain = WellFolder(data, "test").domain
    make_model(domain, patches=(4, 8)).save(tmp_path / "model")
    options = ("--steps", 2, "--windows", 1, "--no-report", "--out", tmp_path / "out")
    assert overtone("evaluate", tmp_path / "model", data, *options)[0] == 0
    hops = sections()["`overtone evaluate MODEL DATA`, down to the emulator"]
    stack = next(stack for stack in stacks if ("evaluate/rollouts.py", "roll_out") in stack)
    assert walked(stack, hops[0], hops[-1]) == hops
    assert len(hops) - 1 <= 6
