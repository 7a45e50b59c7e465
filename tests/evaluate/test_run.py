"""The evaluation as a whole.

Pieces of work side by side.
"""

import json
import math
import threading

import h5py
import numpy as np
import pytest
import torch
from torch import nn

import overtone as ot
from overtone.data import Header, WellFolder, write_well
from overtone.errors import OvertoneError
from overtone.evaluate import Candidate, evaluate
from overtone.evaluate.results import Results
from overtone.evaluate.run import _compare_epsilon, on_cores, one_core
from overtone.evaluate.samples import Samples
from overtone.metrics import vrmse
from overtone.solvers import ShearFlow
from overtone.solvers.datasets import generate


def test_another_grid_than_in_training_is_noted(emulator, toy):
    notes = []
    other = ot.build("vit", domain=_on(emulator.domain, 16), patches=(4, 8), context=3)
    evaluate({"m": other}, toy, schedules=["8"], steps=2, windows=2, note=notes.append)
    assert any("was trained on" in note and "--coarsen" in note for note in notes)


def test_a_patch_that_was_left_out_of_training(emulator, toy):
    schedules, steps = ["4", "2", "2-8"], 3
    own = Candidate("m", emulator, allow_untrained=True)
    results, _ = evaluate([own], toy, schedules=schedules, steps=steps, windows=4)
    (model,) = results.models
    assert [step.patch for step in model.next_step] == [4, 8, 2]
    assert [run.schedule for run in model.runs] == schedules
    assert all(step.flops > 0 for step in model.next_step)
    window = WellFolder(toy, "test", context=3).frames(0, 0, 3)
    frame = emulator(ot.Window(window.fields[None], window.domain), 2, allow_untrained=True)
    rolled = next(
        ot.rollout(emulator, ot.Window(window.fields[None], window.domain), steps=1, schedule=2,
                   allow_untrained=True)
    )  # fmt: skip
    assert torch.equal(frame, rolled)
    with pytest.raises(ot.PatchError, match="can follow none"):
        evaluate({"m": emulator}, toy, schedules=["2"], steps=steps, windows=4)


def _on(domain, cells):
    return ot.Domain(
        (cells,) * domain.ndim, domain.extent, domain.boundaries, domain.fields, domain.dt
    )


def test_everything_is_there_and_survives_a_file(emulator, steppers, toy, tmp_path):
    notes, seen = [], []
    models = [Candidate("e", emulator, {"seed": 3}), Candidate("p", steppers["Persistent"]())]
    models[1].model.patches = (8,)
    results, samples = evaluate(
        models,
        toy,
        schedules=["8", "4-8"],
        steps=6,
        batch=3,
        windows=5,
        command="overtone evaluate e toy",
        note=notes.append,
        progress=lambda n, m, what: seen.append((n, m, what)),
    )
    assert [note for note in notes if "'clock'" not in note] == [
        "schedule 4-8 is left out for model 'p', which does not know patch 4"
    ]
    assert seen[-1][:2] == (seen[-1][1],) * 2
    assert {what for *_, what in seen} >= {"e: next step", "e: 4-8", "p: 8"}
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json").model_dump_json() == results.model_dump_json()
    first, second = results.models
    assert (first.name, first.seed, first.num_parameters) == ("e", 3, emulator.num_parameters)
    assert [step.patch for step in first.next_step] == [4, 8]
    assert [run.schedule for run in first.runs] == ["8", "4-8"]
    assert [run.schedule for run in second.runs] == ["8"]
    # Every model is judged by the patches of all of them.
    assert [h.patch for h in second.runs[0].harmonics] == [8, 4]
    assert results.data.name == "toy"
    assert results.data.trajectories == 5
    assert str(toy.parent) not in results.model_dump_json()
    samples.save(tmp_path / "s.safetensors")
    again = Samples.load(tmp_path / "s.safetensors")
    assert list(again.predictions) == [("e", "8"), ("e", "4-8"), ("p", "8")]
    assert again.steps == (1, 2, 3, 4, 5, 6)
    assert torch.equal(again.truth, samples.truth)
    assert torch.equal(again.truth[:, 1, 0, 0], torch.arange(3.0, 9.0))


