"""The study on a tiny system and an untrained model: all of it runs, and pages show it."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import overtone as ot
from overtone.errors import ConfigError, PatchError
from overtone.metrics import vrmse
from overtone.models import calibration
from overtone.rollout import Made, Task
from overtone.solvers.datasets import build_system, generate
from overtone.train.config import DataConfig, GenerateConfig
from overtone.train.run import data_folder
from studies import assess, candidates, control
from studies.page import assess_pictures, assess_tables, assess_values
from studies.page.blocks import PageError


@pytest.fixture(scope="module")
def measured(tmp_path_factory, make_model):
    """Numbers of two models of Kuramoto and Sivashinsky, as if they were a study's."""
    folder = tmp_path_factory.mktemp("assess")
    variants = [build_system("kuramoto_sivashinsky", grid=(64,), viscosity=viscosity)
                for viscosity in (1.0, 1.3)]  # fmt: skip
    data = generate(variants[0], folder / "data", trajectories=6, steps=16, splits=(0.4, 0.3, 0.3))
    mixed = generate(variants, folder / "mixed", trajectories=1, steps=16, splits=(0, 0, 1))
    domain = ot.data.WellFolder(data, "test").domain
    system = assess.System(0, "viscosity", (1.3,))
    found = []
    for seed in range(2):
        model = make_model(domain, patches=(4, 8, 16), context=3)
        size = replace(assess.QUICK, windows=19)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(assess, "CONTEXT", 3)
            made = SimpleNamespace(data=SimpleNamespace(stride=1, coarsen=1))
            patch.setattr(assess, "recipe", lambda name, made=made: made)
            patch.setattr(assess, "plan", planned)
            bench = assess.Bench(model, "ks", system, size, data, mixed, lambda _: None)
            found.append({"model": "ks", "seed": seed, **bench.measure({"8": "8"})})
    # Untrained models err alike, and tolerances of three digits may be the same: let them differ.
    for rows in found[1]["control"].values():
        for name, row in rows.items():
            if name[-1] in "123" and row["rule"].startswith(control.KINDS):
                row["rule"] = row["rule"].replace("+shift", "1+shift")
    return found


def planned(candidate, data, **asked):
    """In place of a search, which tests/assess are about: what the study asks for, and a plan."""
    assert asked["split"] == "valid"
    assert asked["tokens"] == 16 + 8 + 4 + 16  # of the cycle, over four steps
    assert candidate.model.patches == (4, 8, 16)
    return SimpleNamespace(schedule="warmup:4:16+shift", error=SimpleNamespace(value=0.1))


def test_everything_is_measured(measured):
    for found in measured:
        sets = {"test", "other parameters", "noise 0.02", "noise 0.1"}
        assert set(found["instrument"]) == sets
        within = found["instrument"]["test"]["patch, within"]
        assert within["steps"] == 2
        assert set(within["coverage"]) == {"0.5", "0.9"}
        assert math.isfinite(within["maps"])
        assert set(found["detection"]) == sets - {"test"}
        assert set(found["control"]) == {"test", "mixed"}
        rules = found["control"]["test"]
        own = [rule for rule in rules if rule.startswith("sparing")]
        assert len(own) == len(control.SHARES) + 1
        assert rules["sparing auto"]["rule"] == "sparing+shift"
        assert rules["plan"]["tokens"] == 16 + 3 * 4
        # Beyond what was calibrated is of the test split alone.
        assert {len(kinds) for kinds in found["instrument"].values()} == {2, 4}
        assert len(found["instrument"]["test"]) == 4
        assert rules["adaptive 1"]["rule"].startswith("adaptive:")
        assert "8" in rules
        for rule, row in rules.items():
            assert row["tokens"] == pytest.approx(sum(row["tokens_by_step"])), rule
            assert row["worst"] >= row["error"]
        # 4, 8 and 16 tokens of 64 cells, over four steps.
        assert rules["4+shift"]["tokens"] == 4 * 16
        assert found["example"]["mixed"]["rule"].startswith("adaptive")
        for row in rules.values():  # who knows all errors does at least as well as who doesn't
            if row["rule"].startswith(control.KINDS) and math.isfinite(row["open_loop"]):
                assert row["perfect"] <= row["open_loop"] + 1e-9
                assert row["constant"] >= row["open_loop"] - 1e-9


