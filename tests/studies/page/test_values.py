"""Numbers by name are those of the file, and are written into sentences."""

import math

import pytest

from studies.archive import thinned
from studies.page.blocks import PageError
from studies.page.sources import Source
from studies.page.values import measure, written

NAME = "shear-flow-mini"


@pytest.mark.parametrize(
    ("operand", "quantity", "path"),
    [
        ("csm:4-8-16", "vrmse_10", ("runs", 2, "vrmse_10", "value")),
        ("csm:4-8-16", "vrmse_all", ("runs", 2, "vrmse_all", "value")),
        ("csm:4-8-16", "vrmse@3", ("runs", 2, "vrmse", 2, "value")),
        ("csm:16", "divergence@12", ("runs", 0, "physics", "divergence", 11, "value")),
        ("csm:16", "bsnmse@high", ("runs", 0, "bsnmse", "high", "value")),
        ("csm:16", "excess@8", ("runs", 0, "harmonics", 1, "overall")),
        ("csm:16", "share@4", ("runs", 0, "harmonics", 0, "share")),
        ("csm:16+shift", "tokens", ("runs", 1, "tokens")),
        ("csm:8", "next_step", ("next_step", 1, "vrmse", "value")),
        ("csm", "parameters", ("num_parameters",)),
        ("csm", "updates", ("training", "updates")),
        ("csm", "minutes", ("training", "minutes")),
    ],
)
def test_a_quantity_is_the_number_in_the_file(make_source, as_json, operand, quantity, path):
    source = make_source()
    expected = as_json(source.results)["models"][0]
    for key in path:
        expected = expected[key]
    assert measure(source, operand, quantity)[0].value == expected


def test_derived_quantities(make_source):
    source = make_source()
    run = source.results.models[0].runs[0]
    seconds = measure(source, "csm:16", "seconds_per_step")[0].value
    assert seconds == pytest.approx(run.seconds / 12)
    assert measure(source, "csm", "pflop")[0].value == pytest.approx(0.00307)


def test_the_mean_over_all_schedules(make_source, make_trained):
    source = make_source([make_trained("csm", 0), make_trained("csm", 7, factor=2.0)])
    for quantity in ("vrmse_10", "tokens", "seconds_per_step"):
        runs = source.results.models[0].runs
        each = [measure(source, f"csm:{run.schedule}", quantity)[0].value for run in runs]
        found = measure(source, "csm:*", quantity)
        assert found[0].value == pytest.approx(sum(each) / len(each))
        assert list(found) == [0, 7]
    with pytest.raises(PageError, match="no quantity 'vrmse10'"):
        measure(source, "csm:*", "vrmse10")


def test_seeds_are_told_apart(make_source, make_trained):
    source = make_source([make_trained("csm", 0), make_trained("csm", 7, factor=2.0)])
    found = measure(source, "csm:16", "vrmse_all")
    assert list(found) == [0, 7]
    assert found[7].value == pytest.approx(2 * found[0].value)


def test_beyond_a_blow_up_there_is_nothing(make_source, make_trained):
    source = make_source([make_trained("csm", blow_up=4)])
    assert math.isfinite(measure(source, "csm:16", "vrmse@3")[0].value)
    assert math.isnan(measure(source, "csm:16", "vrmse@4")[0].value)


@pytest.mark.parametrize("quantity", ["vrmse@3", "divergence@12", "seams", "worst_seams@16"])
def test_what_the_file_does_not_keep_is_refused(make_source, quantity):
    source = make_source()
    thin = Source(source.name, thinned(source.results, ()))
    with pytest.raises(PageError, match="does not keep this for each step"):
        measure(thin, "csm:16", quantity)
    assert measure(thin, "csm:16", "excess@16") == measure(source, "csm:16", "excess@16")