def without_seconds(content):
    """Plain data less what differs from one time to the next."""
    if isinstance(content, dict):
        return {
            k: without_seconds(v) for k, v in content.items() if k not in ("seconds", "machine")
        }
    return [without_seconds(v) for v in content] if isinstance(content, list) else content


def test_side_by_side_gives_what_one_after_the_other_gives(emulator, steppers, toy):
    models = {"e": emulator, "p": steppers["Persistent"]()}
    options = {"schedules": ["8", "4-8", "4+shift"], "steps": 6, "batch": 3, "windows": 5}
    one, two = (evaluate(models, toy, workers=n, **options) for n in (1, 2))
    first, second = (without_seconds(found.model_dump(mode="json")) for found, _ in (one, two))
    assert json.dumps(first) == json.dumps(second)
    for key, frames in one[1].predictions.items():
        assert torch.equal(frames, two[1].predictions[key])


def test_side_by_side_a_mistake_ends_all(emulator, steppers, toy, monkeypatch):
    def fail(*_):
        raise OvertoneError("bad model")

    bad = steppers["Persistent"]()
    monkeypatch.setattr(type(bad), "__call__", fail)
    with pytest.raises(OvertoneError, match="bad model"):
        evaluate({"e": emulator, "bad": bad}, toy, steps=6, windows=5, workers=2)


def test_all_models_predict_the_same_frames(roller, steppers, toy):
    long = steppers["Roller"]()
    long.context = 4
    results, samples = evaluate(
        {"short": roller.model, "long": long}, toy, schedules=["8"], steps=3, start=1, windows=5
    )
    assert results.data.start == 1
    assert samples.truth[:, 1, 0, 0].tolist() == [5.0, 6.0, 7.0]
    for frames in samples.predictions.values():
        assert torch.equal(frames, samples.truth)


def test_folded_contexts_of_any_length_predict_the_same_frames(emulator, toy, toy_domain):
    """Each has all the frames that it was built for; where the data have too few, they say so."""
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16}
    longer = ot.build("axial", domain=toy_domain, patches=(4, 8), context=5, **small)
    models = {"short": emulator, "long": longer}
    _, samples = evaluate(models, toy, steps=3, schedules=["4"], windows=2)
    assert samples.truth[:, 1, 0, 0].tolist() == [5.0, 6.0, 7.0]
    window = WellFolder(toy, "test", context=1).frames(0, 0, 5)
    window = ot.Window(window.fields.unsqueeze(0), window.domain)
    for name, model in models.items():
        (frame,) = ot.rollout(model, window, steps=1, schedule=4)
        torch.testing.assert_close(samples.predictions[name, "4"][0], frame[0])
    with pytest.raises(ot.DataError, match="context of 5 that starts at frame 12"):
        evaluate(models, toy, steps=3, schedules=["4"], windows=2, start=12)


def test_seeds_share_a_name_and_the_first_is_drawn(roller, steppers, toy):
    models = [
        Candidate("m", roller.model, {"seed": 0}),
        Candidate("m", steppers["Persistent"](), {"seed": 1}),
    ]
    results, samples = evaluate(models, toy, schedules=["8"], steps=2, windows=5)
    assert [(model.name, model.seed) for model in results.models] == [("m", 0), ("m", 1)]
    assert torch.equal(samples.predictions["m", "8"], samples.truth)


def test_the_seed_moves_intervals_only(steppers, toy):
    models = {"p": steppers["Persistent"]()}
    one, two = (
        evaluate(models, toy, schedules=["8"], steps=2, windows=5, seed=seed)[0].models[0].runs[0]
        for seed in (0, 1)
    )
    assert one.vrmse_all.value == two.vrmse_all.value
    assert one.vrmse_all != two.vrmse_all


