"""A page's lanes: what it sees is `rollout`, side by side, on one scale."""

from collections import Counter
from random import Random

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import WellFolder
from overtone.errors import OvertoneError
from overtone.evaluate import Candidate
from overtone.metrics import vrmse
from overtone.viewer import session as module
from overtone.viewer.messages import View
from overtone.viewer.session import seen

START = {"trajectory": 1, "start": 1}


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_two_lanes_are_two_rollouts_from_the_same_start(watch, lanes, ndim):
    session, ask = watch(ndim)
    schedules = ("8", "4-8+shift")
    ask("open", lanes=lanes(*schedules), **START)
    candidate = session.stage.candidates[0]
    window = session.stage.window(candidate, 1, 1)
    rolled = [[*ot.rollout(candidate.model, window, steps=5, schedule=s)] for s in schedules]
    for step in range(5):
        header, planes = ask("step")
        assert header["step"] == step + 1
        truth = session.stage.true_frame(1, 1 + 3 + step)
        for lane, frames in enumerate(rolled):
            _, (exact,) = ask("exact", lane=lane)
            np.testing.assert_allclose(exact, frames[step][0].numpy(), rtol=0, atol=1e-6)
            error = vrmse(frames[step][0], truth, ndim=ndim).mean().item()
            point = header["points"][-1]
            assert point["lanes"][lane]["error"] == pytest.approx(error, rel=1e-3)
            assert header["lanes"][lane]["schedule"] == schedules[lane]
        if ndim == 2:  # what is seen is what was computed, up to 16 bits
            shown = planes[0] + planes[1]
            np.testing.assert_allclose(shown, rolled[0][step][0, 0], atol=2e-4)


@pytest.mark.parametrize("name", ["ffno", "unet", "fno"])
def test_a_baseline_and_an_emulator_are_two_rollouts_side_by_side(
    watch, make_data, make_candidate, name
):
    """Nobody has trained them; what counts is that each lane is its own model's rollout."""
    if name == "fno":
        pytest.importorskip("neuralop", reason="needs overtone[neuralop]", exc_type=ImportError)
    options = {"width": 8} if name == "unet" else {"modes": 4, "width": 8, "layers": 1}
    domain = WellFolder(make_data(2), "test", 3).domain
    other = Candidate(name, ot.baseline(name, domain=domain, context=2, **options))
    session, ask = watch(2, make_candidate(2), other)
    about = session.stage.facts()["models"]
    assert [(m["patched"], m["schedules"]) for m in about] == [
        (True, ["2-4-8", "2-4-8+shift"]),
        (False, []),
    ]
    tracks = [{"model": 0, "schedule": "2-4-8+shift"}, {"model": 1, "schedule": "1"}]
    ask("open", lanes=tracks, **START)
    for _ in range(4):
        header, _ = ask("step")
    for lane, (candidate, track) in enumerate(zip(session.stage.candidates, tracks, strict=True)):
        window = session.stage.window(candidate, 1, 1)
        *_, last = ot.rollout(candidate.model, window, steps=4, schedule=track["schedule"])
        _, (exact,) = ask("exact", lane=lane)
        np.testing.assert_allclose(exact, last[0].numpy(), rtol=0, atol=1e-6)
        own = header["points"][-1]["lanes"][lane]
        truth = session.stage.true_frame(1, 1 + 3 + 3)  # both predict the same frames
        assert own["error"] == pytest.approx(vrmse(last[0], truth, ndim=2).mean().item(), rel=1e-3)
        assert (own["patch"] is None, own["seams"] is None) == (lane == 1,) * 2
        assert header["lanes"][lane]["spectrum"]


