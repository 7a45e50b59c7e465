"""Check a release: what is said of it, what is built, and what a new user gets from it.

`make release-check` runs all of it and leaves the checked files in dist/. Nothing is published and
no tag is made; docs/releasing.md says how that is done. `--publish` also asks for what only a
published version needs: the tag, and an address of the repository.
"""

from __future__ import annotations

import argparse
import datetime
import email
import email.message
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
MAX_WHEEL_BYTES = 10_000_000
MAX_SDIST_BYTES = 10_000_000
PICTURES = (".png", ".svg", ".gif", ".mp4", ".jpg")
NEEDED = ("overtone/py.typed", "overtone_command.py", "overtone/weights/", "/licenses/LICENSE")
"""What a wheel must have, by a part of a file's name."""
TOPS = {"src", ".ci", "examples", ".gitignore", "CHANGELOG.md", "CITATION.cff", "LICENSE",
        "PKG-INFO", "README.md", "pyproject.toml"}  # fmt: skip
"""All that an sdist may have in its first level."""
MISTAKE = ["evaluate", "no-such-model", "no-such-data"]
"""Arguments that are wrong: one message and code 2, no traceback."""
SCHEDULE, PLAYED = "8-16+shift", 10
"""What is played without torch, and for how many steps."""
OWN = f"""
import numpy as np, overtone as ot
model = ot.load("shear-flow-mini-csm")
data = ot.data.WellFolder("flows", "test", model.context, coarsen=2)
window, _ = ot.data.collate([data[28]])
np.save("window.npy", window.fields.numpy())
frames = ot.rollout(model, window, steps={PLAYED}, schedule="{SCHEDULE}")
np.save("own.npy", np.stack([frame.numpy() for frame in frames], axis=1))
"""
"""A rollout of a packaged model, on the flow of the example."""
COMPARED = """
import numpy as np
own, played = np.load("own.npy"), np.load("played.npy")
assert own.shape == played.shape
spread = own.std(axis=(0, 1, 3, 4), keepdims=True)
print(float((abs(played - own) / spread).max()))
"""
"""The largest difference of the two, in standard deviations of a field."""


def version() -> str:
    """The version that the sources state."""
    text = (ROOT / "src/overtone/version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.M)
    assert found is not None
    return found[1]


# What is said


def contradictions(
    stated: str, *, changelog: str, citation: str, security: str, tags: list[str]
) -> Iterator[str]:
    """Where the places that name a version say something else.

    Args:
        stated: the version of the sources.
        changelog: text of CHANGELOG.md, whose newest release is this version with its date.
        citation: text of CITATION.cff.
        security: text of SECURITY.md.
        tags: those of the commit that is checked out.
    """
    # While the next version grows, its changes stand above under "Unreleased".
    heading = re.search(r"^## (?!Unreleased)(.*)$", changelog, flags=re.M)
    found = re.fullmatch(r"(\S+) - (\d{4}-\d\d-\d\d)", heading[1]) if heading else None
    if found is None or found[1] != stated:
        said = f"'{heading[1]}'" if heading else "nothing"
        yield f"CHANGELOG.md's newest release is {said}, not '{stated} - YYYY-MM-DD'"
    cited = yaml.safe_load(citation)
    if str(cited.get("version")) != stated:
        yield f"CITATION.cff has version {cited.get('version')}, not {stated}"
    released = cited.get("date-released")
    if not isinstance(released, datetime.date):
        yield "CITATION.cff has no date-released"
    elif found is not None and released.isoformat() != found[2]:
        yield f"CITATION.cff has date-released {released}, CHANGELOG.md {found[2]}"
    series = ".".join(stated.split(".")[:2])
    if not re.search(rf"^\| {re.escape(series)} +\| yes", security, flags=re.M):
        yield f"SECURITY.md does not list {series} as supported"
    versions = [tag for tag in tags if re.fullmatch(r"v\d.*", tag)]
    if versions and f"v{stated}" not in versions:
        yield f"this commit is tagged {', '.join(versions)}, not v{stated}"


def said_here() -> list[str]:
    """The contradictions of this folder."""
    names = {"changelog": "CHANGELOG.md", "citation": "CITATION.cff", "security": "SECURITY.md"}
    texts = {key: (ROOT / name).read_text() for key, name in names.items()}
    return list(contradictions(version(), tags=git("tag", "--points-at", "HEAD").split(), **texts))


def git(*words: str) -> str:
    """What git says of this folder, "" where it is no clone."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()  # noqa: S603


# What is built


def build(source: Path, out: Path, *kinds: str) -> list[Path]:
    """Sdist or wheel of a folder of sources, dated by its last commit.

    Args:
        source: the folder.
        out: where to.
        kinds: "sdist", "wheel".
    """
    date = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or "1577836800"
    targets = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *targets]
    environment = os.environ | {"SOURCE_DATE_EPOCH": date}
    run(command, cwd=source, env=environment)
    return sorted(out.iterdir())


def differences(first: list[Path], second: list[Path]) -> Iterator[str]:
    """Files that are not the same, byte by byte."""
    names = [path.name for path in first]
    if names != [path.name for path in second]:
        yield f"one build gave {names}, another {[path.name for path in second]}"
        return
    for one, other in zip(first, second, strict=True):
        if digest(one) != digest(other):
            yield f"two builds of {one.name} differ"


def digest(path: Path) -> str:
    """SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unpack(sdist: Path, out: Path) -> Path:
    """The folder that an sdist holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    (folder,) = out.iterdir()
    return folder


def wheel_faults(wheel: Path) -> Iterator[str]:
    """What is wrong with a wheel: size, files, metadata."""
    size = wheel.stat().st_size
    if size >= MAX_WHEEL_BYTES:
        yield f"the wheel has {size / 1e6:.2f} MB, {MAX_WHEEL_BYTES / 1e6:.0f} are allowed"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for part in NEEDED:
        if not any(part in name for name in names):
            yield f"the wheel has no {part}"
    for name in names:
        if not re.match(r"overtone/|overtone_command\.py$|overtone-[^/]+\.dist-info/", name):
            yield f"the wheel has {name}"
        if name.endswith((*PICTURES, ".pyc")):
            yield f"the wheel has {name}"
    yield from metadata_faults(metadata_of(wheel))


def metadata_of(wheel: Path) -> email.message.Message:
    """What a wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(place))