def test_pages_and_the_picture_show_it(measured, tmp_path):
    assert "not run yet" in assess_tables.render("assess-control", (), tmp_path)
    content = assess._save(tmp_path / "assess.json", "systems", "shear-flow-mini", measured)
    assert json.loads((tmp_path / "assess.json").read_text())["systems"].keys() == {
        "shear-flow-mini"
    }
    assert content["systems"]["shear-flow-mini"] == measured
    assert "not run yet" in assess_tables.render("assess-tried", (), tmp_path)
    rows = measured[0]["control"]["test"]
    assess._save(tmp_path / "assess.json", "tried", "shear-flow-mini", rows)
    assert "| shear-flow | tried | `4+shift` |" in assess_tables.render(
        "assess-tried", (), tmp_path
    )
    table = assess_tables.render("assess-control", (), tmp_path)
    assert "| shear-flow | test | sparing 1 (each seed's own) |" in table
    assess._save(tmp_path / "assess.json", "signals", "shear-flow-mini", {"disagreement": 0.5})
    for kind in {*assess_tables.KINDS} - {"assess-tried", "assess-candidates"}:
        text = assess_tables.render(kind, (), tmp_path)
        whole = ("assess-detection", "assess-signals")
        assert "| shear-flow | test |" in text or kind in whole
        assert "nan" not in text
        assert max(line.count(" | ") for line in text.splitlines()) < 10, kind
    with pytest.raises(ot.OvertoneError, match="has no system 'x'"):
        assess_tables.render("assess-control", ("x",), tmp_path)
    figure = assess_pictures.band(tmp_path)
    assert {line.get_gid() for line in figure.axes[0].lines} >= {"truth", "estimate"}
    # Of both seeds the one that tells more, and how many others are like it.
    example = max((m["example"]["test"] for m in measured), key=assess_pictures._telling)
    kept = f"of {example['rollouts']} rollouts {example['held']} stay in their 90 % band"
    note = figure.axes[1].get_title()
    assert note == (kept if example["inside"] else f"{kept}; not this one")
    assert figure.axes[0].get_title() == f"shear-flow, {example['rule']}"
    lines = {line.get_gid(): line for line in assess_pictures.curves(tmp_path).axes[0].lines}
    found = [model["detection"]["noise 0.1"]["found"] for model in measured]
    mean = [sum(pair) / 2 for pair in zip(*found, strict=True)]
    assert list(lines["noise 0.1"].get_ydata()) == pytest.approx(mean, abs=1e-3)


def test_seeds_are_averaged_and_their_range_is_shown(measured, tmp_path):
    """Controllers have a tolerance of their own in each seed, and one row."""
    assess._save(tmp_path / "assess.json", "systems", "shear-flow-mini", measured)
    table = assess_tables.render("assess-control", (), tmp_path)
    assert "| test | plan: `warmup:4:16+shift` |" in table
    assert table.endswith("Means of 2 seeds.")
    (row,) = [line for line in table.splitlines() if "| test | adaptive 2 " in line]
    errors = [model["control"]["test"]["adaptive 2"]["error"] for model in measured]
    shown = f"{sum(errors) / 2:.3f} ({min(errors):.3f} to {max(errors):.3f})"
    assert row.split("|")[6].strip() == shown


@pytest.fixture
def tiny(make_model, tmp_path, monkeypatch):
    """A system that takes seconds, and two seeds of a model of it in folders."""
    generated = GenerateConfig(
        system="kuramoto_sivashinsky", grid=(64,), settings={"viscosity": 1.0},
        trajectories=6, steps=16, splits=(0.2, 0.4, 0.4),
    )  # fmt: skip
    data = DataConfig(generate=generated)
    monkeypatch.setattr(assess, "CONTEXT", 3)
    monkeypatch.setattr(assess, "SYSTEMS", {"ks-mini": assess.System(0, "viscosity", (1.3,))})
    monkeypatch.setattr(assess, "recipe", lambda name: SimpleNamespace(data=data))
    folder = data_folder(data)
    domain = ot.data.WellFolder(folder, "test").domain
    paths = [tmp_path / "run", tmp_path / "run-seed1"]
    for seed, path in enumerate(paths):
        torch.manual_seed(seed)
        make_model(domain, patches=(8, 16), context=3).save(path)
        found = ot.plan(ot.load(path), folder, steps=4, tokens=24, starts=1)
        found.save(path.with_suffix(".json"))
    return [str(path) for path in paths], [f"plan:{path.with_suffix('.json')}" for path in paths]


