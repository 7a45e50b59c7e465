"""What the paper's ablations vary, and nothing else."""

from dataclasses import replace

import pytest

from studies.ablations import (
    CONTEXTS,
    PATCH_SETS,
    RATE,
    TINY,
    WIDTHS,
    ablations,
    base_kernel,
    context_length,
    omitted_patch,
    patch_sets,
    sizes,
)
from tests.studies.stepping import laid, stepped

STUDIES = ablations()


def varied(trainings, *keys):
    """Models without some settings, as texts: equal where nothing else differs."""
    found = set()
    for training in trainings:
        config = training.config()
        plain = config.model.model_dump()
        for key in keys:
            plain.pop(key)
        found.add((str(sorted(plain.items())), str(config.train), str(config.data)))
    return found


def test_every_name_is_of_one_study():
    assert len({study.name for study in STUDIES}) == len(STUDIES) == 5


def test_widths_differ_in_width_and_rate_alone():
    study = sizes()
    models = {t.name: t.config() for t in study.trainings}
    blocks = {config.model.blocks or 4 for config in models.values()}
    assert blocks == {4}
    for (width, _), comparison in zip(WIDTHS.items(), study.comparisons, strict=True):
        own = [models[name] for name in comparison.models]
        assert {config.optimizer.lr for config in own} == {RATE * TINY / width}
        flexible = {config.num_updates for config in own if config.model.tokenizer != "fixed"}
        fixed = {config.num_updates for config in own if config.model.tokenizer == "fixed"}
        assert (flexible, fixed) == ({1200}, {400})


def test_base_kernels_are_the_papers():
    kernels = {}
    for training in base_kernel().trainings:
        model = training.config().model
        # None is the coarsest patch.
        kernels.setdefault(model.tokenizer, []).append(model.base_kernel or max(model.patches))
    assert kernels == {"ckm": [4, 8, 16, 32], "csm": [16, 32]}
    assert len(varied(base_kernel().trainings, "base_kernel", "tokenizer")) == 1


def test_sets_of_patches_are_the_papers():
    study = patch_sets()
    for kind in ("csm", "ckm"):
        own = [t for t in study.trainings if t.config().model.tokenizer == kind]
        assert tuple(t.config().model.patches for t in own) == PATCH_SETS
        assert {t.config().num_updates / len(t.config().model.patches) for t in own} == {400}
    assert study.trainings[-1].config().model.patches == (16,)


def test_contexts_end_at_the_same_frame():
    study = context_length()
    (comparison,) = study.comparisons
    assert [t.config().model.context for t in study.trainings] == [*CONTEXTS, *CONTEXTS]
    assert comparison.start + max(CONTEXTS) == 36
    assert len(varied(study.trainings, "context", "tokenizer")) == 1


def test_the_whole_models_of_the_omitted_patch_are_those_of_the_usual_base_kernel():
    whole = {t.name: t.config() for t in omitted_patch().trainings if "without" not in t.name}
    kernels = {t.name: t.config() for t in base_kernel().trainings}
    assert whole.items() <= kernels.items()


@pytest.mark.parametrize("check", [laid, pytest.param(stepped, marks=pytest.mark.slow)])
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_model_fits_its_grid(study, check):
    configs = [replace(training, packaged=False).config() for training in study.trainings]
    for config in {str(config.model): config for config in configs}.values():
        assert check(config) == config.model.patches