def test_a_flexified_model_is_evaluated_like_any_other(toy, toy_domain):
    """Its numbers are those of its own calls, at every schedule."""
    parts = nn.Conv2d(4, 6, 8, 8), nn.ConvTranspose2d(6, 2, 8, 8)
    model = ot.flexify(nn.Sequential(*parts), "0", "1", patches=(4, 8))
    stepper = ot.FlexibleStepper(model, domain=toy_domain, context=2)
    results, samples = evaluate({"mine": stepper}, toy, steps=3, windows=4)
    (found,) = results.models
    assert found.num_parameters == sum(p.numel() for p in model.parameters())
    assert found.config["kind"] == "flexible"
    assert found.config["model"] == "Sequential"
    assert [step.patch for step in found.next_step] == [4, 8]
    assert found.next_step[0].flops > found.next_step[1].flops > 0
    assert [run.schedule for run in found.runs] == ["4", "8", "4-8", "4-8+shift"]
    start = WellFolder(toy, "test", context=1).frames(0, 0, 2)
    window = ot.Window(start.fields.unsqueeze(0), start.domain)
    frames = torch.cat([*ot.rollout(stepper, window, steps=3, schedule=ot.Cycle(4, 8))])
    assert torch.allclose(samples.predictions["mine", "4-8"], frames, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"steps": 15}, ot.DataError, "leaves 14 steps"),
        ({"split": "train"}, ot.DataError, "no split 'train'; it has test"),
        ({"schedules": ["16"]}, ot.PatchError, "knows patch 4, 8"),
        ({"batch": 0}, ot.DataError, "batch is 0"),
        ({"data": "nowhere"}, ot.DataError, "'nowhere' does not exist"),
    ],
)
def test_mistakes(roller, toy, options, kind, message):
    arguments = {"data": toy, "steps": 3, **options}
    with pytest.raises(kind, match=message):
        evaluate({"m": roller.model}, **arguments)


def test_grids_and_time_steps_that_do_not_fit(emulator, toy, make_model, make_domain):
    with pytest.raises(ot.DomainError, match=r"dt is 1\.0, the model steps by 0\.5"):
        evaluate({"e": emulator}, toy, steps=2, stride=2)
    line = make_model(make_domain((32,), fields=("a", "clock"), dt=0.5), patches=(4,))
    with pytest.raises(ot.OvertoneError, match="2D"):
        evaluate({"e": line}, toy, steps=2)
    walls = make_model(make_domain((16, 32), fields=("a", "b"), dt=0.5), patches=(4,))
    with pytest.raises(ot.DataError, match="no field 'b'"):
        evaluate({"e": walls}, toy, steps=2)


@pytest.mark.parametrize(
    ("shape", "boundaries", "laws"),
    [
        ((48,), "periodic", {"kinetic energy", "mass"}),
        ((16, 16), ["periodic", "wall"], {"enstrophy", "kinetic energy", "mass"}),
        ((8, 8, 8), "open", {"enstrophy", "kinetic energy", "mass"}),
    ],
)
def test_one_two_and_three_dimensions(steppers, tmp_path, shape, boundaries, laws):
    random = np.random.default_rng(0)
    header = Header("toy", shape, (1.0,) * len(shape), boundaries, 0.5)
    values = {
        "density": 2 + random.random((2, 6, *shape)),
        "velocity": random.standard_normal((2, 6, *shape, len(shape))),
    }
    path = write_well(tmp_path / "x.hdf5", values, header)
    model = steppers["Persistent"]()
    model.domain, model.patches = WellFolder(path, context=1).domain, (4, 2)
    results, samples = evaluate({"p": model}, path, steps=3, windows=2)
    runs = {run.schedule: run for run in results.models[0].runs}
    assert list(runs) == ["2", "4", "2-4", "2-4+shift"]
    assert runs["2"].vrmse == runs["2-4"].vrmse
    assert set(runs["4"].physics) == laws
    assert all(0 < e.value < 1 for e in runs["4"].physics["kinetic energy"])
    assert samples.truth.shape == (3, 1 + len(shape), *shape)
    frames = [WellFolder(path, context=1).frames(i, 1, 4).fields for i in range(2)]
    errors = [vrmse(f[:1].expand_as(f[1:]), f[1:], ndim=len(shape)).mean(1) for f in frames]
    found = [estimate.value for estimate in runs["4"].vrmse]
    assert found == pytest.approx(torch.stack(errors).mean(0).tolist(), rel=1e-5)


