"""Every code block of the tutorials is run, in its page's order and in one folder, made small.

A block of Python is executed with the names of the blocks before it; each command of a block of
shell is given to `overtone`. What follows as text must be what was said. A block that can't be run
here says so, `<!-- not run: reason -->`, and is counted. How a page is made small, and what its
reader has already, stands in `SCENARIOS`.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import overtone as ot
from overtone.data import Header, write_well
from overtone.report import html
from overtone.solvers.datasets import build_system, generate
from tests.hub_stand_in import TOKEN

ROOT = Path(__file__).parents[2]
TUTORIALS = {page.stem: page for page in sorted((ROOT / "docs" / "tutorials").glob("*.md"))}
NOT_RUN = {
    "assess": 1, "export": 2, "first_steps": 1, "reproduce": 1, "train": 1, "view": 1
}  # fmt: skip
"""Blocks that are marked as such."""

TINY = ("model.width=16", "model.heads=2", "model.blocks=1", "model.mlp_dim=16", "valid.windows=2",
        "valid.rollouts=1", "train.batch=2", "train.threads=1", "data.workers=0",
        "log.tensorboard=false")  # fmt: skip
FEW = (*TINY, "train.updates=4", "valid.points=2")

LITTLE = {"data.generate.trajectories": 4, "data.generate.steps": 16, "data.generate.per_file": 2,
          "data.generate.splits": [0.5, 0.25, 0.25], "data.workers": 0,
          "train.updates_per_patch": 2, "train.batch": 2, "train.threads": 1, "valid.windows": 2,
          "valid.rollouts": 1, "valid.rollout_steps": 2, "log.tensorboard": False}  # fmt: skip
"""Settings of a study that takes seconds."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its text, its line, and why it is not run."""

    kind: str
    text: str
    line: int
    not_run: str


def blocks(page):
    text = page.read_text()
    fence = r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$"
    return [
        Block(
            kind=found["kind"],
            text=found["text"],
            line=text.count("\n", 0, found.start("text")),
            not_run=found["why"] or "",
        )
        for found in re.finditer(fence, text, flags=re.S | re.M)
    ]


def commands(text):
    """The commands of a block of shell, as words; comments and prompts are left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words[1:] if words[0] == "$" else words


def settled(words, *settings):
    """A training with settings of its own; what it would last is left out."""
    kept = " ".join(words)
    kept = re.sub(r" --minutes \S+", "", kept)
    return [*shlex.split(kept), *settings]


def smaller(words):
    """A command in the size of a test."""
    if words[:1] == ["train"] and words[1:2] != ["list"]:
        return settled(words, *FEW)
    if words[:1] == ["evaluate"]:
        return [*words, "--no-report", "--trajectories", "2"]
    if words[:1] == ["demo"]:
        return [*words, "--steps", "2", "--flows", "1"]
    return words


@dataclass(frozen=True)
class Scenario:
    """What a page's reader has, and how its code becomes small.

    Attributes:
        prepare: makes what lies in the folder, and returns names that the Python may use.
        command: a command's words, made small; without `overtone`.
        python: what to replace in the page's Python.
    """

    prepare: Callable[[], dict] = dict
    command: Callable[[list[str]], list[str]] = smaller
    python: dict[str, str] = field(default_factory=dict)


def flows(folder, frames, *, grid=(32, 32), trajectories=10, seed=0):
    system = build_system("shear_flow", grid=grid, reynolds=500.0)
    generate(system, folder, trajectories=trajectories, steps=frames, seed=seed)


def saved_run(name, **options):
    """What is left of a training as far as `evaluate` looks."""
    data = ot.data.WellFolder("data/shear_flow", "test", 4)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 4}
    ot.build("vit", domain=data.domain, **small, **options).save(f"runs/{name}/best")


def for_diagnose():
    random = np.random.default_rng(0)
    truth = random.normal(size=(2, 10, 3, 64, 64)).astype("float32")
    np.save("prediction.npy", truth + np.tile(random.normal(size=(16, 16)), (4, 4)) * 0.3)
    np.save("truth.npy", truth)
    return {}


def one_layout_each(words):
    """The page's arrays have the usual layout; a command that names another gets such files."""
    if "tyxc" in words:
        for name in ("prediction", "truth"):
            np.save(f"{name}.npy", np.load(f"{name}.npy")[0].transpose(0, 3, 2, 1))
    if "txy" in words:
        prediction, truth = (np.load(f"{name}.npy") for name in ("prediction", "truth"))
        np.save("prediction.npy", prediction[..., 0].transpose(0, 2, 1))
        np.save("truth.npy", truth.transpose(0, 3, 2, 1)[None, :, :1])
    return words