def metadata_faults(metadata: email.message.Message) -> Iterator[str]:
    """What a package index or a reader of its page would find wrong."""
    from trove_classifiers import classifiers

    known = set(classifiers)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        "Name": "overtone",
        "Version": version(),
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    for key, value in wanted.items():
        if metadata[key] != value:
            yield f"{key} is {metadata[key]}, not {value}"
    for classifier in metadata.get_all("Classifier", []):
        if classifier not in known:
            yield f"no package index knows the classifier '{classifier}'"
    yield from page_faults(str(metadata.get_payload()))


def page_faults(text: str) -> Iterator[str]:
    """What of a README can't be shown outside of the repository."""
    from markdown_it import MarkdownIt

    page = MarkdownIt("commonmark").enable("table").render(text)
    if not re.search(r"<h1>Overtone</h1>", page):
        yield "the README has no title"
    for target in re.findall(r'(?:href|src)="([^"]*)"', page):
        if not re.match(r"https?://|mailto:|#", target):
            yield f"the README's link {target} leads nowhere outside of the repository"


def sdist_faults(sdist: Path) -> Iterator[str]:
    """What is wrong with an sdist: size, and files that no build needs."""
    size = sdist.stat().st_size
    if size >= MAX_SDIST_BYTES:
        yield f"the sdist has {size / 1e6:.2f} MB, {MAX_SDIST_BYTES / 1e6:.0f} are allowed"
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for name in names:
        if name.partition("/")[0] not in TOPS or name.endswith((*PICTURES, ".pyc")):
            yield f"the sdist has {name}"


# What a new user gets


class Environment:
    """An environment of its own in a folder outside of the clone, in which commands are run.

    Args:
        folder: where commands run.
        name: of the environment.
    """

    def __init__(self, folder: Path, name: str):
        self.folder = folder
        self.programs = folder / name / ("Scripts" if os.name == "nt" else "bin")
        own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        own |= {"OVERTONE_CACHE": str(folder / "cache"), "MPLCONFIGDIR": str(folder / "mpl")}
        # For torch the constraints name a version alone; whatever else pip is told stays as it is.
        own.setdefault("PIP_CONSTRAINT", str(ROOT / "constraints.txt"))
        self.variables = own
        run([sys.executable, "-m", "venv", str(folder / name)], cwd=folder, env=own)

    def __call__(self, program: str, *words: str) -> str:
        """Run one of its programs, which must succeed; returns what it printed."""
        shown = ("…" if "\n" in word else Path(word).name for word in words)
        print("  $", program, *shown, flush=True)
        command = [str(self.programs / program), *words]
        return run(command, cwd=self.folder, env=self.variables)