def test_the_solver_of_the_data_is_right_and_coarser_ones_are_not(tmp_path):
    """From a generated dataset to an evaluation, with the one model that makes no error."""
    system = ShearFlow(shape=(16, 32), reynolds=1e3)
    data = generate(system, tmp_path / "flows", trajectories=4, steps=6, splits=(0.5, 0.25, 0.25))
    models = {
        f"{coarsen}": ot.baseline(
            "coarse_solver", domain=system.domain, context=1, system="shear_flow",
            coarsen=coarsen, settings={"reynolds": 1e3},
        )
        for coarsen in (1, 2)
    }  # fmt: skip
    results, _ = evaluate(models, data, split="train", steps=3, windows=2)
    errors = {model.name: model.runs[0].vrmse_all.value for model in results.models}
    assert errors["1"] < 1e-3 < errors["2"]
    assert results.models[0].runs[0].flops == 0


def test_one_core_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(RuntimeError), one_core():
            assert torch.get_num_threads() == 1
            raise RuntimeError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_results_are_in_order_and_pieces_do_run_at_once():
    meeting = threading.Barrier(2, timeout=30)

    def work(item):
        if item < 2:
            meeting.wait()  # only two at once get past this
        return item, torch.get_num_threads()

    found = on_cores(work, range(5), workers=2, stop=lambda: None)
    assert found == [(item, 1) for item in range(5)]


def test_a_failure_stops_the_others_and_is_told():
    stopped = threading.Event()

    def work(item):
        if item == 0:
            raise ValueError("bad")
        stopped.wait(30)
        return item

    with pytest.raises(ValueError, match="bad"):
        on_cores(work, range(50), workers=2, stop=stopped.set)
    assert stopped.is_set()


@pytest.mark.parametrize(
    ("scale", "mean", "noted"),
    [(1.0, 0.0, None), (1e-25, 0.0, None), (1e-4, 1.0, "eps is"), (0.0, 3.0, "it is constant")],
)
def test_a_field_whose_error_epsilon_hides_is_noted(scale, mean, noted):
    frames = mean + scale * torch.randn(3, 2, 16, 16, dtype=torch.float64)
    frames[:, 0] = torch.randn(3, 16, 16)
    domain = ot.Domain((16, 16), (1.0, 1.0), "periodic", ("fine", "odd"))
    notes = []
    _compare_epsilon(frames, domain, notes.append)
    assert [note.startswith("field 'odd' hardly varies") for note in notes] == [True] * bool(noted)
    assert all(noted in note and "VRMSE" in note for note in notes)


def test_units_do_not_matter_to_an_evaluation(emulator, toy, toy_domain, tmp_path):
    """The same data in mixed units has the same errors, artifacts and spectra."""
    folder = tmp_path / "toy"
    units = {"a": 1e-25, "clock": 1e20}
    for path in sorted((toy / "data" / "test").iterdir()):
        with h5py.File(path) as file:
            fields = {name: units[name] * file["t0_fields"][name][()] for name in units}
        header = Header("toy", toy_domain.shape, toy_domain.extent, "periodic", toy_domain.dt)
        write_well(folder / "data" / "test" / path.name, fields, header)
    found = []
    for data in (toy, folder):
        results, _ = evaluate({"e": emulator}, data, schedules=["4-8"], steps=3, windows=5)
        found.append(results.models[0])
    (one, other), runs = found, [model.runs[0] for model in found]
    # What is constant in space has no error to compare: eps is all that it is divided by.
    assert other.next_step[0].fields["a"].value == pytest.approx(
        one.next_step[0].fields["a"].value, rel=1e-3
    )
    assert runs[1].fields["a"].value == pytest.approx(runs[0].fields["a"].value, rel=1e-3)
    assert runs[1].harmonics[0].overall == pytest.approx(runs[0].harmonics[0].overall, abs=0.5)
    assert [e.value for e in runs[1].seams] == pytest.approx(
        [e.value for e in runs[0].seams], abs=0.1
    )
    assert runs[1].blow_up is None