def for_evaluate():
    flows("data/shear_flow", 50, trajectories=10)
    for name in ("flow", "longer"):
        saved_run(name, patches=(4, 8, 16))
    saved_run("fixed_16", tokenizer="fixed", patches=16)
    return {}


def for_train():
    flows("flows", 20)
    domain = ot.data.WellFolder("flows", "train", 8).domain
    arrays = np.random.default_rng(0).normal(size=(10, 20, 4, 32, 32)).astype("float32")
    return {"domain": domain, "arrays": arrays.cumsum(axis=1)}


def small_model(folder, domain, **options):
    numbers = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2}
    ot.build("axial", domain=domain, **(numbers | options)).save(folder)


def for_export():
    domain = ot.Domain((32, 48), (1.0, 1.5), "periodic", ("a", "b"), 0.1)
    small_model("runs/mine", domain, patches=(8, 16))
    window = np.random.default_rng(0).normal(size=(1, 2, 2, 32, 48)).astype("float32")
    np.save("window.npy", window)
    return {"window": window}


def exporting(words):
    """Of a small model; machine code takes a minute, and has a test."""
    small = {"shear-flow-mini-csm": "runs/mine", "onnx,pt2,aoti": "onnx,pt2"}
    return [small.get(word, word) for word in words]


def for_plan():
    random = np.random.default_rng(0)
    values = random.standard_normal((4, 8, 16, 16), np.float32).cumsum(axis=1)
    header = Header("walk", (16, 16), (1.0, 1.0), "periodic", 0.1)
    for split in ("valid", "test"):
        write_well(f"walk/data/{split}/a.hdf5", {"u": values}, header)
    data = ot.data.WellFolder("walk", "test", 2)
    small_model("flex", data.domain, patches=(4, 8))
    return {"window": ot.data.collate([data[0]])[0]}


def planning(words):
    """The smallest search that there is, on a walk at random, for any error at all."""
    small = {"shear-flow-mini-csm": "flex", "DATA": "walk", "40": "3", "4624": "60", "0.1": "100"}
    words = [small.get(word, word) for word in smaller(words)]
    few = ("--trajectories", "3", "--starts", "1")
    return [*words, *few] if words[0] == "plan" else words


def for_share():
    small_model("runs/flow", ot.Domain((16, 16), (1.0, 1.0), "periodic", ("u",), 0.1))
    return {}


def for_view():
    flows("flows", 20, grid=(64, 64), trajectories=4)
    return {}


def recording(words):
    at = words.index("--export")
    return [*words[:at], "flows", "--steps", "2", "--schedule", "16", *words[at:]]


def training(words):
    words = ["flows" if word == "DATA" else word for word in smaller(words)]
    if words[:1] == ["evaluate"]:
        return [*words, "--steps", "4"]
    if words[:2] == ["train", "shear-flow-mini"]:
        own = ("data.path=flows", "data.coarsen=1", "valid.rollout_steps=4")
        return [*words, *own]
    return words


SCENARIOS = {
    "assess": Scenario(),
    "diagnose": Scenario(for_diagnose, one_layout_each),
    "evaluate": Scenario(for_evaluate),
    "export": Scenario(
        for_export,
        exporting,
        {
            "shear-flow-mini-csm": "runs/mine",
            "from rollout import Player": "import runpy\n\n"
            'Player = runpy.run_path("programs/rollout.py")["Player"]',
            "steps=40": "steps=3",
        },
    ),
    "first_steps": Scenario(),
    "flexify": Scenario(),
    "plan": Scenario(
        for_plan,
        planning,
        {
            "shear-flow-mini-csm": "flex",
            '"DATA", steps=40, tokens=4624, coarsen=2': '"walk", steps=3, tokens=60, starts=1',
            "steps=40": "steps=3",
        },
    ),
    "reproduce": Scenario(
        python={
            '{"train.updates_per_patch": 300}': repr(LITTLE),
            "shear-flow-mini": "kuramoto-sivashinsky-mini",
            "steps=40, start=16": "steps=4, start=2",
        }
    ),
    "share": Scenario(
        for_share,
        python={
            "@v1": "@main",
            'revision="v1"': 'revision="main"',
            '"acme/flow@1f0c5e8c0b3d4f6a9e2b7c8d5a4f3e2d1c0b9a87"': "pinned",
            '"682a13e0…"': "model.digest",
        },
    ),
    "train": Scenario(
        for_train, training, {"minutes=15": "minutes=0.003", "updates=2000": "updates=2"}
    ),
    "view": Scenario(for_view, recording),
    "your_own_data": Scenario(),
}
SLOW = {
    "assess", "evaluate", "export", "first_steps", "plan", "reproduce", "train", "view",
    "your_own_data",
}  # fmt: skip


