"""Settings: merging, refusing, round trips."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from overtone.errors import ConfigError
from overtone.train.config import RunConfig
from overtone.train.recipes import recipe
from overtone.train.settings import OPEN, change, keys, load_config, parse_pairs, read_file


def base():
    return recipe("shear-flow-mini")


def test_pairs_change_what_they_name_and_nothing_else():
    pairs = ["train.max_minutes=30", "optimizer.lr=1e-4", "model.patches=[4, [8, 4]]"]
    config = change(base(), parse_pairs([*pairs, "data.generate.settings.reynolds=1e4"]))
    assert (config.train.max_minutes, config.optimizer.lr) == (30.0, 1e-4)
    assert config.model.patches == (4, (8, 4))
    assert config.data.generate.settings == {"reynolds": 1e4}
    assert config.valid == base().valid


@pytest.mark.parametrize("time", ["fold", "attend"])
def test_a_file_and_the_written_yaml_agree(tmp_path, time):
    changes = {"train.batch": 6, "optimizer.ema": 0.99, "optimizer.clip": None}
    changes |= {"model.time": time, "train.unroll": 2, "train.unroll_from": 0.7}
    config = change(base(), changes)
    assert (base().model.time, config.model.time) == ("fold", time)
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert change(base(), read_file(tmp_path / "config.yaml")) == config
    (tmp_path / "config.json").write_text(config.model_dump_json())
    assert load_config(tmp_path / "config.json") == config


@pytest.mark.parametrize(
    ("name", "causal", "time", "now"),
    [
        ("vit", True, "attend", None),
        ("axial", False, "attend", False),
        ("unet", True, "fold", None),
        ("cvit", True, "fold", None),
    ],
)
def test_runs_of_older_versions_attended(tmp_path, name, causal, time, now):
    """They wrote that they were causal, also of models to which that means nothing."""
    older = change(base(), {"model.name": name, "model.size": "mini"}).model_dump(mode="json")
    older["model"] |= {"causal": causal}
    del older["model"]["time"], older["train"]["unroll_from"]
    (tmp_path / "config.json").write_text(json.dumps(older))
    changes = {"model.name": name, "model.size": "mini", "model.time": time, "model.causal": now}
    changes["train.unroll_from"] = 0.0
    assert load_config(tmp_path / "config.json") == change(base(), changes)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("train.bach=8", r"no setting 'train.bach' \(did you mean 'train.batch'\?\); "),
        ("train.batch=many", r"train.batch: .*integer.*given: 'many'"),
        ("train.batch=0", "train.batch: .*greater than or equal to 1"),
        ("model.tokenizer=cms", "model.tokenizer: .*'csm', 'ckm' or 'fixed'"),
        ("train.patch_weights=[1, 2]", "expected 3 numbers, one for each of model.patches"),
        ("parallel.strategy=fsdp", "use parallel.strategy=ddp, or optimizer.kind=adamw"),
        ("train.accumulate=3", "can't be divided into train.accumulate 3 parts"),
        ("train.unroll_from=1.01", "train.unroll_from: .*less than or equal to 1 .*given: 1.01"),
        ("train.unroll_from=-0.1", "train.unroll_from: .*greater than or equal to 0"),
        ("model.time=folded", "model.time: .*'fold' or 'attend'"),
        ("optimizer.lr=-1", "optimizer.lr: .*greater than 0"),
        ("train.batch", "expected key=value"),
        ("train.batch=[1", "the value is not YAML"),
        ("train.batch=1000000000000", "train.batch: .*less than or equal to 1000000000"),
        ("model.blocks=1e18", "model.blocks: .*less than or equal to 1000000000"),
        ("model.patches=[]", "model.patches: .*at least 1 item"),
        ("train.patch_weights=[.inf, 1, 1]", "train.patch_weights: .*finite.*given: inf"),
        ("train.patch_weights=[nan, 1, 1]", "train.patch_weights"),
        ("train.patch_weights=[1e308, 1e308, 1e308]", "train.patch_weights is"),
        ("optimizer.lr=inf", "optimizer.lr: .*finite"),
        ("valid.every=nan", "valid.every: .*finite number"),
        ("data.generate.settings.reynolds=.nan", "data.generate.settings.reynolds: .*finite"),
        ("model.other.size=.inf", "model.other.size.*finite number"),
        (f"model.other.size=0x1{'0' * 16}", "model.other.size: .*at most 64 bits"),
        (f"train.seed={10**30}", "train.seed: .*less than 9223372036854775808"),
        (f"train.seed={'9' * 6000}", "train.seed.*not YAML: Exceeds the limit"),
        (f"train.batch=0x{'f' * 6000}", "train.batch: .*given: a number of too many digits"),
        (f"train.batch={'a' * 6000}", "train.batch: .*given: 'a{79}…"),
        ("train.batch=2001-99-99", "train.batch: .*given: '2001-99-99'"),
        ("train.batch=2001-12-14", "train.batch: .*given: '2001-12-14'"),
        ("train.batch=!!timestamp 2001-12-14", "could not determine a constructor"),
        ("model.other.x=!!binary aGk=", "could not determine a constructor"),
        ("model.other.x=!!set {a}", "could not determine a constructor"),
        ("model.other.x=[&a [1], *a]", "repeated by reference"),
        (f"model.other.x={'[' * 30}{']' * 30}", "more than 20 within each other"),
        (f"model.other.x=[{'1,' * 10_001}]", "more than 10,000 values"),
        (f"model.other.x={'1' * 100_001}", "longer than 100,000 characters"),
    ],
)
def test_mistakes_are_named(pair, message):
    with pytest.raises(ConfigError, match=message):
        change(base(), parse_pairs([pair]))


def test_a_value_and_settings_below_it():
    with pytest.raises(ConfigError, match="'model.other.a.b' is to be 2, but 'a' is 1 and has no"):
        change(base(), parse_pairs(["model.other.a=1", "model.other.a.b=2"]))


@pytest.mark.parametrize("seed", [0, 2**32, 2**63 - 1])
def test_any_seed_that_is_taken_can_be_used(seed):
    import torch

    from overtone.train.draws import stream

    seed = change(base(), {"train.seed": seed}).train.seed
    torch.manual_seed(seed)
    assert stream(seed, "order", 2**63).random() < 1


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_an_alias_bomb_is_refused(tmp_path):
    (tmp_path / "bomb.yaml").write_text(BOMB)
    with pytest.raises(ConfigError, match="repeated by reference"):
        read_file(tmp_path / "bomb.yaml")


def test_a_file_without_end_is_refused():
    with pytest.raises(ConfigError, match="longer than 100,000"):
        read_file("/dev/zero")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**4000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
KEYS = st.sampled_from([*keys(), *(f"{prefix}x" for prefix in OPEN), "model.other.x.y"])
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["&a [*a]", "*b", "<<: {a: 1}", "? x", "!!int x", "- - -", "1:2:3", "0o9", "=", "\ud800"]
)


@pytest.mark.fuzz
@example({"model.other.x": 1, "model.other.x.y": 2})
@example({"model.other.x": float("inf")})
@given(st.dictionaries(KEYS | st.text(max_size=9), VALUES, max_size=3))
def test_changes_of_any_kind_give_a_configuration_or_say_why_not(changes):
    assert_sound(lambda: change(base(), changes))


@pytest.mark.fuzz
@example("train.batch", "2001-99-99")
@example("model.other.x", "!!binary /w==")
@given(KEYS, TEXTS | VALUES.map(ascii))
def test_pairs_of_any_kind_give_a_configuration_or_say_why_not(key, text):
    assert_sound(lambda: change(base(), parse_pairs([f"{key}={text}"])))


@pytest.mark.fuzz
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | TEXTS.map(lambda t: t.encode(errors="replace")))
def test_files_of_any_kind_give_a_configuration_or_say_why_not(tmp_path, content):
    (tmp_path / "any.yaml").write_bytes(content)
    (tmp_path / "config.json").write_bytes(content)
    assert_sound(lambda: change(base(), read_file(tmp_path / "any.yaml")))
    assert_sound(lambda: load_config(tmp_path / "config.json"))


def assert_sound(make):
    """A configuration that can be written and read again, or a ConfigError."""
    try:
        config = make()
    except ConfigError:
        return
    assert RunConfig.model_validate_json(config.model_dump_json()) == config
    assert config.to_yaml()


@pytest.mark.parametrize("text", ["- a\n- b", "a: [", "\x00"])
def test_files_that_are_no_settings(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ConfigError):
        read_file(tmp_path / "bad.yaml")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ConfigError, match="can't be read"):
        read_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="can't be read"):
        load_config(tmp_path / "none.json")


def test_yaml_can_not_run_code(tmp_path):
    (tmp_path / "bad.yaml").write_text("train: !!python/object/apply:os.system ['true']")
    with pytest.raises(ConfigError, match="not YAML"):
        read_file(tmp_path / "bad.yaml")


def test_every_key_can_be_set_to_what_it_is():
    plain = base().model_dump()
    for key in keys():
        value = plain
        for part in key.split("."):
            value = value[part]
        assert change(base(), {key: value}) == base()
