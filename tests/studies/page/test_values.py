"""Numbers in sentences."""

import pytest

from studies.page.blocks import PageError

NAME = "shear-flow-mini"


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
