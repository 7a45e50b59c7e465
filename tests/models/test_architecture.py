"""Every number of an architecture: set, saved, read again, refused."""

import json

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.models.architecture import Architecture, design


def make(make_domain, **options):
    given = {"tokenizer": "csm", "patches": (4, 8, 16), "size": "tiny", "context": 4}
    return design(**({"processor": "vit", "domain": make_domain()} | given | options))


def test_every_number_can_be_set(make_domain):
    options = {"width": 48, "heads": 4, "blocks": 3, "mlp_dim": 50, "base_kernel": 32, "stages": 3,
               "stage_dim": 7, "decoder": "paper", "time": "attend", "causal": False,
               "max_turns": 9, "layer_scale": 1e-6, "mlp": "behind", "drop_path": 0.1, "window": 5,
               "mode_blocks": 4, "refine": 6}  # fmt: skip
    a = make(make_domain, **options)
    assert a.kernels == (4, 4, 2)
    for name in options.keys() - {"base_kernel", "stages"}:
        assert getattr(a, name) == options[name]


def test_base_kernel_is_one_int_or_one_for_each_stage(make_domain):
    assert make(make_domain).kernels == (4, 4)
    assert make(make_domain, base_kernel=32).kernels == (8, 4)
    assert make(make_domain, base_kernel=(8, 8)).kernels == (8, 8)


def test_blocks_of_modes_divide_any_width_by_default(make_domain):
    assert [make(make_domain, processor="afno", width=w, heads=3).mode_blocks
            for w in (96, 12, 6)] == [8, 4, 2]  # fmt: skip


def test_frames_are_folded_unless_they_attend(make_domain):
    fold, attend = make(make_domain), make(make_domain, time="attend")
    assert (fold.time, fold.causal, fold.folded, fold.attended) == ("fold", False, 4, 1)
    assert (attend.time, attend.causal, attend.folded, attend.attended) == ("attend", True, 1, 4)


@pytest.mark.parametrize("time", ["fold", "attend"])
def test_dict_round_trip(make_domain, time):
    a = make(make_domain, patches=((4, 8), 16), time=time)
    assert Architecture.from_dict(json.loads(json.dumps(a.to_dict()))) == a


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"processor": "vitt"},
            "processor is 'vitt'; expected one of vit, axial, swin, afno .did you mean 'vit'",
        ),
        ({"tokenizer": "cms"}, "expected one of fixed, csm, ckm"),
        ({"size": "8m"}, "expected one of nano, tiny, 7m, 25m, 50m, 100m"),
        ({"mlp": "before"}, "mlp is 'before'; expected one of beside, behind"),
        ({"widht": 3}, "option is 'widht'.*did you mean 'width'"),
        ({"decoder": "sum"}, "decoder is 'sum'; expected one of paper, keep"),
        ({"time": "folded"}, "time is 'folded'; expected one of fold, attend .did you mean 'fold'"),
        (
            {"causal": True},
            "causal is True with time 'fold'.*choose causal=False, or time='attend'",
        ),
        ({"patches": ()}, r"patches is \(\)"),
        ({"patches": ((4, 4, 4),)}, "one for each of 2 axes"),
        ({"context": 0}, "context is 0"),
        ({"width": 50, "heads": 4}, "choose a multiple of 8"),
        ({"window": 0}, "window is 0; expected at least 1"),
        ({"processor": "afno", "mode_blocks": 5}, "width 96 does not split into 5 blocks of modes"),
        ({"drop_path": 1.0}, "0 <= drop_path < 1"),
        ({"tokenizer": "fixed"}, "has one patch, 3 were given"),
        ({"base_kernel": (4, 4), "stages": 3}, "does not have 3 stages"),
    ],
)
def test_refusals(make_domain, options, message):
    with pytest.raises(ot.OvertoneError, match=message):
        make(make_domain, **options)


