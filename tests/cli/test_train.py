"""`overtone train` as it is typed."""


def test_the_recipes_are_listed_and_shown(overtone):
    code, text = overtone("train", "list")
    assert (code, "shear-flow-mini" in text.splitlines()) == (0, True)
    code, text = overtone("train", "shear-flow-7m", "train.max_minutes=30", "--show")
    assert (code, "max_minutes: 30.0" in text) == (0, True)


def test_mistakes_are_one_message_and_code_2(overtone, tmp_path):
    for arguments, message in (
        (["shear-flo-mini"], "did you mean 'shear-flow-mini'"),
        (["shear-flow-mini", "train.bach=3"], "did you mean 'train.batch'"),
        (["shear-flow-7m", f"data.path={tmp_path}/none"], "none"),
    ):
        code, text = overtone("train", *arguments, "--out", tmp_path / "run")
        assert code == 2, text
        assert message in text
        assert "Traceback" not in text