def test_several_seeds_with_a_plan_for_each(tiny, tmp_path):
    """All of it, as `python -m studies assess SYSTEM --model … --schedule plan:…` runs it."""
    models, plans = tiny
    content = assess.run("ks-mini", models, tmp_path, size=assess.QUICK, tell=lambda _: None,
                         schedules=[*plans, "16"])  # fmt: skip
    found = content["systems"]["ks-mini"]
    assert [own["model"] for own in found] == ["run", "run-seed1"]
    for own, text in zip(found, plans, strict=True):
        rules = own["control"]["test"]
        assert rules[f"{control.GIVEN} 1"]["rule"] == str(ot.parse_schedule(text))
        assert f"{control.GIVEN} 2" not in rules
        assert rules["plan"]["tokens"] <= own["plan"]["tokens"]
        assert "16" in rules
    for kind in {*assess_tables.KINDS} - {*assess_tables.PARTS}:
        assert "| ks |" in assess_tables.render(kind, (), tmp_path)
    with pytest.raises(PatchError, match="was made for another model"):
        assess.run("ks-mini", models[:1], tmp_path, schedules=plans[1:])


def test_other_parameters_are_those_that_training_never_saw(measured, tmp_path, make_model):
    """Whatever the order of the files: here the parameter of the training comes second."""
    variants = [build_system("kuramoto_sivashinsky", grid=(64,), viscosity=viscosity)
                for viscosity in (1.3, 0.7)]  # fmt: skip
    mixed = generate(variants, tmp_path / "mixed", trajectories=2, steps=16, splits=(0, 0, 1))
    model = make_model(ot.data.WellFolder(mixed, "test").domain, patches=(4, 8), context=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assess, "CONTEXT", 3)
        made = SimpleNamespace(data=SimpleNamespace(stride=1, coarsen=1))
        patch.setattr(assess, "recipe", lambda name: made)
        size = replace(assess.QUICK, trajectories=None)
        for others, rows in (((1.3,), [2, 3]), ((0.7,), [0, 1])):
            system = assess.System(0, "viscosity", others)
            bench = assess.Bench(model, "ks", system, size, mixed, mixed, lambda _: None)
            _, values = bench._read(mixed, "test", 0)
            assert bench._unseen(values) == rows


def test_what_a_second_rollout_tells_is_what_a_rollout_would_tell(make_model, make_window):
    """The study makes one rollout for both comparisons."""
    model = make_model(patches=(4, 8))
    window = make_window(model.domain, batch=2)
    truth = torch.stack([*ot.rollout(model, window, steps=3, schedule=4)], dim=1)
    bench = object.__new__(assess.Bench)
    bench.model, bench.size, bench.cycle, bench.second = model, assess.QUICK, "4-8+shift", "8+shift"
    errors, told, alike = bench._fly(window, truth)
    for against, own in told.items():
        frames = ot.rollout(model, window, steps=3, schedule="4-8+shift", estimate=against)
        for step, frame in enumerate(frames):
            torch.testing.assert_close(own[step].value, frames.estimate.value)
            torch.testing.assert_close(own[step].map, frames.estimate.map)
            error = vrmse(frame, truth[:, step], ndim=model.domain.ndim).mean(dim=1)
            torch.testing.assert_close(errors[:, step], error.double())
    assert set(alike) == {"patch", "8+shift"}


def test_a_shortened_calibration_knows_fewer_steps():
    band = calibration.Band((1.0, 2.0, 3.0), ((1.0,), (2.0,), (3.0,)),
                                      {0.9: ((0.5, 0.6, 0.7), (2.0, 3.0, 4.0))}, 19)  # fmt: skip
    whole = calibration.Calibration("", (8,), ("u",), {}, {("*", "patch"): band})
    cut = assess.shortened(whole, 2).band("4", "patch")
    assert cut.factor == (1.0, 2.0)
    assert cut.fields == ((1.0,), (2.0,))
    assert cut.bounds == {0.9: ((0.5, 0.6), (2.0, 3.0))}
    assert cut.count == 19