def test_in_a_notebook_it_is_one_call_with_one_model(emulator, toy):
    options = {"schedules": ["4-8"], "steps": 2, "windows": 2}
    found = ot.evaluate(emulator, toy, **options)
    named, _ = evaluate({"model": emulator}, toy, **options)
    assert found.results.models[0].runs[0].vrmse_all == named.models[0].runs[0].vrmse_all
    title, line = repr(found).splitlines()
    assert "over all 2 steps" in title
    assert line == f"model  4-8  {found.results.models[0].runs[0].vrmse_10.value:.4f}  " + (
        f"{found.results.models[0].runs[0].vrmse_all.value:.4f}"
    )


def test_yardsticks_are_measured_beside_every_model(roller, steppers, toy):
    """Persistence is what a model that says so gives; extrapolation follows a plain formula."""
    models = {"roller": roller.model, "p": steppers["Persistent"]()}
    found, samples = evaluate(models, toy, schedules=["8"], steps=6, windows=5)
    own, bare = found.models[1], {model.name: model for model in found.yardsticks}
    assert [*bare] == ["persistence", "extrapolation"]
    persistence, extrapolation = (bare[name].runs[0] for name in bare)
    assert persistence.vrmse == own.runs[0].vrmse
    assert persistence.vrmse_all == own.runs[0].vrmse_all
    assert bare["persistence"].next_step[0].vrmse == own.next_step[0].vrmse
    assert not any(model.patched for model in bare.values())
    assert {key[0] for key in samples.predictions} == {"roller", "p"}
    expected = []
    for row in range(5):
        fields = WellFolder(toy, "test", context=1).frames(row, 0, 8).fields
        for step in range(1, 7):
            frame = fields[1] + step * (fields[1] - fields[0])
            expected.append(vrmse(frame[None], fields[1 + step][None], ndim=2).mean().item())
    steps = torch.tensor(expected).reshape(5, 6).mean(dim=0)
    torch.testing.assert_close(
        torch.tensor([e.value for e in extrapolation.vrmse]), steps, rtol=1e-3, atol=1e-6
    )


def test_margins_are_differences_on_the_same_trajectories(roller, steppers, toy):
    models = {"roller": roller.model, "p": steppers["Persistent"]()}
    found, _ = evaluate(models, toy, schedules=["8"], steps=6, windows=5, seed=3)
    perfect, same = (model.runs[0].margins for model in found.models)
    assert all((e.value, e.low, e.high) == (0, 0, 0) for e in same["persistence"])
    for mine, its in zip(perfect["persistence"], found.yardsticks[0].runs[0].vrmse, strict=True):
        assert mine.value == pytest.approx(-its.value, rel=1e-5)
        assert (mine.low, mine.high) == pytest.approx((-its.high, -its.low), rel=0.05)
        assert mine.high < 0
    # Where the amplitudes differ, so do the errors; their difference is the same for all.
    assert not any(run.margins for model in found.yardsticks for run in model.runs)


def test_a_trajectory_that_is_lost_never_beats_a_yardstick(steppers, toy):
    lost = steppers["Exploding"](amplitudes=(2.0,), moment=5.0)
    found, _ = evaluate({"lost": lost}, toy, schedules=["8"], steps=6, windows=5)
    run = found.models[0].runs[0]
    assert run.blow_up == 4
    assert len(run.margins["persistence"]) == 6
    assert all(e.high < 0 for e in run.margins["persistence"][:3])
    assert all(e.value == e.high == math.inf for e in run.margins["persistence"][3:])


def test_with_one_frame_there_is_nothing_to_extrapolate(steppers, toy):
    short = steppers["Persistent"]()
    short.context = 1
    found, _ = evaluate({"p": short}, toy, schedules=["8"], steps=3, windows=5)
    assert [model.name for model in found.yardsticks] == ["persistence"]
    found, _ = evaluate({"p": short}, toy, schedules=["8"], steps=3, windows=5, start=1)
    assert [model.name for model in found.yardsticks] == ["persistence", "extrapolation"]
