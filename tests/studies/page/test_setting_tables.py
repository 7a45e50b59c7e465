"""How the numbers came about."""

NAME = "shear-flow-mini"


def test_trainings(render, cells, make_comparison, make_trained):
    shown = make_comparison([make_trained("csm", 0), make_trained("csm", 3)])
    header, *rows = cells(render(f"training {NAME}", shear_flow_mini=shown))
    assert header == ["model", "seed", "parameters", "updates", "minutes", "PFLOP",
                      "validation VRMSE"]  # fmt: skip
    assert rows == [
        ["csm", seed, "1,234", "300", "1.66", "0.00307", "0.155"] for seed in ("0", "3")
    ]


def test_what_is_unknown_is_a_dash(render, cells, make_comparison, make_trained):
    blank = make_trained("persistence").model_copy(update={"training": {}, "seed": None})
    shown = make_comparison([blank])
    (row,) = cells(render(f"training {NAME}", shear_flow_mini=shown))[1:]
    assert row == ["persistence", "–", "1,234", "–", "–", "–", "–"]


def test_learning_rates_and_errors_without_rollouts(render, cells, make_comparison, make_trained):
    made = make_trained("csm")
    training = {**made.training, "lr": 2e-3, "validation": {"vrmse": {"4": 0.1, "8": 0.3},
                                                            "rollout": None}}  # fmt: skip
    models = [made.model_copy(update={"training": training}), make_trained("other")]
    header, *rows = cells(render(f"training {NAME}", shear_flow_mini=make_comparison(models)))
    assert header[6:] == ["learning rate", "validation VRMSE"]
    assert [row[6:] for row in rows] == [["0.002", "0.200"], ["–", "0.155"]]


def test_the_setting_is_a_paragraph(render, make_comparison):
    text = render(f"setting {NAME}", shear_flow_mini=make_comparison())
    for part in (
        "shear_flow, test split (fingerprint `01234567`), 12 trajectories on 64x96 cells",
        "fields tracer, pressure",
        "rollouts of 12 steps of dt = 0.1, with contexts from frame 16 on",
        "Machine: one core; threads 1; overtone 0.1.0, torch 2.13.0.",
        "Command: `make reproduce STUDY=shear-flow-mini`.",
    ):
        assert part in text
    assert "\n" not in text
