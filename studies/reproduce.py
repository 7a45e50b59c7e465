"""A study from nothing: data, forms of training, trainings, comparisons, reports.

Every stage is skipped where its result is there already, and a training goes on from its newest
checkpoint, so the same command resumes what was interrupted.

OUT/runs/NAME           one training run for each model, shared by all studies
OUT/STUDY/forms.json    forms of training that were chosen, with the scores they were chosen by
OUT/STUDY/COMPARISON    request.json, results.json, samples and report.html
OUT/STUDY/COMPARISON.plan.json    the plan that it follows, where it has one
RESULTS/STUDY.json      what is kept of all that for pages and cards, when all is done
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from overtone.assess.plan import plan
from overtone.assess.plan_file import Plan
from overtone.baselines.registry import create
from overtone.cli.evaluate import evaluate_into
from overtone.errors import ConfigError
from overtone.evaluate import Candidate, Reading, Trajectories, load_candidate
from overtone.evaluate.results import RESULTS, Results, storable
from overtone.evaluate.run import one_core
from overtone.files import replacing
from overtone.models.storage import PACKAGED
from overtone.progress import Terminal, bars, one_bar
from overtone.schedules import parse_schedule
from overtone.train.config import RunConfig
from overtone.train.journal import METRICS, SUMMARY, read_journal
from overtone.train.run import data_folder, make_model, read
from overtone.train.settings import change, load_config
from overtone.version import machine
from studies.archive import Archive, thinned
from studies.jobs import Job, run_jobs
from studies.study import Comparison, Study, Training
from studies.tune import FORMS, best_form, last_trial, trials

REQUEST = "request.json"
WINDOWS, BATCH = 240, 4
"""Next-step predictions for each patch, and trajectories at once."""


def reproduce(
    study: Study,
    out: str | Path,
    *,
    results: str | Path | None = None,
    workers: int = 2,
    console: Console | None = None,
) -> list[Results]:
    """Run what is missing of a study and return the numbers of its comparisons.

    Args:
        study: what to do.
        out: folder for runs and reports.
        results: folder that gets what is to be kept of all numbers, `STUDY.json`.
        workers: trainings at once, and rollouts of an evaluation, one core each.
        console: where to print.
    """
    out, console = Path(out), console or Terminal()
    configs = {t.name: t.config() for t in study.trainings}
    data = {c.data.model_dump_json(): c for c in configs.values()}
    for config in data.values():
        data_folder(config.data, console=console)
    for training in study.trainings:
        _require_model(training, console)
    tuned = {t.name: t for t in study.trainings if t.form_of == t.name}
    _train([trial for t in tuned.values() for trial in trials(t).values()], out, workers, console)
    last = [last_trial(t, out / "runs") for t in tuned.values()]
    _train([trial for found in last for trial in found.values()], out, workers, console)
    forms = _choose_forms(study, tuned, out, console)
    chosen = [_in_form(t, forms) for t in study.trainings]
    found = []
    for comparison in study.comparisons:
        used = {t.name: t for t in chosen if t.name in comparison.models}
        _train([*used.values()], out, workers, console)
        found.append(_compare(comparison, study, used, out, workers, console))
    if results is not None:
        pairs = zip(study.comparisons, found, strict=True)
        kept = {comparison.name: thinned(own, comparison.curves) for comparison, own in pairs}
        plans = {
            comparison.name: json.loads(_plan_file(study, comparison, out).read_text())
            for comparison in study.comparisons
            if comparison.planned
        }
        Archive(kept, forms, plans).save(Path(results) / f"{study.name}.json")
    return found


def _require_model(training: Training, console: Console) -> None:
    """Make it once: a library that it needs is missed now, not after hours of other trainings."""
    if training.packaged:
        return
    config = training.config()
    data = read(config, data_folder(config.data, console=console), "train", horizon=1)
    make_model(config.model, data.domain)
    data.close()


def _choose_forms(
    study: Study,
    tuned: Mapping[str, Training],
    out: Path,
    console: Console,
) -> dict[str, Any]:
    """The best form of each training whose trials are done, with all scores and who found them."""
    found = {name: best_form(training, out / "runs") for name, training in tuned.items()}
    for name, (form, scores) in found.items():
        listed = ", ".join(f"{f}: {score:.4f}" for f, score in scores.items())
        console.print(f"{name}: {form} (validation {listed})")
    if not found:
        return {}
    models = {name: {"chosen": form, "scores": scores} for name, (form, scores) in found.items()}
    content = {"command": _command(study), "machine": machine(), "models": models}
    _write_json(out / study.name / "forms.json", content)
    return content


def _in_form(training: Training, forms: Mapping[str, Any]) -> Training:
    if training.form_of is None:
        return training
    form = forms["models"][training.form_of]["chosen"]
    return training.renamed(training.name, FORMS[form])


def _train(trainings: Sequence[Training], out: Path, workers: int, console: Console) -> None:
    """Train what is not trained yet, several at once."""
    wanted = [t for t in trainings if not t.packaged]
    missing = [t for t in wanted if not _is_finished(t, out / "runs" / t.name)]
    if not missing:
        return
    with bars(console) as progress:
        run_jobs([_job(t, out) for t in missing], workers=workers, progress=progress)


def _is_finished(training: Training, run: Path) -> bool:
    if not (run / SUMMARY).exists():
        return False
    before, now = load_config(run / "config.json"), _on_one_core(training.config())
    if before != now:
        raise ConfigError(
            f"the run in '{run}' was made with other settings than the study's; move it away, or "
            "choose another --out"
        )
    return json.loads((run / SUMMARY).read_text())["status"] != "interrupted"


def _on_one_core(config: RunConfig) -> RunConfig:
    return change(config, {"train.threads": 1})


def _job(training: Training, out: Path) -> Job:
    run = out / "runs" / training.name
    config = training.config()

    def done() -> float:
        lines = [line for line in read_journal(run / METRICS) if line["kind"] == "train"]
        if not lines:
            return 0.0
        minutes = lines[-1].get("cpu_seconds", 0) / 60
        limit = config.train.max_cpu_minutes or float("inf")
        return max(lines[-1]["update"] / config.num_updates, minutes / limit)

    changes = {"log.tensorboard": False, "train.threads": 1, **training.changes}
    pairs = (f"{key}={json.dumps(value)}" for key, value in changes.items())
    arguments = ("train", training.recipe, *pairs, "--out", str(run), "--resume")
    return Job(training.name, arguments, out / "logs" / f"{training.name}.log", done)


def _compare(
    comparison: Comparison,
    study: Study,
    used: Mapping[str, Training],
    out: Path,
    workers: int,
    console: Console,
) -> Results:
    """Evaluate and report, unless that was done with these very models."""
    candidates = [
        replace(_candidate(used[name], out), allow_untrained=comparison.allow_untrained)
        for name in comparison.models
    ]
    first = candidates[0].model
    for extra in comparison.untrained:
        made = {"domain": first.domain, "context": extra.context, "size": "mini"}
        model = create(extra.baseline, **made, **extra.options)
        candidates.append(Candidate(extra.label, model))
    folder = out / study.name / comparison.name
    request = _request(comparison, candidates)
    if _was_answered(folder, request):
        found = Results.load(folder / RESULTS)
    else:
        found = _evaluate(comparison, candidates, used, study, out, workers, console)
        _write_json(folder / REQUEST, request)  # last: the rest is complete
    console.print(f"{comparison.name}: {folder / 'report.html'}", soft_wrap=True)
    return found


def _candidate(training: Training, out: Path) -> Candidate:
    return load_candidate(_run_of(training, out), training.label or training.name)


def _run_of(training: Training, out: Path) -> Path:
    """The folder of a training, or of the packaged model that it once gave."""
    return PACKAGED / training.name if training.packaged else out / "runs" / training.name


def _evaluate(
    comparison: Comparison,
    candidates: Sequence[Candidate],
    used: Mapping[str, Training],
    study: Study,
    out: Path,
    workers: int,
    console: Console,
) -> Results:
    config = change(next(iter(used.values())).config(), comparison.data)
    data = data_folder(config.data, console=console)
    schedules = list(comparison.schedules)
    if comparison.planned:
        path = _plan_file(study, comparison, out)
        _plan(comparison, candidates[0], data, config, console, _command(study)).save(path)
        schedules.append(f"plan:{path}")
    with one_core():
        found, _ = evaluate_into(
            out / study.name / comparison.name,
            candidates,
            data,
            console=console,
            curves={t.label or t.name: _run_of(t, out) / METRICS for t in used.values()},
            schedules=schedules or None,
            steps=comparison.steps,
            start=comparison.start,
            split=comparison.split,
            windows=WINDOWS,
            batch=BATCH,
            workers=workers,
            coarsen=config.data.coarsen,
            stride=config.data.stride,
            command=_command(study),
        )
    return found


def _plan_file(study: Study, comparison: Comparison, out: Path) -> Path:
    return out / study.name / f"{comparison.name}.plan.json"


def _plan(
    comparison: Comparison,
    candidate: Candidate,
    data: Path | str,
    config: RunConfig,
    console: Console,
    command: str,
) -> Plan:
    """The plan for as many tokens as a schedule has, made on the validation split."""
    reading = Reading(
        split="valid",
        start=comparison.start,
        coarsen=config.data.coarsen,
        stride=config.data.stride,
    )
    truth = Trajectories(data, candidate.model.domain.fields, candidate.model.context, reading)
    tokens = parse_schedule(comparison.planned).tokens(truth.domain, comparison.steps)
    truth.close()
    with one_core(), one_bar(f"{comparison.name}: planning", console) as tick:
        return plan(
            candidate,
            data,
            steps=comparison.steps,
            tokens=tokens,
            command=command,
            progress=tick,
            **reading,
        )


def _request(comparison: Comparison, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """All that an evaluation depends on, plain data."""
    models = [[c.name, c.seed, dict(c.training)] for c in candidates]
    wanted = asdict(comparison)
    del wanted["curves"]  # what is kept elsewhere changes nothing here
    if not wanted["allow_untrained"]:
        del wanted["allow_untrained"]  # as requests were before one could ask for it
    if not wanted["planned"]:
        del wanted["planned"]
    asked = {"comparison": wanted, "models": models, "windows": WINDOWS}
    return json.loads(json.dumps(storable(asked)))  # as it will be read


def _was_answered(folder: Path, request: dict[str, Any]) -> bool:
    """Whether the folder holds the evaluation that is asked for."""
    path = folder / REQUEST
    return path.exists() and json.loads(path.read_text()) == request


def _command(study: Study) -> str:
    return f"make reproduce STUDY={study.name}"


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as scratch:
        scratch.write_text(json.dumps(storable(content), indent=2, allow_nan=False) + "\n")
