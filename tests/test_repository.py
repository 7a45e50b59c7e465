"""Rules of the repository, as tests: import direction, a light import, commands, the README."""

import ast
import itertools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import typer

import overtone as ot
from overtone.cli.app import app
from overtone.evaluate.results import Results

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "overtone"
STUDIES = ROOT / "studies"

# The layers of docs/architecture.md, lowest first: imports point down, or sideways in no circle.
LAYERS = [
    {"errors", "files", "guard", "version", "progress", "hub"},
    {"domain", "grid", "schedules", "normalize", "ops", "theory"},
    {"models", "solvers", "data", "metrics"},
    {"flexify", "baselines"},
    {"rollout"},
    {"train", "evaluate", "assess", "export"},
    {"report", "viewer"},
    {"cli"},
    {"studies"},
]
FACE = {"__init__", "__main__"}  # the package's own: what it exports, and `python -m overtone`


def unit(path):
    """The room that a file belongs to: a package, or a flat module."""
    if path.is_relative_to(STUDIES):
        return "studies"
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported_units(path):
    """Rooms that a file imports, at its top or within a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            top, _, rest = name.partition(".")
            if top == "studies":
                yield "studies"
            elif top == "overtone":
                yield rest.partition(".")[0] or "__init__"


def files():
    return sorted(PACKAGE.rglob("*.py"))


def graph():
    """Room -> rooms that its files import."""
    found = {name: set() for layer in LAYERS for name in layer}
    for path in (*files(), *STUDIES.rglob("*.py")):
        if unit(path) not in FACE:
            found[unit(path)] |= {*imported_units(path)} - {unit(path)}
    return found


def test_imports_point_one_way():
    rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    assert len(LAYERS) <= 9
    for room, others in graph().items():
        above = {other for other in others if rank[other] > rank[room]}
        assert not above, f"{room} imports {above}"
    TopologicalSorter(graph()).prepare()  # raises if rooms import each other in a circle


def test_the_layers_are_those_of_the_picture():
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = re.search(r"```layers\n(.*?)```", page, flags=re.S).group(1)
    drawn = [set(re.findall(r"[a-z_]+", line.partition("|")[0])) for line in picture.splitlines()]
    assert drawn == LAYERS[::-1]


def test_the_house_keeps_its_size():
    flat = sorted(path.stem for path in PACKAGE.glob("*.py"))
    assert len(flat) <= 10, flat
    # One concept each; an `__init__` says what a room is.
    assert len([path for path in files() if path.stem != "__init__"]) <= 225


LINES = 450


def test_no_file_is_too_long_to_be_read_at_once():
    rooms = ("src", "studies", "tests", "benchmarks", "docs/builder", ".ci", "examples")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    lines = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in paths}
    assert len(lines) > 500
    assert not {name: count for name, count in lines.items() if count > LINES}


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_overtone_is_light():
    show = "print(*sys.modules)"
    torch_alone, modules = (
        run_python(f"import sys, {name}; {show}") for name in ("torch", "overtone")
    )
    loaded, known = ({name.partition(".")[0] for name in found} for found in (modules, torch_alone))
    assert loaded - known - sys.stdlib_module_names == {"overtone"}
    assert "torch._dynamo" not in modules
    assert len([name for name in modules if name.partition(".")[0] == "overtone"]) <= 54


def test_the_command_line_loads_nothing_that_few_commands_need():
    modules = run_python("import sys, overtone.cli; print(*sys.modules)")
    assert not {"h5py", "matplotlib", "studies"} & {*modules}


def test_a_room_never_hides_the_function_of_its_name():
    """Python binds a package to its name in its parent once it is loaded."""
    rooms = ("assess", "evaluate", "export")
    code = "import overtone as ot\n"
    for room in rooms:
        code += f"import overtone.{room}\nprint(type(ot.{room}).__name__)\n"
        code += f"from overtone import {room}\nprint({room}.__name__)\n"
    assert run_python(code) == [word for room in rooms for word in ("function", room)]


def test_no_module_outside_train_imports_distributed():
    for path in files():
        assert unit(path) == "train" or "torch.distributed" not in path.read_text()


def test_public_names_exist_and_are_sorted():
    assert ot.__all__ == sorted(ot.__all__)
    assert all(hasattr(ot, name) for name in ot.__all__)


def test_the_list_of_commands():
    assert sorted(command.callback.__name__ for command in app.registered_commands) == [
        "calibrate",
        "demo",
        "diagnose",
        "evaluate",
        "export",
        "info",
        "plan",
        "push",
        "report",
        "rollout",
        "theory",
        "train",
        "view",
    ]


# Modules whose tests are those of another: what they do shows there.
COVERED = {
    "models/processors/attention": "models/processors/test_transformer",
    "models/cvit/parts": "models/cvit/test_model",
    "models/cvit/architecture": "models/cvit/test_model",
    "studies/card": "studies/test_package",
    "solvers/base": "solvers/test_shear_flow",
    "solvers/interstellar": "solvers/test_supernova_explosion",
    "evaluate/spectra": "evaluate/test_tally",
    "evaluate/survey": "evaluate/test_diagnose",
    "data/facts": "data/test_origins",
    "data/source": "data/test_origins",
    "data/trajectories": "data/test_origins",
    "rollout/steering": "rollout/test_controllers",
    "studies/candidates": "studies/test_assess",
    "studies/page/assess_pictures": "studies/test_assess",
    "studies/page/assess_rows": "studies/page/test_assess_equal",
    "studies/page/assess_tables": "studies/test_assess",
    "studies/page/assess_values": "studies/test_assess",
    "cli/app": "cli/test_cli",
    "version": "cli/test_cli",
}
UNTESTED = {"__main__", "errors"}


@pytest.mark.parametrize(
    "path", [*files(), *sorted(STUDIES.rglob("*.py"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_module_has_its_test_file(path):
    """That of src/overtone/a/b.py is tests/a/test_b.py, of studies/a.py tests/studies/test_a.py."""
    if path.stem == "__init__" or path == STUDIES / "__main__.py":
        return
    own = path.relative_to(ROOT if path.is_relative_to(STUDIES) else PACKAGE).with_suffix("")
    if str(own) in UNTESTED:
        return
    name = COVERED.get(str(own), str(own.parent / f"test_{own.name}"))
    assert (ROOT / "tests" / f"{name}.py").is_file(), f"{own} has no tests/{name}.py"


def test_the_readme_example_is_the_example_file():
    """The README shows the lines of examples/first_rollout.py, which another test runs."""
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    example = (ROOT / "examples" / "first_rollout.py").read_text()
    assert block.strip() in example
    assert len(block.strip().splitlines()) <= 10


def test_faults_name_tests_that_exist():
    page = (ROOT / "docs" / "faults.md").read_text()
    named = re.findall(r"`(tests/[^`]+?\.py)::(\w+)`( \(slow\))?", page)
    assert len(named) > 80
    assert len(named) == page.count("::test_")
    for file, name, _ in named:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"


def test_how_much_is_tried_is_what_was_counted():
    found = results("faults")
    kills, fuzz = (cells[1] for cells in table_rows("docs/faults.md", "check")[:2])
    assert all(f"{count:,}" in kills for count in found["killed"].values())
    assert f"{len(found['fuzzed'])} tests of {max(found['fuzzed'].values()):,}" in fuzz


def table_rows(page, first_cell):
    """Cells of the table whose header begins with a cell."""
    lines = (ROOT / page).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def results(name):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def test_the_demo_in_the_docs_is_that_measured():
    measured = Results.load(ROOT / "results" / "demo.json")
    assert measured.command == "overtone demo --steps 40 --flows 4 --seed 0"
    rows = [
        [model.name, f"`{run.schedule}`", f"{run.vrmse_10.value:.3f}", f"{run.vrmse_all.value:.3f}",
         *(f"{value:.1f}" for h in run.harmonics if h.patch == 16
           for value in (h.overall, run.seams[-1].value, h.worst_seams[-1].value)),
         f"{run.tokens:,}", f"{run.seconds:.2f}"]
        for model in measured.models for run in model.runs
    ]  # fmt: skip
    assert table_rows("docs/demo.md", "model") == rows


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


def test_performance_in_the_docs_is_that_measured():
    page = (ROOT / "docs" / "performance.md").read_text()
    for run in results("step")["runs"]:
        if (run["processor"], run["tokenizer"], run["malloc"]) == ("vit", "csm", "default"):
            gigabytes, share = run["peak_memory_bytes"] / 1e9, 100 * run["share_of_peak"]
            assert f"{run['cpu_seconds']:.2f} s, {gigabytes:.2f} GB, {share:.0f} %" in page


def test_results_name_no_folder_of_a_machine():
    for path in (ROOT / "results").glob("*.json"):
        assert not re.search(r"/(root|home|Users|tmp)/", path.read_text()), path


def commands_in(page):
    """The `overtone` and `make` commands of a page, in its code blocks and within its lines."""
    fence = re.compile(r"^ *```(\w*)\n(.*?)^ *```", flags=re.M | re.S)
    blocks = [block for kind, block in fence.findall(page) if kind != "python"]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    lines += re.findall(r"`([^`]+)`", fence.sub("", page))
    for line in lines:
        for part in re.split(r"\s(?:&&|\||;)\s", re.sub(r"(^|\s)#.*", "", line)):
            # Before a command: a prompt, variables of the environment, the way to the program.
            program = r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/|python -m )?(overtone|make)(\s.*)?"
            if found := re.fullmatch(program, part.strip(), flags=re.S):
                yield [found[1], *(word for word in shlex.split(found[2] or "") if word != "…")]


def mistakes(command):
    """What is wrong with a command, in words: a name, an option, an argument or a target."""
    program, *words = command
    if program == "make":
        makefile = (ROOT / "Makefile").read_text()
        for word in words:
            name, equals, _ = word.partition("=")
            known = rf"\$\({re.escape(name)}\)" if equals else rf"^{re.escape(name)}:"
            if not word.startswith("-") and not re.search(known, makefile, flags=re.M):
                yield f"make has no {'variable' if equals else 'target'} '{name}'"
        return
    place = typer.main.get_command(app)
    while hasattr(place, "commands"):
        options = {option for param in place.params for option in param.opts} | {"--help"}
        while words and words[0].startswith("-"):
            if words[0] not in options:
                yield f"'{program}' has no option '{words[0]}'"
            del words[0]
        if not words:
            return
        if words[0] not in place.commands:
            yield f"'{program}' has no command '{words[0]}'"
            return
        program, place = f"{program} {words[0]}", place.commands[words.pop(0)]
    context = place.context_class(place, info_name=program)
    try:
        _, left, _ = place.make_parser(context).parse_args([w for w in words if w != "--help"])
    except Exception as error:  # click's, which typer may bring along under a name of its own
        yield f"'{program}': {error}"
    else:
        yield from (f"'{program}' takes no further '{word}'" for word in left)


def test_commands_in_the_readme_exist():
    readme, contributing = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
    assert {command[0] for command in commands_in(readme.read_text())} == {"overtone", "make"}
    for page in (readme, contributing, *(ROOT / "docs").rglob("*.md")):
        found = [mistake for c in commands_in(page.read_text()) for mistake in mistakes(c)]
        assert not found, f"{page.name}: {found}"


PAGE = """
Inline: `overtone train shear-flow-mini --resume`, `make test`, `overtone data generate shear_flow
--out flows`, and `overtone.train`, which is a module.

