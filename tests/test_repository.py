"""Rules of the repository, as tests: import direction, a light import, commands, the README."""

import ast
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import overtone as ot
from overtone.cli import app
from overtone.results import Results

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "overtone"

# Imports point one way: a module may import from its own layer's package and from layers above it.
LAYERS = [
    {"errors", "version", "cache", "progress", "atomic", "pretrained"},
    {"domain", "results"},
    {"grid", "samples", "diagnosis"},
    {"schedules"},
    {"ops", "acceptance"},
    {"tokenizers", "processors", "solvers", "metrics", "normalize", "storage", "theory"},
    {"model"},
    {"architecture", "data", "baselines", "refine"},
    {"emulator", "models", "rollout", "flops", "flexify"},
    {"info", "loading", "config", "theory_figure"},
    {"recipes"},
    {"train", "evaluate"},
    {"report", "diagnose"},
    {"diagnose_figure", "reproduce"},
    {"page"},
    {"demo", "cli_data", "cli_train", "cli_evaluate", "cli_diagnose", "cli_report"}
    | {"cli_reproduce", "cli_page"},
    {"cli"},
    {"__main__", "__init__"},
]


def unit(path):
    """The top-level name that a file belongs to."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported_units(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("overtone"):
            yield [*node.module.split("."), "__init__"][1]


def files():
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    for other in imported_units(path):
        assert other == unit(path) or rank[other] < rank[unit(path)], f"{path.name}: {other}"


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_overtone_is_light():
    show = "print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(run_python(f"import sys, overtone; {show}"))
    torch_alone = set(run_python(f"import sys, torch; {show}"))
    assert loaded - torch_alone - sys.stdlib_module_names == {"overtone"}
    assert "torch._dynamo" not in run_python("import sys, overtone; print(*sys.modules)")


def test_no_module_outside_train_imports_distributed():
    for path in files():
        assert unit(path) == "train" or "torch.distributed" not in path.read_text()


def test_public_names_exist_and_are_sorted():
    assert ot.__all__ == sorted(ot.__all__)
    assert all(hasattr(ot, name) for name in ot.__all__)


def test_the_list_of_commands():
    assert sorted(command.callback.__name__ for command in app.registered_commands) == [
        "demo",
        "diagnose",
        "evaluate",
        "info",
        "page",
        "report",
        "reproduce",
        "rollout",
        "theory",
        "train",
    ]


def test_every_module_has_a_test_file():
    untested = {"__init__", "__main__", "version", "errors"}
    tests = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    covered = {"attention": "transformer", "vit": "transformer", "axial": "transformer",
               "convolution": "tokenizers", "fixed": "tokenizers", "kernel": "tokenizers",
               "stride": "tokenizers", "base": "shear_flow", "cache": "cli", "info": "cli",
               "progress": "cli", "card": "package",
               "atomic": "writer", "handles": "well", "scan": "stats",
               "interstellar": "supernova_explosion", "cvit_parts": "cvit",
               "cvit_architecture": "cvit"}  # fmt: skip
    for path in files():
        if path.stem not in untested:
            assert f"test_{covered.get(path.stem, path.stem)}" in tests, path


def test_the_readme_example_is_the_example_file():
    """The README shows the lines of examples/first_rollout.py, which another test runs."""
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    example = (ROOT / "examples" / "first_rollout.py").read_text()
    assert block.strip() in example
    assert len(block.strip().splitlines()) <= 15


def test_links_in_the_docs_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def table_rows(page, first_cell):
    """Cells of the table whose header begins with a cell."""
    lines = (ROOT / page).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def results(name):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_the_demo_in_the_readme_is_that_measured():
    measured = Results.load(ROOT / "results" / "demo.json")
    assert measured.command == "overtone demo --steps 40 --flows 4 --seed 0"
    rows = [
        [model.name, f"`{run.schedule}`", f"{run.vrmse_10.value:.3f}", f"{run.vrmse_all.value:.3f}",
         *(f"{value:.1f}" for h in run.harmonics if h.patch == 16
           for value in (h.overall, h.seams[-1].value)),
         f"{run.tokens:,}", f"{run.seconds:.2f}"]
        for model in measured.models for run in model.runs
    ]  # fmt: skip
    assert table_rows("README.md", "model") == rows


def test_costs_of_the_solvers_in_the_docs_are_those_measured():
    lines = (ROOT / "docs/data/index.md").read_text()
    for run in results("solvers")["runs"]:
        cost = f"{run['cpu_seconds_per_trajectory']:.2f}"
        grid = "x".join(map(str, run["shape"]))
        cells = f"`{run['system']}` | {grid} | {run['frames']} | {run['batch']} | {cost} |"
        assert cells in lines


def test_speed_of_reading_in_the_docs_is_that_measured():
    rows = table_rows("docs/data/index.md", "files")
    measured = [
        [str(case["workers"]), f"{case['overtone']:.0f}", f"{case['the_well']:.0f}",
         f"{case['ratio']:.1f}"]
        for case in results("data")["cases"]
    ]  # fmt: skip
    assert [row[1:] for row in rows] == measured


def test_performance_in_the_readme_is_that_measured():
    measured = results("step")
    readme = (ROOT / "README.md").read_text()
    for run in measured["runs"]:
        if (run["processor"], run["tokenizer"], run["malloc"]) == ("vit", "csm", "default"):
            gigabytes, share = run["peak_memory_bytes"] / 1e9, 100 * run["share_of_peak"]
            assert f"{run['cpu_seconds']:.2f} s, {gigabytes:.2f} GB, {share:.0f} %" in readme
    for name, ratio in measured["reference_over_ours"].items():
        assert "returning" in name or f"{ratio:.2f} times" in readme


def test_results_name_no_folder_of_a_machine():
    for path in (ROOT / "results").glob("*.json"):
        assert not re.search(r"/(root|home|Users|tmp)/", path.read_text()), path


def test_commands_in_the_readme_exist():
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z-]+)", readme, flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
    names = {command.callback.__name__ for command in app.registered_commands} | {"data"}
    for command in re.findall(r"^overtone ([a-z]+)", readme, flags=re.M):
        assert command in names
