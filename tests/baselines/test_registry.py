"""Names, sizes and options of the baselines, and how many parameters they have."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import overtone as ot
from overtone.baselines import BASELINES, find
from overtone.models.processors import PROCESSORS

# Of the paper's comparisons on shear flow: four fields, six frames, 128 x 256 cells.
MILLIONS = {
    "fno": 19.0,
    "tfno": 19.3,
    "ffno": 5.0,
    "unet": 17.5,
    "cnext_unet": 18.6,
    "afno_net": 20.4,
    "transolver": 11.2,
    "sinenet": 35.5,
}


@pytest.fixture
def shear_flow():
    fields = ("tracer", "pressure", "velocity_x", "velocity_z")
    return ot.Domain((128, 256), (1.0, 2.0), "periodic", fields, 0.1)


@pytest.mark.parametrize("name", MILLIONS)
def test_parameters_of_the_papers_configurations(make_baseline, shear_flow, name):
    with torch.device("meta"):
        model = make_baseline(name, shear_flow, context=6, size="paper")
    assert model.num_parameters == pytest.approx(MILLIONS[name] * 1e6, rel=0.03)
    assert all(p.device.type == "meta" for p in model.parameters())


@pytest.mark.parametrize("name", MILLIONS)
def test_mini_sizes_suit_a_cpu(make_baseline, shear_flow, name):
    with torch.device("meta"):
        model = make_baseline(name, shear_flow, context=6, size="mini")
    assert 0.3e6 < model.num_parameters < 1e6


def test_the_table_in_the_docs_says_what_is_so(make_baseline, shear_flow):
    lines = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text().splitlines()
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:3] == "| `"]
    assert [row[0].strip("`") for row in rows] == list(BASELINES)
    for name, _, configuration, parameters, *_ in rows:
        kind = find(name.strip("`"))
        with torch.device("meta"):
            options = {"system": "shear_flow"} if kind.name == "coarse_solver" else {}
            model = make_baseline(kind.name, shear_flow, context=6, size="paper", **options)
        count = model.num_parameters
        assert parameters == (f"{count / 1e6:.1f} M" if count else "none")
        for option, value in kind.sizes["paper"].items():
            if count:
                assert f"`{option}` {value}" in configuration


def test_every_baseline_has_both_sizes_with_the_same_options():
    assert set(BASELINES) == {*MILLIONS, "persistence", "extrapolation", "coarse_solver"}
    for name, kind in ((name, find(name)) for name in BASELINES):
        assert kind.name == name
        assert set(kind.sizes) == {"paper", "mini"}
        assert set(kind.sizes["paper"]) == set(kind.sizes["mini"])


def test_no_name_of_a_model_means_two_things():
    """`model.name` of a recipe is looked up in all of them."""
    names = [*PROCESSORS, "cvit", *BASELINES]
    assert len(names) == len(set(names))


def test_options_override_single_numbers(make_domain):
    model = ot.baseline("unet", domain=make_domain(), context=2, size="mini", width=8)
    assert model.options == {"width": 8, "levels": 3}
    assert model.context == 2
    assert not model.training


def test_bad_names(make_domain):
    domain = make_domain()
    with pytest.raises(ot.OvertoneError, match="baseline is 'sinnet'.*did you mean 'sinenet'"):
        ot.baseline("sinnet", domain=domain)
    with pytest.raises(ot.OvertoneError, match="size is 'minni'; expected one of paper, mini .did"):
        ot.baseline("unet", domain=domain, size="minni")
    with pytest.raises(ot.OvertoneError, match="option of 'unet' is 'with'.*did you mean 'width'"):
        ot.baseline("unet", domain=domain, **{"with": 8})
    with pytest.raises(ot.OvertoneError, match="it has no options"):
        ot.baseline("persistence", domain=domain, width=8)
    with pytest.raises(ot.OvertoneError, match="context is 0"):
        ot.baseline("unet", domain=domain, context=0)


def test_without_the_extra_the_others_work_and_fno_names_the_command():
    code = """
import sys
sys.modules["neuralop"] = None  # as if it were not installed
import overtone as ot
domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("a",))
print(ot.baseline("unet", domain=domain, size="mini").name)
try:
    ot.baseline("tfno", domain=domain, size="mini")
except ot.OvertoneError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unet\n")
    assert "pip install 'overtone[neuralop]'" in done.stdout