def test_a_residual_has_its_own_precision(watch, lanes):
    session, ask = watch()
    ask("open", lanes=lanes("8"), **START)
    header, (truth, residual) = ask("step")
    assert [plane["kind"] for plane in header["planes"]] == ["truth", "residual"]
    _, (exact,) = ask("exact", lane=0)
    own = exact[0] - session.stage.true_frame(1, 4)[0].numpy()
    assert np.abs(residual - own).max() <= np.ptp(own) / 65535
    np.testing.assert_allclose(truth, session.stage.true_frame(1, 4)[0], atol=2e-4)


def test_past_the_end_of_the_data_it_goes_on_and_says_so(watch, lanes):
    session, ask = watch()
    ask("open", trajectory=0, start=9, lanes=lanes("8"))
    header, _ = ask("step", count=2)
    assert header["truth"]
    header, planes = ask("step")
    assert not header["truth"]
    assert [plane["kind"] for plane in header["planes"]] == ["prediction"]
    point = header["points"][-1]
    assert point["truth"] is False
    assert point["persistence"] is None
    assert point["lanes"][0]["error"] is None
    assert point["lanes"][0]["tokens"] == 2 * 4
    np.testing.assert_allclose(planes[0], session.lanes[0].state.frames[-1][0], atol=2e-4)


def test_many_steps_at_once_tell_every_number(watch, lanes):
    _, ask = watch()
    ask("open", lanes=lanes("8", "4"), **START)
    header, _ = ask("step", count=6)
    assert [point["step"] for point in header["points"]] == [1, 2, 3, 4, 5, 6]


def test_others_do_not_wait_long_for_many_steps(watch, lanes, monkeypatch):
    monkeypatch.setattr(module, "SLICE", 0.0)
    _, ask = watch()
    ask("open", lanes=lanes("8"), **START)
    assert ask("step", count=20)[0]["step"] == 1


def test_showing_an_earlier_step_changes_nothing(watch, lanes):
    _, ask = watch()
    ask("open", lanes=lanes("2-4-8+shift"), **START)
    seen_then = [ask("step") for _ in range(5)]
    header, planes = ask("show", step=2)
    assert (header["step"], header["head"]) == (2, 5)
    assert header["points"] == seen_then[1][0]["points"]
    np.testing.assert_array_equal(planes[1], seen_then[1][1][1])
    assert ask("step")[0]["step"] == 6


def test_a_stopped_lane_stays_while_the_other_goes_on(watch, lanes):
    _, ask = watch()
    ask("open", lanes=lanes("explicit:8-8", "4"), **START)
    header, _ = ask("step", count=4)
    assert header["step"] == 4
    assert "has 2 steps" in header["lanes"][0]["stopped"]
    assert header["lanes"][1]["stopped"] == ""
    assert [lane["step"] for lane in header["lanes"]] == [2, header["step"]]
    assert header["points"][-1]["lanes"][0]["error"] is None
    assert header["points"][1]["lanes"][0]["error"] is not None
    assert ask("show", step=1)[0]["lanes"][0]["stopped"] == ""


def test_persistence_is_the_frame_of_the_start(watch, lanes):
    session, ask = watch()
    header, _ = ask("open", lanes=lanes("8"), **START)
    assert header["points"][0]["persistence"] == 0
    header, _ = ask("step", count=3)
    truths = [session.stage.true_frame(1, n) for n in (3, 6)]
    expected = vrmse(*truths, ndim=2).mean().item()
    assert header["points"][-1]["persistence"] == pytest.approx(expected, rel=1e-3)


def test_another_field_is_seen_of_the_same_step(watch, lanes):
    session, ask = watch()
    ask("open", lanes=lanes("8"), **START)
    ask("step")
    header, planes = ask("look", view={"field": 1, "along": 1})
    assert header["step"] == 1
    np.testing.assert_allclose(planes[0], session.stage.true_frame(1, 4)[1], atol=2e-4)
    assert len(header["lanes"][0]["spectrum"]) == 32 // 2 + 1


