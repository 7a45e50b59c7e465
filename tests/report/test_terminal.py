"""The table in the terminal."""

from rich.console import Console

from overtone.report.terminal import results_table


def shown(results, width=80):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(results_table(results))
    return capture.get()


def test_a_row_for_each_schedule_of_each_model(make_model, make_results):
    models = [make_model("fixed16", schedules=("16",)), make_model("csm")]
    results = make_results(models)
    text = shown(results)
    for model in models:
        for run in model.runs:
            (line,) = [s for s in text.splitlines() if s.split()[:2] == [model.name, run.schedule]]
            cells = line.split()
            # The error of one step is that of a constant patch.
            assert len(cells) == (9 if run.schedule.isdigit() else 8)
            errors = [f"{e.value:.4f}" for e in (run.vrmse_10, run.vrmse_all)]
            coarsest = run.harmonics[-1]
            artifact = [f"{coarsest.overall:.1f}", f"{coarsest.seams[-1].value:.1f}"]
            assert cells[-6:-1] == [*errors, *artifact, str(run.tokens)]
    assert "0.27–0.33" in text  # of the first run, over ten steps
    assert "of period 16" in text
    assert "blow-up" not in text


def test_eighty_columns_are_enough(make_results):
    assert shown(make_results()).split() == shown(make_results(), width=200).split()


def test_seeds_and_blow_ups(make_model, make_results):
    text = shown(make_results([make_model(seed=1), make_model(seed=2, blow_up=4)]), width=200)
    assert "csm (seed 1)" in text
    assert "csm (seed 2)" in text
    assert text.count("step 4") == len(make_model().runs)


def test_without_harmonics_there_is_no_excess(make_model, make_results, alter_run):
    text = shown(make_results([alter_run(make_model(), harmonics=())]))
    assert "period" not in text
