"""Flights: where they start, and that a shared beginning changes nothing but the work."""

import pytest
import torch

import overtone as ot
from overtone.assess.plan_bench import Bench
from overtone.evaluate import Candidate, Trajectories
from overtone.metrics import vrmse

STEPS = 5
TEXTS = ["2", "2-4", "4-2-8+shift", "warmup:2-2:8", "warmup:2-2-4:8", "8", "reverse:8:2-2:5"]


@pytest.fixture
def make_bench(still):
    def make(model, **options):
        truth = Trajectories(still, model.domain.fields, model.context, {"split": "valid"})
        return Bench(Candidate("m", model), truth, **({"steps": STEPS} | options))

    return make


def test_errors_are_those_of_single_rollouts(make_bench, make_model, linear, still):
    model = make_model(linear(1, 1, 1).domain, patches=(2, 4, 8), context=2).eval()
    bench = make_bench(model, starts=2)
    flights = [0, 7, 3]
    schedules = [ot.parse_schedule(text) for text in TEXTS]
    found = bench.errors(schedules, flights)
    truth = Trajectories(still, model.domain.fields, 2, {"split": "valid"})
    for i, schedule in enumerate(schedules):
        for j, number in enumerate(flights):
            flight = bench.flights[number]
            window = truth.window([flight.trajectory], 2, flight.first)
            frames = ot.rollout(model, window, steps=STEPS, schedule=schedule)
            for step, frame in enumerate(frames):
                true = truth.frame([flight.trajectory], flight.first + step)
                own = vrmse(frame, true, ndim=1).double().mean()
                torch.testing.assert_close(found[i, j, step], own, rtol=1e-4, atol=1e-6)


def test_a_beginning_is_computed_once(make_bench, linear):
    model = linear(0.1, 0.2, 0.4)
    bench = make_bench(model)
    schedules = [ot.parse_schedule(text) for text in TEXTS]
    sequences = [tuple(s(n) for n in range(STEPS)) for s in schedules]
    tree = {own[:n] for own in sequences for n in range(1, STEPS + 1)}
    bench.errors(schedules, [0, 1])
    assert model.calls == len(tree) == bench.num_steps(schedules, [0, 1]) < STEPS * len(TEXTS)


def test_flights_begin_where_there_is_room(make_bench, linear):
    model = linear(0.1, 0.2, 0.4)  # 14 frames, of which 2 are context
    bench = make_bench(model, starts=3)
    firsts = {}
    for flight in bench.flights:
        firsts.setdefault(flight.trajectory, []).append(flight.first)
    assert firsts == {row: [2, 5, 9] for row in range(6)}
    assert len(bench.trajectories(range(6))) == 6  # the first are of different ones
    assert len(make_bench(model, steps=12, starts=3).flights) == 6
    order = [flight.trajectory for flight in bench.flights]
    other = [flight.trajectory for flight in make_bench(model, starts=3, seed=1).flights]
    assert order != other


def test_flights_of_a_trajectory_are_averaged_first(make_bench, linear):
    bench = make_bench(linear(0.1, 0.2, 0.4), starts=2)
    values = torch.arange(12.0).double()[None]
    found = bench.by_trajectory(values, range(12))
    assert found.shape == (1, 6)
    assert found[0].tolist() == [3, 4, 5, 6, 7, 8]


def test_what_blows_up_has_an_infinite_error_and_the_others_go_on(make_bench, linear):
    model = linear(0.1, 0.2, float("nan"))
    bench = make_bench(model)
    found = bench.errors([ot.parse_schedule("warmup:2-2-8:4"), ot.parse_schedule("2")], [0, 1])
    assert found[0, :, :2].isfinite().all()
    assert found[0, :, 2].isinf().all()
    assert found[1].isfinite().all()
