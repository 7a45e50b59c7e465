"""Results of studies, made by the report's own builders."""

import importlib.util
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from overtone.evaluate.candidates import used_patches
from overtone.evaluate.results import Data, Results
from overtone.schedules import parse_schedule
from studies.archive import Archive
from studies.page.blocks import find_blocks
from studies.page.render import render_page
from studies.page.sources import Source, study_of

_FILE = Path(__file__).parents[2] / "report" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("report_builders", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
builders = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(builders)

SCHEDULES = ("16", "16+shift", "4-8-16", "4-8-16+shift", "4")
TRAINING = {
    "recipe": "shear-flow-mini", "updates": 300, "minutes": 1.658, "cpu_minutes": 1.5,
    "flops": 3.07e12,
    "validation": {"vrmse": {"4": 0.03, "8": 0.05}, "rollout": 0.155},
}  # fmt: skip


def trained(name, seed=0, schedules=SCHEDULES, *, patches=(4, 8, 16), factor=1.0, **options):
    """A model that knows some patches, with a training behind it."""
    made = builders.model(name, seed, schedules, factor=factor, **options)
    steps = tuple(
        step.model_copy(update={"vrmse": builders.estimate(factor * step.vrmse.value)})
        for step in made.next_step
        if step.patch in patches
    )
    return made.model_copy(
        update={
            "next_step": steps,
            "training": {**TRAINING, "seed": seed},
            "config": {"kind": "emulator"},
        }
    )


def unpatched(name="unet", *, factor=1.0):
    made = builders.model(name, 0, ("1",), factor=factor)
    step = made.next_step[0].model_copy(update={"patch": 1})
    config = {"kind": "baseline", "name": name}
    return made.model_copy(
        update={"next_step": (step,), "config": config, "training": {**TRAINING, "seed": 0}}
    )


def comparison(models, *, steps=12):
    """Results with five digits, as files have them."""
    data = Data(
        name="shear_flow", split="test", fingerprint="0123456789abcdef" * 4, trajectories=12,
        start=16, domain=builders.domain(2).to_dict(),
    )  # fmt: skip
    machine = {"overtone": "0.1.0", "torch": "2.13.0", "processor": "one core", "threads": "1"}
    made = Results(
        command="make reproduce STUDY=shear-flow-mini", seed=0, machine=machine, data=data,
        steps=steps, models=tuple(models),
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        made.save(path, compact=True)
        return Results.load(path)


def main_models(**options):
    return [
        trained("csm", factor=0.5, **options),
        trained("fixed4", schedules=("4",), patches=(4,), **options),
        trained("fixed8", schedules=("8",), patches=(8,), **options),
        trained("fixed16", schedules=("16", "16+shift"), patches=(16,), **options),
    ]


def planned(study, plan):
    """Results as a study's comparison will have them: its models, and what each can follow."""
    models = []
    for training in (t for t in study.trainings if t.name in plan.models):
        config = training.config()
        if config.model.is_baseline:
            models.append(unpatched(training.label))
            continue
        patches = config.model.patches
        own = [s for s in plan.schedules if set(used_patches(parse_schedule(s), 12)) <= {*patches}]
        models.append(trained(training.label, config.train.seed, own, patches=patches))
    models += [unpatched(extra.label) for extra in plan.untrained]
    return comparison([with_density(model) for model in models])


def with_density(model):
    """The same with spectra of a field that a gas has, which the page shows of some."""

    def more(spectra):
        return tuple(s.model_copy(update={"field": "density"}) for s in spectra if s.axis == 1)

    runs = (r.model_copy(update={"axis_spectra": (*r.axis_spectra, *more(r.axis_spectra))})
            for r in model.runs)  # fmt: skip
    return model.model_copy(update={"runs": tuple(runs)})


def plans(study, results):
    """Plans that a study's comparisons may have followed: what they were given the tokens of."""
    found = {}
    for plan in (c for c in study.comparisons if c.planned):
        runs = results[plan.name].models[0].runs
        (own,) = [run for run in runs if run.schedule == plan.planned]
        found[plan.name] = {
            "schedule": plan.planned,
            "limits": {"tokens": own.tokens},
            "error": own.vrmse_all.model_dump(),
        }
    return found


@pytest.fixture(scope="session")
def make_planned():
    return planned


@pytest.fixture(scope="session")
def make_plans():
    return plans


@pytest.fixture(scope="session")
def make_trained():
    return trained


@pytest.fixture(scope="session")
def make_unpatched():
    return unpatched


@pytest.fixture(scope="session")
def make_comparison():
    """Results of given models, or of one flexible and three fixed ones."""

    def make(models=None, **options):
        return comparison(main_models(**options) if models is None else models, **options)

    return make


@pytest.fixture(scope="session")
def make_source(make_comparison):
    def make(models=None, name="shear-flow-mini", **options):
        return Source(name, make_comparison(models, **options))

    return make


def store(folder, **results):
    """Put results by name into the files of their studies."""
    for name, content in results.items():
        comparison = name.replace("_", "-")
        path = folder / f"{study_of(comparison)}.json"
        known = Archive.load(path).comparisons if path.exists() else {}
        Archive({**known, comparison: content}).save(path)


@pytest.fixture(scope="session")
def store_results():
    return store


@pytest.fixture
def render(tmp_path):
    """What a mark renders to, given results by name."""

    def rendered(said, what="table", **results):
        store(tmp_path, **results)
        page = render_page(f"<!-- {what}: {said} --><!-- end -->", tmp_path)
        (block,) = find_blocks(page.text)
        return page.text[block.start : block.end].strip()

    return rendered


@pytest.fixture(scope="session")
def cells():
    """A Markdown table as a list of rows, the header first; without bold."""

    def read(text, *, bold=False):
        lines = [line for line in text.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
        assert set("".join(rows[1])) <= set("-:")
        assert len({len(row) for row in rows}) == 1
        kept = [rows[0], *rows[2:]]
        return kept if bold else [[cell.replace("**", "") for cell in row] for row in kept]

    return read


@pytest.fixture(scope="session")
def as_json():
    """Results as their file has them."""
    return lambda results: json.loads(results.model_dump_json())
