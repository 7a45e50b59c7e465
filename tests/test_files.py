"""The same number for the same files, wherever they lie."""

import hashlib
import shutil

from overtone.data.location import find_files
from overtone.files import fingerprint


def test_it_is_the_hash_that_the_docs_describe(tmp_path):
    (tmp_path / "b.hdf5").write_bytes(b"bb")
    (tmp_path / "a.hdf5").write_bytes(b"a" * 3_000_000)
    text = ""
    for name in ("a.hdf5", "b.hdf5"):
        content = (tmp_path / name).read_bytes()
        text += f"{name}\0{len(content)}\0{hashlib.sha256(content).hexdigest()}\0"
    assert fingerprint(find_files(tmp_path, "test")) == hashlib.sha256(text.encode()).hexdigest()


def test_place_and_order_do_not_matter_but_content_and_name_do(tmp_path):
    toy = tmp_path / "toy"
    toy.mkdir()
    for name in "ab":
        (toy / f"{name}.hdf5").write_bytes(name.encode() * 100)
    own, seen = fingerprint(find_files(toy, "test")), []
    copy = shutil.copytree(toy, tmp_path / "elsewhere")
    backwards = find_files(copy, "test")[::-1]
    assert fingerprint(backwards, progress=lambda n, m: seen.append((n, m))) == own
    assert seen == [(1, 2), (2, 2)]
    file = copy / "a.hdf5"
    file.rename(file.with_name("aa.hdf5"))
    assert fingerprint(find_files(copy, "test")) != own
    file.with_name("aa.hdf5").rename(file)
    assert fingerprint(find_files(copy, "test")) == own
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert fingerprint(find_files(copy, "test")) != own
