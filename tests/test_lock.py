"""What `make setup` installs is what was pinned, and its hashes are known."""

import re
import runpy
from pathlib import Path

import pytest
from packaging.tags import parse_tag

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "lock.py"


@pytest.fixture(scope="module")
def lock():
    """The names of the script that writes the lock."""
    return runpy.run_path(str(SCRIPT))


def test_the_lock_has_every_pin_with_hashes(lock):
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            pin, *options = line.split()
            assert options, f"{pin} has no hash"
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", o) for o in options), pin
            found[pin] = options
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    left_out = "#", *(f"{name}==" for name in lock["UNHASHED"])
    wanted = [pin for pin in pins if not pin.startswith(left_out)]
    assert list(found) == wanted, "run `make lock`"


def test_setup_installs_by_hashes_all_but_what_has_none(lock):
    recipe = (ROOT / "Makefile").read_text().partition("$(STAMP):")[2].partition("\n\n")[0]
    installs = [line for line in recipe.splitlines() if "pip install" in line]
    assert len(installs) == 3
    assert "--require-hashes --only-binary :all: -r requirements.lock" in installs[0]
    assert installs[1].split()[-1:] == list(lock["UNHASHED"])
    assert "--no-deps --no-build-isolation --editable ." in installs[2]


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("cp311-cp311-manylinux_2_28_x86_64", True),
        ("cp312-cp312-macosx_11_0_arm64", True),
        ("cp38-abi3-manylinux2014_aarch64", True),
        ("cp311-none-win_amd64", True),
        ("cp310-cp310-manylinux_2_28_x86_64", False),
        ("cp313-cp313t-manylinux_2_28_x86_64", False),
        ("cp311-cp311-musllinux_1_2_x86_64", False),
        ("pp311-pypy311_pp73-manylinux_2_28_x86_64", False),
        ("py2-none-any", False),
    ],
)
def test_wheels_are_those_of_pythons_and_systems_that_matter(lock, tag, fits):
    assert any(map(lock["fits"], parse_tag(tag))) == fits


def test_hashes_are_read_from_the_page_of_an_index(lock):
    """A file of another version, one without hash, a source archive, and two that count."""
    names = {
        "a_b-1.0-py3-none-any.whl": "a" * 64,
        "a_b-1.0-cp311-cp311-win_amd64.whl": "b" * 64,
        "a_b-1.0.tar.gz": "c" * 64,
        "a_b-1.1-py3-none-any.whl": "d" * 64,
    }
    page = [f'<a href="../x/{name}#sha256={digest}">{name}</a>' for name, digest in names.items()]
    links = lock["Links"]()
    links.feed("\n".join([*page, '<a href="../x/a_b-1.0-cp312-cp312-win_amd64.whl">no hash</a>']))
    assert links.files == names
    assert lock["wheels"](links.files, lock["Version"]("1.0")) == ["a" * 64, "b" * 64]