def test_every_tutorial_has_a_scenario():
    missing = TUTORIALS.keys() - SCENARIOS.keys()
    assert not missing, f"no scenario says how {sorted(missing)} are run"
    assert not SCENARIOS.keys() - TUTORIALS.keys()


def test_every_block_is_run_or_says_why_not():
    for name, page in TUTORIALS.items():
        found = blocks(page)
        assert {block.kind for block in found} <= {"python", "bash", "text"}, name
        fences = len(found) + page.read_text().count("\n```{recording}")  # which the site runs
        assert page.read_text().count("\n```") == 2 * fences, f"{name}: an odd fence"
        assert sum(bool(block.not_run) for block in found) == NOT_RUN.get(name, 0), name
        assert page.read_text().count("<!-- not run") == NOT_RUN.get(name, 0), name


def require_extras(words):
    """Nothing is installed, but what is named must be there to be."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word in words:
        name, _, extras = word.rstrip("]").partition("[")
        assert name == project["name"], f"no test can install {word}"
        assert {*extras.split(",")} - {""} <= project["optional-dependencies"].keys()
    return ""


def run_command(words, overtone, command, code):
    if words[:3] == ["python", "-m", "studies"]:
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        return done.stdout
    if words[:2] == ["pip", "install"]:
        return require_extras(words[2:])
    if words[:3] == ["hf", "auth", "login"]:  # the stand-in's token is set
        return ""
    if words[:2] == ["python", "rollout.py"]:  # in the folder that was exported
        shutil.copy("window.npy", "programs")
        done = subprocess.run([sys.executable, *words[1:]], cwd="programs", capture_output=True)
        assert done.returncode == code, done.stderr
        return done.stdout.decode()
    assert words[0] == "overtone", f"no test can run {words}"
    got, said = overtone(*command(words[1:]))
    assert got == code, f"{shlex.join(words)}\n{said}"
    return said


def plain(text):
    """Lines without what depends on a terminal: rules, and how wide columns are."""
    return [" ".join(line.replace("─", " ").split()) for line in text.splitlines()]


def require_said(shown, said, where):
    """What a page shows is what was said; after `…` anything may follow."""
    heard = plain(said)
    for line in plain(shown):
        start = line.partition("…")[0].strip()
        assert any(start in other for other in heard), f"{where}: '{start}' not in\n{said}"


def run_page(name, overtone, capsys):
    """Run what a page shows; returns the blocks that were run, or compared with what was said."""
    scenario, ran = SCENARIOS[name], []
    names, said = {"__name__": "tutorial", **scenario.prepare()}, ""
    found = blocks(TUTORIALS[name])
    for block, after in zip(found, [*found[1:], None], strict=True):
        where = f"{name}.md:{block.line}"
        if block.not_run:
            said = ""
            continue
        if block.kind == "python":
            code = block.text
            for old, new in scenario.python.items():
                code = code.replace(old, new)
            exec(compile("\n" * block.line + code, where, "exec"), names)
            said = capsys.readouterr().out
        elif block.kind == "bash":
            fails = after is not None and after.kind == "text" and after.text.startswith("error:")
            expected = 2 if fails else 0
            said = "".join(
                run_command(words, overtone, scenario.command, expected)
                for words in commands(block.text)
            )
        elif said:
            require_said(block.text, said, where)
        else:
            continue
        ran.append(block)
    return ran


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in SCENARIOS]
)
@pytest.mark.timeout(1200)
def test_the_code_of_a_tutorial_runs(name, overtone, hub, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(html, "drawings", lambda *_: ())  # they take long, and have their tests
    shown = [b for b in blocks(TUTORIALS[name]) if b.kind != "text" and not b.not_run]
    ran = run_page(name, overtone, capsys)
    assert [block for block in ran if block.kind != "text"] == shown != []


def test_a_wrong_block_is_found(overtone, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text, error in (
        ("```bash\novertone theory 4-8-16 --stpes 3\n```\n", "stpes"),
        ("```bash\novertone theory 4-8-16 --steps 3\n```\n\n```text\nnonsense\n```\n", "nonsense"),
        ("```python\nassert False, 'ran'\n```\n", "ran"),
    ):
        page = tmp_path / "flexify.md"
        page.write_text(text)
        monkeypatch.setitem(TUTORIALS, "flexify", page)
        with pytest.raises(AssertionError, match=error):
            run_page("flexify", overtone, capsys)