def walk(wheel: Path, folder: Path) -> Iterator[str]:
    """Install a wheel in an environment of its own, and use it, away from the sources.

    Args:
        wheel: the file.
        folder: an empty one outside of the clone.
    """
    user = Environment(folder, "environment")
    user("python", "-m", "pip", "install", "-qq", f"{wheel}[export]")
    user("python", "-m", "pip", "check")
    said = user("python", "-c", "import overtone; print(overtone.__version__, overtone.__file__)")
    number, _, place = said.strip().partition(" ")
    if number != version() or not Path(place).is_relative_to(folder):
        yield f"what is imported is {number} at {place}"
    if not Path(place).with_name("py.typed").is_file():
        yield "what is installed is not marked as typed"
    if "demo" not in user("overtone", "--help"):
        yield "overtone --help does not name the demo"
    user("overtone", "info")
    shutil.copy(ROOT / "examples" / "first_rollout.py", folder)
    user("python", "first_rollout.py")
    user("overtone", "demo", "--steps", "8", "--flows", "1", "--out", "demo")
    if not (folder / "demo" / "report.html").is_file():
        yield "the demo wrote no report"
    yield from without_torch(user)
    done = subprocess.run(  # noqa: S603
        [str(user.programs / "overtone"), *MISTAKE],
        cwd=folder, env=user.variables, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 2 or "Traceback" in done.stderr + done.stdout:
        yield f"a mistake ended with code {done.returncode}: {done.stderr[-300:]}"


def without_torch(user: Environment) -> Iterator[str]:
    """Export a packaged model, and roll it out where there is neither torch nor Overtone.

    Args:
        user: an environment that has Overtone, in whose folder the example has run.
    """
    user("python", "-c", OWN)
    patches = ("--patch", "8", "--patch", "16")
    user("overtone", "export", "shear-flow-mini-csm", *patches, "--out", "programs")
    other = Environment(user.folder, "without-torch")
    other("python", "-m", "pip", "install", "-qq", "numpy", "onnxruntime")
    if {"torch", "overtone"} & {*other("python", "-m", "pip", "list").lower().split()}:
        yield "the environment without torch has it"
    options = ("--steps", str(PLAYED), "--schedule", SCHEDULE, "--out", "played.npy")
    other("python", "programs/rollout.py", "window.npy", *options)
    difference = float(other("python", "-c", COMPARED))
    print(f"  differs by {difference:.1g} standard deviations after {PLAYED} steps")
    if not difference < 1e-4:
        yield f"without torch, frames differ by {difference:.2g} standard deviations"


def run(command: list[str], *, cwd: Path, env: dict[str, str]) -> str:
    """Run a command that must succeed; returns what it printed."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        sys.stderr.write(done.stdout[-2000:] + done.stderr[-4000:])
        raise SystemExit(f"error: {' '.join(command)} ended with code {done.returncode}")
    return done.stdout


def published(metadata: email.message.Message) -> Iterator[str]:
    """What only a version that is published must have."""
    if f"v{version()}" not in git("tag", "--points-at", "HEAD").split():
        yield f"this commit has no tag v{version()}"
    if not metadata.get_all("Project-URL"):
        yield "no address of the repository: set OVERTONE_REPOSITORY=https://…"
    if git("status", "--porcelain"):
        yield "this folder has changes that no commit has"
    if "## Unreleased" in (ROOT / "CHANGELOG.md").read_text():
        yield "CHANGELOG.md lists changes as unreleased"


# All of it


def main() -> None:
    """Run the checks one after another; the first that finds something ends it with code 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--publish", action="store_true", help="also ask for tag and address")
    parser.add_argument("--no-install", action="store_true", help="build and look, but don't walk")
    asked = parser.parse_args()
    check(f"version {version()}: changelog, citation, security, tag", said_here)
    with tempfile.TemporaryDirectory(prefix="overtone-release-") as scratch:
        folder = Path(scratch).resolve()
        first = build(ROOT, folder / "first", "sdist", "wheel")
        wheel, sdist = first  # in the order of their names
        again = build(ROOT, folder / "second", "sdist", "wheel")
        check("two builds, byte by byte", lambda: differences(first, again))
        inner = build(unpack(sdist, folder / "sdist"), folder / "third", "wheel")
        check("the wheel of the sdist", lambda: differences([wheel], inner))
        check(f"sdist, {sdist.stat().st_size / 1e6:.2f} MB", lambda: sdist_faults(sdist))
        check(f"wheel, {wheel.stat().st_size / 1e6:.2f} MB", lambda: wheel_faults(wheel))
        if asked.publish:
            check("tag, address, nothing uncommitted", lambda: published(metadata_of(wheel)))
        if not asked.no_install:
            (folder / "user").mkdir()
            check("a new user's walk", lambda: walk(wheel, folder / "user"))
        keep([wheel, sdist])


def check(what: str, faults: Callable[[], Iterator[str] | list[str]]) -> None:
    """Print what is checked; end with code 1 and all faults, if there are any."""
    print(what, flush=True)
    if found := list(faults()):
        raise SystemExit("\n".join(f"error: {fault}" for fault in found))


def keep(built: list[Path]) -> None:
    """Copy what was checked to dist/, with its digests; older files there go."""
    out = ROOT / "dist"
    out.mkdir(exist_ok=True)
    for old in out.glob("overtone-*"):
        old.unlink()
    for path in built:
        shutil.copy(path, out)
        print(f"{digest(path)}  dist/{path.name}")


if __name__ == "__main__":
    main()