@pytest.mark.parametrize(
    ("operand", "quantity", "said"),
    [
        ("csm:16", "vrmse10", "no quantity 'vrmse10' (did you mean 'vrmse_10'?)"),
        ("csm:16", "vrmse@0", "step is '0'"),
        ("csm:16", "vrmse@end", "step is 'end'"),
        ("csm:16", "mass@3", "no law 'mass'; expected one of divergence"),
        ("csm:16", "bsnmse@top", "no band 'top'; expected one of low, mid, high"),
        ("csm:16", "excess@5", "no period '5'; expected one of 4, 8, 16"),
        ("csm:5", "next_step", "at patch '5'; expected csm:PATCH with one of 4, 8, 16"),
        ("csm", "vrmse_10", "expected csm:SCHEDULE"),
    ],
)
def test_what_is_not_there_is_named(make_source, operand, quantity, said):
    with pytest.raises(PageError) as caught:
        measure(make_source(), operand, quantity)
    assert said in str(caught.value)


def test_counts_have_no_decimals():
    assert written(64.0, "tokens") == "64"
    assert written(748932.0, "parameters") == "748,932"
    assert written(0.05, "vrmse_10") == "0.0500"
    assert written(math.nan, "updates") == "–"


def test_one_number(render, make_comparison):
    shown = make_comparison()
    value = shown.models[0].runs[2].vrmse_10
    said = f"number {NAME} csm:4-8-16 vrmse_10"
    assert render(said, "value", shear_flow_mini=shown) == f"{value.value:.4f}" == "0.0500"
    said = f"interval {NAME} csm:4-8-16 vrmse_10"
    assert render(said, "value", shear_flow_mini=shown) == "0.0500 [0.0450, 0.0550]"
    assert render(f"interval {NAME} csm updates", "value") == "300"


def test_two_numbers(render, make_comparison):
    shown = make_comparison()
    cycle, fixed = shown.models[0].runs[2], shown.models[3].runs[0]
    drop = round(100 * (1 - cycle.vrmse_10.value / fixed.vrmse_10.value))
    said = f"change {NAME} csm:4-8-16 fixed16:16 vrmse_10"
    assert render(said, "value", shear_flow_mini=shown) == f"−{drop} %"
    share = 100 * cycle.tokens / shown.models[0].runs[4].tokens
    assert render(f"share {NAME} csm:4-8-16 csm:4 tokens", "value") == f"{share:.0f} %" == "44 %"
    times = cycle.tokens / fixed.tokens
    assert render(f"times {NAME} csm:4-8-16 fixed16:16 tokens", "value") == f"{times:.2f}"


def test_seeds_are_averaged_and_paired(render, make_comparison, make_trained):
    models = [make_trained("a", seed, factor=f) for seed, f in ((0, 0.5), (1, 0.9))]
    models += [make_trained("b", seed, factor=f) for seed, f in ((1, 1.0), (0, 2.0))]
    shown = make_comparison(models)
    said = f"{NAME} a:16 b:16 vrmse_all"
    # Means 0.7 and 1.5; pairs 0.5 / 2.0 and 0.9 / 1.0.
    assert render(f"change {said}", "value", shear_flow_mini=shown) == "−53 %"
    assert render(f"changes {said}", "value") == "−75 % to −10 %"
    mean = (models[0].runs[0].vrmse_all.value + models[1].runs[0].vrmse_all.value) / 2
    assert render(f"interval {NAME} a:16 vrmse_all", "value").startswith(f"{mean:.3f} (0.225 to")
    with pytest.raises(PageError, match="the seeds differ"):
        render(f"changes {said}", "value", shear_flow_mini=make_comparison(models[:3]))


def test_what_was_not_run_says_so(render):
    assert render(f"number {NAME} csm:4 vrmse_10", "value") == "not run yet"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (f"numbr {NAME} a b", "no value 'numbr' (did you mean 'number'?)"),
        (f"change {NAME} csm:4 vrmse_10", "'value: change COMPARISON A B QUANTITY'"),
        (f"number {NAME} csm:4 vrmse_10 models=a", "'value: number COMPARISON A QUANTITY'"),
    ],
)
def test_malformed_values_are_refused(render, said, message):
    with pytest.raises(PageError) as caught:
        render(said, "value")
    assert message in str(caught.value)
