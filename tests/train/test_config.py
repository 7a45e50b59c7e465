"""Settings: merging, refusing, round trips."""

import pytest

from overtone.errors import ConfigError
from overtone.train.config import change, keys, load_config, parse_pairs, read_file
from overtone.train.recipes import recipe


def base():
    return recipe("shear-flow-mini")


def test_pairs_change_what_they_name_and_nothing_else():
    pairs = ["train.max_minutes=30", "optimizer.lr=1e-4", "model.patches=[4, [8, 4]]"]
    config = change(base(), parse_pairs([*pairs, "data.generate.settings.reynolds=1e4"]))
    assert (config.train.max_minutes, config.optimizer.lr) == (30.0, 1e-4)
    assert config.model.patches == (4, (8, 4))
    assert config.data.generate.settings == {"reynolds": 1e4}
    assert config.valid == base().valid


def test_a_file_and_the_written_yaml_agree(tmp_path):
    config = change(base(), {"train.batch": 6, "optimizer.ema": 0.99, "optimizer.clip": None})
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert change(base(), read_file(tmp_path / "config.yaml")) == config
    (tmp_path / "config.json").write_text(config.model_dump_json())
    assert load_config(tmp_path / "config.json") == config


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("train.bach=8", r"no setting 'train.bach' \(did you mean 'train.batch'\?\); "),
        ("train.batch=many", r"train.batch: .*integer.*given: 'many'"),
        ("train.batch=0", "train.batch: .*greater than or equal to 1"),
        ("model.tokenizer=cms", "model.tokenizer: .*'csm', 'ckm' or 'fixed'"),
        ("train.patch_weights=[1, 2]", "expected 3 numbers, one for each of model.patches"),
        ("train.accumulate=3", "can't be divided into train.accumulate 3 parts"),
        ("optimizer.lr=-1", "optimizer.lr: .*greater than 0"),
        ("train.batch", "expected key=value"),
        ("train.batch=[1", "the value is not YAML"),
    ],
)
def test_mistakes_are_named(pair, message):
    with pytest.raises(ConfigError, match=message):
        change(base(), parse_pairs([pair]))


def test_numbers_of_an_emulator_are_not_those_of_a_baseline():
    with pytest.raises(ConfigError, match="model.width is 32.*'unet' has its own.*model.other"):
        change(base(), parse_pairs(["model.name=unet", "model.width=32"]))
    assert change(base(), parse_pairs(["model.name=unet", "model.size=mini"])).model.is_baseline


def test_a_run_without_data():
    with pytest.raises(ConfigError, match="data.path=FOLDER"):
        change(recipe("shear-flow-7m"), {"data.path": None})


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