def test_one_axis_is_seen_as_space_and_time(watch, lanes, monkeypatch):
    session, ask = watch(1)
    ask("open", trajectory=0, start=8, lanes=lanes("8"))
    _, (truth, predicted) = ask("step", count=5)
    assert predicted.shape == (6, 32)
    assert truth.shape == (4, 32)  # the data ends before
    np.testing.assert_allclose(truth[1], session.stage.true_frame(0, 11)[0], atol=2e-4)
    np.testing.assert_allclose(predicted[-1], session.lanes[0].state.frames[-1][0], atol=2e-4)
    monkeypatch.setattr(module, "TRACE", 3)
    assert ask("step")[1][-1].shape == (3, 32)


def test_three_axes_are_cut_or_averaged():
    domain = ot.Domain((4, 5, 6), (1.0,) * 3, "periodic", ("a", "b"))
    frame = torch.randn(2, 4, 5, 6)
    values = frame[1].double().numpy()
    for axis in range(3):
        view = View(field=1, across=axis, index=2)
        np.testing.assert_array_equal(seen(frame, view, domain), values.take(2, axis))
        view = View(field=1, across=axis, mode="mean")
        np.testing.assert_allclose(seen(frame, view, domain), values.mean(axis))


def test_pushes_end_before_the_field_does(watch, lanes):
    session, ask = watch()
    ask("open", lanes=lanes("8"), **START)
    push = {"lane": 0, "field": 0, "cell": [3, 3], "radius": 3.0, "strength": 5.0}
    with pytest.raises(OvertoneError, match="another push would take a beyond"):
        for _ in range(60):
            ask("push", **push)
    kept = session.lanes[0].state.frames[-1].clone()
    largest = session.stage.true_frame(START["trajectory"], START["start"] + 2)[0].abs().max()
    assert 10 * largest < kept[0].abs().max() < 4000 * largest
    torch.testing.assert_close(torch.tensor(ask("exact", lane=0)[1][0]), kept, rtol=0, atol=0)
    assert ask("step")[0]["step"] == 1


def test_large_fields_are_thinned_out(monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 30)
    domain = ot.Domain((16, 16), (1.0,) * 2, "periodic", ("a",))
    assert seen(torch.randn(1, 16, 16), View(), domain).shape == (4, 4)


@pytest.mark.parametrize(
    ("kind", "message", "said"),
    [
        ("open", {"trajectory": 9, "start": 0, "lanes": 1}, "trajectory 9"),
        ("open", {"trajectory": 0, "start": 99, "lanes": 1}, "start is frame 99"),
        ("open", {"trajectory": 0, "start": 0, "lanes": 7}, "model 6"),
        ("look", {"view": {"field": 2}}, "field 2"),
        ("look", {"view": {"along": 2}}, "axis 2"),
        ("push", {"lane": 0, "field": 5, "cell": [0, 0]}, "field 5"),
        ("push", {"lane": 0, "field": 0, "cell": [0]}, "cell"),
        ("push", {"lane": 0, "field": 0, "cell": [16, 0]}, "cell"),
        ("push", {"lane": 1, "field": 0, "cell": [0, 0]}, "lane 1"),
        ("steer", {"lane": 0, "schedule": "5"}, "does not know patch 5"),
        ("exact", {"lane": 1}, "lane 1"),
    ],
)
def test_mistakes_are_refused_and_change_nothing(watch, lanes, kind, message, said):
    session, ask = watch()
    ask("open", lanes=lanes("8"), **START)
    ask("step")
    if kind == "open":
        tracks = [{"model": message["lanes"] - 1, "schedule": "8"}]
        message = message | {"lanes": tracks}
    if kind == "push":
        message = message | {"radius": 1.0, "strength": 1.0}
    with pytest.raises(OvertoneError, match=said):
        ask(kind, **message)
    assert (session.step, session.trajectory) == (1, 1)
    assert ask("step")[0]["step"] == 2


def test_nothing_but_open_comes_first(watch):
    _, ask = watch()
    with pytest.raises(OvertoneError, match="send 'open' first"):
        ask("step")