def made_row(tokens, error, **more):
    return {
        "rule": "sparing:1+shift" if more else "r",
        "tokens": tokens,
        "error": error,
        "early": error,
        "worst": error,
        **more,
    }


def compared(tmp_path):
    """Two systems, of which one has patch 4's error for half of its tokens by a controller."""
    for name, best in (("a", 0.09), ("b", 0.2)):
        rows = {"4+shift": made_row(100, 0.1), "16+shift": made_row(10, 0.3),
                "4-16+shift": made_row(55, 0.25),
                "sparing 1": made_row(50, best, open_loop=0.1, open_loop_worst=0.05)}  # fmt: skip
        found = {"example": {}, "control": {"test": rows}, "instrument": {"test": {
            "patch, within": {"ratio": best, "coverage": {"0.9": best}}}}}  # fmt: skip
        assess._save(tmp_path / "assess.json", "systems", name, [found])


def test_counts_and_ranges_for_sentences(tmp_path):
    assert assess_values.render("assess-wins", ("sparing", "error"), tmp_path) == "not run yet"
    compared(tmp_path)
    assert assess_values.render("assess-wins", ("sparing", "error"), tmp_path) == "1 of 2"
    assert assess_values.render("assess-wins", ("sparing", "worst"), tmp_path) == "0 of 2"
    assert assess_values.render("assess-aims", ("any",), tmp_path) == "1 of 2"
    assert assess_values.render("assess-aims", ("adaptive",), tmp_path) == "0 of 2"
    assert assess_values.render("assess-plans", ("3",), tmp_path) == "not run yet"
    assert assess_values.render("assess-held", ("test",), tmp_path) == "not run yet"
    told = assess_values.render("assess-range", ("test", "within", "0.9"), tmp_path)
    assert told == "9 to 20 %"
    told = assess_values.render("assess-range", ("test", "within", "ratio"), tmp_path)
    assert told == "0.09 to 0.20"
    for kind, names in (("assess-wins", ("sparing",)), ("assess-wins", ("sparing", "x")),
                        ("assess-range", ("test", "beyond", "ratio"))):  # fmt: skip
        with pytest.raises(PageError):
            assess_values.render(kind, names, tmp_path)


def test_who_has_the_finest_patch_s_error_and_what_it_takes(tmp_path):
    compared(tmp_path)
    first, second = assess_tables.render("assess-aim", (), tmp_path).splitlines()[2:]
    assert [cell.strip() for cell in first.split("|")[5:9]] == [
        "`sparing:1+shift`",
        "−10 %",
        "`sparing:1+shift`",
        "50 %",
    ]
    assert [cell.strip() for cell in second.split("|")[5:9]] == [
        "`sparing:1+shift`",
        "+100 %",
        "–",
        "100 %",
    ]


def test_candidates_read_the_record_as_they_say():
    """Errors double from patch to patch; the look is at the first step."""
    domain = ot.Domain(64, 1.0, "periodic", ("u",))
    task = Task(domain, 40, (4, 8, 16), {4: 1.0, 8: 2.0, 16: 4.0})
    easy, hard = ([Made(ot.Choice(4), error, 1)] for error in (0.1, 9.0))
    rule = candidates.Accumulated(tolerance=1.0, share=5.0).on(task)
    assert rule(easy).patch == 16
    assert rule(hard).patch == 16  # 9 · 4 is below 5 · 9
    assert candidates.Accumulated(tolerance=1.0, share=0.1).on(task)(hard).patch == 8
    assert candidates.Accumulated(share=0.1, finest=True, tolerance=1.0).on(task)(hard).patch == 4
    contrary = candidates.Contrary(tolerance=1.0).on(task)
    assert contrary(easy).patch == 8  # the second of the whole cycle
    assert contrary(hard).patch == 16


def test_an_unknown_system(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'shear-flow-mini'"):
        assess.run("shear-flow-min", (), tmp_path)