```bash
# overtone nonsense, in a comment
$ OMP_NUM_THREADS=2 overtone evaluate RUN DATA \\
    --out results  # overtone nonsense
make reproduce STUDY=shear-flow-mini && .venv/bin/overtone theory 4-8-16
```

```python
overtone = "nonsense"
```
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("overtone train", "overtone trian", "'overtone' has no command 'trian'"),
        ("data generate", "data genrate", "'overtone data' has no command 'genrate'"),
        ("--resume", "--resmue", "'overtone train'.*--resmue"),
        ("--out results", "--uot results", "'overtone evaluate'.*--uot"),
        ("--out flows", "--out", "'overtone data generate'.*--out"),
        ("overtone theory", "overtone --depug theory", "'overtone' has no option '--depug'"),
        ("theory 4-8-16", "theory 4 8 16", "'overtone theory' takes no further '8'"),
        ("make test", "make tets", "make has no target 'tets'"),
        ("STUDY=", "STUDIES=", "make has no variable 'STUDIES'"),
    ],
)
def test_a_wrong_command_in_a_page_is_found(right, wrong, said):
    def found(page):
        return [mistake for command in commands_in(page) for mistake in mistakes(command)]

    assert len(list(commands_in(PAGE))) == 6
    assert not found(PAGE)
    assert PAGE.count(right) == 1
    assert re.search(said, found(PAGE.replace(right, wrong))[0])


def test_modules_of_public_names_are_type_checked_strictly():
    strict = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]["strict"]
    for name in {*ot.__all__} - {"__version__"}:
        thing = getattr(ot, name)
        module = getattr(thing, "__module__", None) or thing.__name__
        path = f"src/{module.replace('.', '/')}"
        assert {f"{path}.py", f"{path}/__init__.py"} & {*strict}, f"{name} is from {module}"
    for path in strict:
        assert (ROOT / path).is_file()