def test_a_model_without_patches_runs_beside_one_with(watch, make_candidate):
    from overtone.baselines.registry import create
    from overtone.evaluate import Candidate

    net = make_candidate()
    other = Candidate("still", create("persistence", domain=net.model.domain, context=1))
    _, ask = watch(2, net, other)
    tracks = [{"model": 0, "schedule": "8"}, {"model": 1, "schedule": "8"}]
    ask("open", lanes=tracks, **START)
    header, _ = ask("step", count=3)
    point = header["points"][-1]
    assert point["lanes"][1]["error"] == pytest.approx(point["persistence"], rel=1e-4)
    assert point["lanes"][1]["tokens"] is None
    assert point["lanes"][1]["patch"] is None


def test_memory_stays_flat_over_many_steps(watch, lanes):
    session, ask = watch(1, memory=200_000)
    ask("open", lanes=lanes("4-8+shift", "8"), **START)
    sizes = []
    while session.step < 800:
        ask("step", count=20)
        frames = {id(f) for lane in session.lanes for s in lane._states for f in s.frames}
        sizes.append(len(frames) * 2 * 32 * 4)
    assert max(sizes) <= 200_000 + 4096
    assert sizes[-1] == sizes[-5]


WORDS = (
    "2 4 8 2-4-8 4-8+shift 16 3 0 -1 8x4 8x4x2 explicit:8-4 bursts:8:2:3 warmup:4:8 random:2-4:1 "
    "adaptive:0.02 adaptive:x 8+shift:at:99 99999999999 1e3 +shift shift : - 8- 8.0"
)


def any_message(random):
    """A message as a page could send it, each value within or beyond what there is."""
    number = lambda: random.choice([0, 1, 2, 3, 4, 7, 31, 10**6])  # noqa: E731
    view = {
        "field": random.choice([0, 0, 1, 3]), "mode": random.choice(["slice", "mean"]),
        "across": random.randrange(3), "index": number(), "along": random.choice([0, 0, 0, 1, 2]),
    }  # fmt: skip
    tracks = [
        {"model": random.choice([0, 0, 1, 2]), "schedule": random.choice(WORDS.split())}
        for _ in range(2)
    ]
    return random.choice(
        [
            {"type": "open", "trajectory": random.choice([0, 1, 0, 5]), "start": number(),
             "view": view, "lanes": tracks[: random.randrange(1, 3)],
             "estimate": random.random() < 0.3},
            {"type": "step", "count": random.randrange(1, 4)},
            {"type": "show", "step": number()},
            {"type": "back", "step": number()},
            {"type": "steer", "lane": random.randrange(2),
             "schedule": random.choice(WORDS.split())},
            {"type": "look", "view": view},
            {"type": "push", "lane": random.randrange(2), "field": random.randrange(4),
             "cell": [number() for _ in range(random.randrange(1, 4))],
             "radius": random.uniform(0.5, 64), "strength": random.uniform(-5, 5)},
            {"type": "exact", "lane": random.randrange(2)},
        ]
    )  # fmt: skip


@pytest.mark.fuzz
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_whatever_a_page_asks_for_is_done_or_refused_in_a_sentence(watch, make_candidate, ndim):
    random, done, refused = Random(ndim), Counter(), []
    still = Candidate("still", ot.baseline("persistence", domain=make_candidate(ndim).model.domain))
    _, ask = watch(ndim, make_candidate(ndim), still, memory=200_000)
    for _ in range(600):
        message = any_message(random)
        kind = message.pop("type")
        try:
            header, _ = ask(kind, **message)
        except OvertoneError as error:
            refused.append(str(error))
        else:
            done[kind] += 1
            assert header["type"] == ("exact" if kind == "exact" else "frame")
    assert min(done[kind] for kind in ("open", "step", "steer", "look", "back", "show")) > 0
    assert all(len(text) > 20 for text in refused)