def test_kernels_too_small_for_a_patch_are_refused_when_building(make_domain):
    with pytest.raises(ot.PatchError, match="larger than the base kernel"):
        ot.build("vit", domain=make_domain(), patches=(4, 16), base_kernel=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": 10**9}, "blocks is 1000000000; expected at most 1000"),
        ({"stages": 10**9}, "stages is 1000000000; expected at most 1000"),
        ({"context": 10**9}, "context is 1000000000; expected at most 10000"),
        ({"width": 10**400}, "width is a number of more than 30 digits; expected at most"),
        ({"patches": (10**9,)}, "can't split patch 1000000000 over 2 stages"),
        ({"base_kernel": 10**9}, "can't split patch 1000000000"),
        ({"base_kernel": (10**400, 2)}, "kernel is a number of more than 30 digits"),
        ({"width": 96.0}, r"width is 96\.0; expected an int"),
        ({"heads": "3"}, "heads is '3'; expected an int"),
        ({"blocks": True}, "blocks is True; expected an int"),
        ({"layer_scale": float("nan")}, "layer_scale is nan"),
        ({"patches": 4.0}, r"patches is 4\.0; expected at least one"),
    ],
)
def test_numbers_that_nobody_could_build(make_domain, options, message):
    with pytest.raises(ot.OvertoneError, match=message):
        make(make_domain, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"width": 6 * 10**8, "heads": 3},
        {"mlp_dim": 2 * 10**9},
        {"stage_dim": 2 * 10**9},
        {"refine": 10**6},
        {"base_kernel": (2**20, 2**20)},
        {"width": 60_000, "heads": 3, "blocks": 1000},
        {"context": 10_000, "base_kernel": (1024, 4)},
    ],
)
def test_what_does_not_fit_into_memory_is_refused_before_it_is_built(make_domain, options):
    message = r"a model of more than .*e\+\d\d parameters takes .*, but only .* are available"
    with pytest.raises(ot.OvertoneError, match=message):
        ot.build("vit", domain=make_domain(), **options)


@pytest.mark.parametrize("processor", ["vit", "axial", "swin", "afno"])
@pytest.mark.parametrize(
    "options",
    [{}, {"time": "attend"}, {"context": 1}, {"context": 100}, {"size": "nano", "refine": 32}],
)
def test_no_model_has_fewer_weights_than_are_counted(make_domain, processor, options):
    model = ot.build(processor, domain=make_domain(), **options)
    assert 0.5 < model.architecture.least_weights / model.num_parameters <= 1


def test_the_users_limit_counts(make_domain, monkeypatch):
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "1MB")
    with pytest.raises(ot.OvertoneError, match=r"only 1\.0 MB of memory are available"):
        ot.build("vit", domain=make_domain(), size="tiny")


def test_numbers_of_numpy_are_taken(make_domain):
    one = make(make_domain, patches=(np.int64(4), 8), base_kernel=np.int64(16))
    assert one == make(make_domain, patches=(4, 8), base_kernel=16)
    assert make(make_domain, patches=np.array([4, 8])) == make(make_domain, patches=(4, 8))


PAPER = {"7m": (192, 768), "25m": (384, 1536), "50m": (512, 2048), "100m": (768, 3072)}
"""The paper's embed dim and MLP dim by size; those of its axial 50M are ours, it states none."""


def paper_arithmetic(width, mlp_dim, fields, ndim):
    """Parameters of 12 blocks and of a two-stage tokenizer with kernels of 4 cells, by hand.

    A block has time and space attention of four square matrices each, and a gated MLP: `mlp_dim`
    outputs that make half as many, and the way back.
    """
    block = 8 * width**2 + width * mlp_dim + mlp_dim // 2 * width
    stages = width // 4 * 4**ndim * (fields + width)
    return 12 * block + 2 * stages


@pytest.mark.parametrize("processor", ["vit", "axial"])
@pytest.mark.parametrize("size", PAPER)
@pytest.mark.parametrize(("shape", "fields"), [((128, 256), 4), ((64, 64, 64), 6)])
def test_sizes_have_the_parameters_of_the_papers_table(processor, size, shape, fields):
    domain = ot.Domain(shape, (1.0,) * len(shape), "open", [f"u{i}" for i in range(fields)])
    paper = {"time": "attend", "mlp": "behind", "layer_scale": 0.0, "decoder": "paper"}
    with torch.device("meta"):
        model = ot.build(processor, domain=domain, size=size, tokenizer="ckm", **paper)
    expected = paper_arithmetic(*PAPER[size], fields, len(shape))
    assert model.num_parameters == pytest.approx(expected, rel=0.05)


def test_the_papers_names_are_near_its_arithmetic_in_2d():
    """Its 25M and 100M, and its axial 45M to 50M; its smallest is 7M here, 7.6M there."""
    named = {"25m": 25e6, "50m": 47.5e6, "100m": 100e6}
    for size, count in named.items():
        assert paper_arithmetic(*PAPER[size], 4, 2) == pytest.approx(count, rel=0.05)
    assert 6e6 < paper_arithmetic(*PAPER["7m"], 4, 2) < 7e6 < 7.6e6


@pytest.mark.parametrize(("time", "stage_dim"), [("fold", 64), ("attend", 24)])
def test_stages_that_read_all_frames_are_wider(make_domain, time, stage_dim):
    assert make(make_domain, width=96, heads=3, time=time).stage_dim == stage_dim
