"""The sentence says what was found, and the JSON file is the record."""

import json
import math

import pytest

from overtone.evaluate.diagnosis import Artifact, Diagnosis, describe


def artifact(period=(16, 16), statistic="lines", p_value=1e-9, share=0.08, exponent=1.94):
    return Artifact(
        period=period,
        statistic=statistic,
        excess=12.34,
        p_value=p_value,
        share=share,
        contrast=3.21,
        exponent=exponent,
        excess_by_step=(1.0,),
        power_by_step=(1.0,),
        cell=[[1.0]],
    )


def test_the_sentence_in_full():
    assert describe(artifact(), [2, 3, 4]) == (
        "Grid artifact of period 16 cells on both axes: 12.3 dB above its spectral neighbourhood "
        "(p < 1e-6), 8 % of the residual's power, growing like step^1.9."
    )
    assert describe(artifact(statistic="energy", share=math.nan), [16]) == (
        "Grid artifact of random sign, period 16 cells on both axes: the error's energy is 12.3 dB "
        "above its spectral neighbourhood (p < 1e-6), 3.2 dB larger at one place of the patch than "
        "at another, growing like step^1.9."
    )
    assert describe(artifact(statistic="seams", share=math.nan), [16]) == (
        "Seams between patches, period 16 cells on both axes: the error jumps 12.3 dB more at them "
        "than within (p < 1e-6), growing like step^1.9."
    )


@pytest.mark.parametrize(
    ("period", "words"),
    [
        ((8,), "period 8 cells:"),
        ((8, 8, 8), "period 8 cells on all three axes:"),
        ((4, 8), "period 4 cells along x and 8 along y:"),
        ((1, 8), "period 8 cells along y alone:"),
        ((4, 1, 8), "period 4 cells along x and 8 along z:"),
    ],
)
def test_periods_by_axis(period, words):
    assert words in describe(artifact(period), [8])


@pytest.mark.parametrize(
    ("exponent", "end"),
    [
        (0.05, "power, steady over the steps."),
        (-1.0, "power, shrinking like step^-1.0."),
        (math.nan, "power."),
    ],
)
def test_growth(exponent, end):
    assert describe(artifact(exponent=exponent), [16]).endswith(end)


@pytest.mark.parametrize(
    ("tested", "words"),
    [
        (range(2, 33), "periods 2 to 32"),
        ([16], "period 16"),
        ([(4, 8)], "period 4x8"),
        ([4, 16], "periods 4, 16"),
    ],
)
def test_nothing_found(tested, words):
    assert describe(None, list(tested)) == f"No grid artifact found ({words} tested)."


def test_shares_and_chances_are_rounded_by_their_size():
    assert "0.034 % of" in describe(artifact(share=0.000341), [16])
    assert "57 % of" in describe(artifact(share=0.567), [16])
    assert "(p = 0.0002)" in describe(artifact(p_value=2e-4), [16])


def test_what_is_saved_can_be_read_again(tmp_path):
    record = Diagnosis(
        sentence="s", found=True, artifact=artifact(exponent=math.nan), tested=(2, (4, 8)),
        prediction="p", truth="t", fields=("a",), grid=(8, 8), periodic=(True, False), samples=1,
        steps=1, error_by_step=(1.0,), spectrum=(), blow_up=None, notes=(), machine={},
    )  # fmt: skip
    record.save(tmp_path / "deep" / "d.json")
    text = (tmp_path / "deep" / "d.json").read_text()
    content = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert content["artifact"]["exponent"] == "NaN"
    again = Diagnosis.model_validate_json(text)
    assert again.tested == (2, (4, 8))
    assert math.isnan(again.artifact.exponent)
    assert again.model_copy(update={"artifact": None}) == record.model_copy(
        update={"artifact": None}
    )
