"""A plan's file: a round trip, damage, and whom it may be followed by."""

import json

import pytest
import torch

import overtone as ot
from overtone.assess.plan import plan
from overtone.assess.plan_file import Plan
from overtone.errors import DataError, PatchError
from overtone.evaluate import Candidate, evaluate
from overtone.schedules import Planned, parse_schedule

STEPS = 4


@pytest.fixture(scope="module")
def model(make_model, linear):
    torch.manual_seed(1)
    return make_model(linear(1, 1, 1).domain, patches=(2, 4, 8), context=2)


@pytest.fixture(scope="module")
def saved(model, still, tmp_path_factory):
    made = plan(model, still, steps=STEPS, tokens=20, trajectories=3, command="typed")
    path = tmp_path_factory.mktemp("plans") / "a+shift plan.json"
    made.save(path)
    return made, path


def window(still, context=2, split="test"):
    from overtone.data import WellFolder

    frames = WellFolder(still, split).frames(0, 0, context)
    return ot.Window(frames.fields[None], frames.domain)


def test_a_round_trip(saved):
    made, path = saved
    assert Plan.load(path) == made
    assert json.loads(path.read_text())["format"] == "overtone-plan-1"
    assert made.machine["overtone"] == ot.__version__
    read = parse_schedule(f"plan:{path}")
    assert isinstance(read, Planned)
    assert str(read) == made.schedule
    assert [read(n) for n in range(STEPS)] == [
        parse_schedule(made.schedule)(n) for n in range(STEPS)
    ]
    assert read.tokens(planned_on(made), STEPS) == made.cost.tokens


def planned_on(made):
    return ot.Domain(**made.data.domain)


def test_the_model_it_was_made_for_follows_it(saved, model, still, tmp_path):
    made, path = saved
    model.save(tmp_path / "m")
    again = ot.load(tmp_path / "m")
    frames = [*ot.rollout(again, window(still), steps=STEPS, schedule=f"plan:{path}")]
    plain = [*ot.rollout(model, window(still), steps=STEPS, schedule=made.schedule)]
    assert all(torch.equal(a, b) for a, b in zip(frames, plain, strict=True))
    found, _ = evaluate({"m": again}, still, schedules=[f"plan:{path}", "8"], steps=2, windows=2)
    assert [run.schedule for run in found.models[0].runs] == [made.schedule, "8"]


def test_another_model_is_refused(saved, model, still, make_model):
    _, path = saved
    other = make_model(model.domain, patches=(2, 4, 8), context=2)
    with pytest.raises(PatchError, match=r"was made for another model.*overtone plan"):
        ot.rollout(other, window(still), steps=2, schedule=f"plan:{path}")
    with pytest.raises(PatchError, match="was made for another model"):
        evaluate({"m": other}, still, schedules=[f"plan:{path}"], steps=2, windows=2)
    notes = []
    both = [Candidate("own", model), Candidate("other", other)]
    found, _ = evaluate(
        both, still, schedules=[f"plan:{path}", "8"], steps=2, windows=2, note=notes.append
    )
    assert [len(m.runs) for m in found.models] == [2, 1]
    assert any("left out for model 'other': the plan" in note for note in notes)
    one_number = {name: value.clone() for name, value in model.state_dict().items()}
    next(iter(one_number.values())).view(-1)[0] += 1e-3
    changed = make_model(model.domain, patches=(2, 4, 8), context=2)
    changed.load_state_dict(one_number)
    with pytest.raises(PatchError, match="was made for another model"):
        ot.rollout(changed, window(still), steps=2, schedule=f"plan:{path}")


@pytest.mark.parametrize("change", [{"shape": (32,)}, {"dt": 0.25}])
def test_another_grid_or_time_step_is_refused(change, saved, model):
    read = parse_schedule(f"plan:{saved[1]}")
    own = model.domain
    told = {"shape": own.shape, "extent": own.extent, "boundaries": "periodic"}
    domain = ot.Domain(**(told | {"fields": own.fields, "dt": own.dt} | change))
    assert read.objection(saved[0].model.fingerprint, own) is None
    assert "was made for a grid of (16,) cells" in read.objection(
        saved[0].model.fingerprint, domain
    )


def damages(text):
    content = json.loads(text)
    yield ""
    yield text[: len(text) // 2]
    yield "[" * 100_000
    yield json.dumps([content])
    yield json.dumps(content | {"format": "overtone-plan-2"})
    yield json.dumps(content | {"schedule": "plan:other.json"})
    yield json.dumps(content | {"schedule": "no schedule"})
    yield json.dumps(content | {"schedule": 7})
    yield json.dumps(content | {"model": None})
    yield json.dumps(content | {"model": content["model"] | {"fingerprint": 3}})
    yield json.dumps(content | {"data": content["data"] | {"domain": {"shape": [0]}}})


def test_damaged_plans_are_refused(saved, tmp_path):
    path = tmp_path / "damaged.json"
    for text in damages(saved[1].read_text()):
        path.write_text(text)
        with pytest.raises(PatchError, match=r"damaged.json' can't be read as a plan"):
            parse_schedule(f"plan:{path}")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PatchError, match="can't be read as a plan"):
        parse_schedule(f"plan:{path}")
    for missing in (tmp_path / "none.json", tmp_path, ""):
        with pytest.raises(PatchError, match="can't be read as a plan"):
            parse_schedule(f"plan:{missing}")
    for text in ("", "{}", saved[1].read_text()[:-20]):
        path.write_text(text)
        with pytest.raises(DataError, match="can't be read as a plan"):
            Plan.load(path)


def test_a_file_that_was_there_survives_a_failure(saved, tmp_path, full_disk):
    path = tmp_path / "plan.json"
    path.write_text("before")
    with full_disk(100), pytest.raises(OSError):
        saved[0].save(path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
