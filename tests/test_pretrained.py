from overtone import pretrained
from overtone.pretrained import pretrained_folder, pretrained_names


def test_a_name_finds_its_folder_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    assert pretrained_names() == ["tiny"]
    assert pretrained_folder("tiny") == tmp_path / "tiny"
    assert pretrained_folder("../tiny") is None
    assert pretrained_folder("") is None
