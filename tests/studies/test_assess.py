"""The study on a tiny system and an untrained model: all of it runs, and pages show it."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

import overtone as ot
from overtone.errors import ConfigError
from overtone.solvers.datasets import build_system, generate
from studies import assess, control
from studies.page import assess_tables


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
            bench = assess.Bench(model, "ks", system, size, data, mixed, lambda _: None)
            found.append({"model": "ks", "seed": seed, **bench.measure(["8"])})
    return found


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
        assert len([rule for rule in rules if rule.startswith("sparing")]) == len(control.SHARES)
        assert rules["adaptive 1"]["rule"].startswith("adaptive:")
        assert "8" in rules
        for rule, row in rules.items():
            assert row["tokens"] == pytest.approx(sum(row["tokens_by_step"])), rule
            assert row["worst"] >= row["error"]
        # 4, 8 and 16 tokens of 64 cells, over four steps.
        assert rules["4+shift"]["tokens"] == 4 * 16
        assert found["example"]["mixed"]["rule"].startswith(control.KINDS)
        for row in rules.values():  # who knows all errors does at least as well as who doesn't
            if row["rule"].startswith(control.KINDS) and math.isfinite(row["open_loop"]):
                assert row["perfect"] <= row["open_loop"] + 1e-9


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
    assert "| shear-flow | test | sparing 1 (tolerance of each seed) |" in table
    for kind in {*assess_tables.KINDS} - {"assess-tried"}:
        text = assess_tables.render(kind, (), tmp_path)
        assert "| shear-flow | test |" in text or kind == "assess-detection"
        assert "nan" not in text
    with pytest.raises(ot.OvertoneError, match="has no system 'x'"):
        assess_tables.render("assess-control", ("x",), tmp_path)
    figure = assess_tables.picture(tmp_path)
    assert {line.get_gid() for line in figure.axes[0].lines} >= {"truth", "estimate"}


def test_seeds_are_averaged_and_their_range_is_shown(measured, tmp_path):
    """Controllers have a tolerance of their own in each seed, and one row."""
    assess._save(tmp_path / "assess.json", "systems", "shear-flow-mini", measured)
    table = assess_tables.render("assess-control", (), tmp_path)
    (row,) = [line for line in table.splitlines() if "| test | adaptive 2 " in line]
    errors = [model["control"]["test"]["adaptive 2"]["error"] for model in measured]
    shown = f"{sum(errors) / 2:.3f} ({min(errors):.3f} to {max(errors):.3f})"
    assert row.split("|")[6].strip() == shown


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


def test_an_unknown_system(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'shear-flow-mini'"):
        assess.run("shear-flow-min", (), tmp_path)
