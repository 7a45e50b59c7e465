"""The page, well-formed, self-contained and safe; and the report's folder around it."""

import base64
import json
import math
import re
import shlex
from html import unescape
from html.parser import HTMLParser
from itertools import islice
from xml.etree import ElementTree

import pytest
from PIL import Image

from overtone.errors import OvertoneError
from overtone.evaluate.results import Results
from overtone.report import html, write_report
from overtone.report import page as pages
from overtone.report.html import page
from overtone.report.page import Picture
from overtone.report.tables import tables

VOID = {"meta", "img", "br", "link"}


class Checker(HTMLParser):
    """Collects tags and complains about those that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def read(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert not checker.open
    return checker


@pytest.fixture
def picture(tmp_path):
    def make(name="a", caption="What it shows.", size=(40, 30), section="pictures"):
        folder = tmp_path / "figures"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.png"
        Image.effect_noise(size, 50).save(path)
        return Picture((path,), f"title {name}", caption, f"alt {name}", size, section)

    return make


def render(results, pictures=()):
    return page(results, pictures)


def test_the_page_is_well_formed_and_needs_no_network(make_results, picture):
    text = render(make_results(), [picture("a"), picture("b")])
    checker = read(text)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not checker.all("script")
    assert not checker.all("link")
    for attrs in checker.all("img"):
        assert attrs["src"].startswith("data:image/png;base64,")
    outside = [attrs["href"] for attrs in checker.all("a") if not attrs["href"].startswith("#")]
    assert outside == ["results.json"]


def test_figures_have_numbers_captions_and_alternative_texts(make_results, picture):
    checker = read(render(make_results(), [picture("a"), picture("b")]))
    assert [attrs["alt"] for attrs in checker.all("img")] == ["alt a", "alt b"]
    assert len(checker.all("figure")) == len(checker.all("figcaption")) == 2
    assert {"Figure 1.", "Figure 2."} <= set(checker.text)
    assert all({"width", "height"} <= set(attrs) for attrs in checker.all("img"))


def test_what_was_evaluated_is_said(make_results):
    said = " ".join("".join(read(render(make_results())).text).split())
    for words in ("flows, split test", "64 × 96 cells", "12 steps of dt = 0.1", "cpu: one",
                  "overtone evaluate model flows", "1,234 parameters", "How to read this",
                  "periodic", "results.json"):  # fmt: skip
        assert words in said


def test_wide_things_scroll_by_themselves(make_results, picture):
    text = render(make_results(), [picture()])
    for tag in ("<table>", "<img"):
        for part in text.split(tag)[:-1]:
            assert 'class="scroll' in part[-150:]
    assert ".scroll { overflow-x: auto" in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_names_are_escaped(make_model, make_results, picture):
    evil = '<script>alert("x")</script>'
    model = make_model(evil, schedules=[])
    results = make_results([make_model(evil), model], name=evil)
    results = results.model_copy(update={"command": evil, "machine": {evil: evil}})
    made = picture()
    made = Picture(made.files, evil, evil, evil + '" onload="x', made.size, "pictures")
    text = render(results, [made])
    checker = read(text)
    assert "<script" not in text
    assert not checker.all("script")
    assert all("onload" not in attrs for attrs in checker.all("img"))
    assert evil in "".join(checker.text)


def test_the_smaller_format_is_embedded(make_results, picture):
    made = picture()
    svg = made.files[0].with_suffix(".svg")
    svg.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    both = Picture((*made.files, svg), made.title, made.caption, made.alt, made.size, "errors")
    assert "data:image/svg+xml;base64," in render(make_results(), [both])


def test_pictures_beyond_the_limit_are_named_instead(make_results, picture, monkeypatch):
    pictures = [picture("a", size=(100, 100)), picture("b", size=(100, 100))]
    monkeypatch.setattr(pages, "MAX_BYTES", 20_000)
    text = render(make_results(), pictures)
    checker = read(text)
    assert len(checker.all("img")) == 1
    assert len(checker.all("figure")) == 2
    assert "Left out to keep this page small" in text
    assert "figures/b.png" in text


def test_schedules_stay_on_one_line(make_results):
    assert '<span class="whole">4-8-16</span>' in render(make_results())


def check_folder(out, results):
    """One page under 10 MB with every figure, which is also there as PNG and SVG."""
    page = out / "report.html"
    assert page.stat().st_size < 10_000_000
    figures = {path.name for path in (out / "figures").iterdir()}
    stems = {name.rpartition(".")[0] for name in figures}
    assert figures == {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    text = page.read_text()
    assert text.count("<figure") == len(stems) + (out / "rollout.gif").exists()
    assert Results.load(out / "results.json") == results
    return text


@pytest.fixture(scope="module")
def small(make_results, make_samples, tmp_path_factory):
    """A report of one rollout with all that there is to draw: its results and its page."""
    results = make_results(schedules=["4-8-16"])
    samples = make_samples(keys=[("csm", "4-8-16")], steps=(1, 12))
    return results, write_report(results, samples, tmp_path_factory.mktemp("small"))


def test_a_small_report(small):
    results, path = small
    assert path.name == "report.html"
    text = check_folder(path.parent, results)
    embedded = re.search(r"data:image/gif;base64,([^\"]+)", text).group(1)
    assert base64.b64decode(embedded) == (path.parent / "rollout.gif").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_report_in_any_dimension(make_results, make_samples, tmp_path, ndim):
    results = make_results(ndim=ndim)
    write_report(results, make_samples(ndim), tmp_path)
    assert "data:image" in check_folder(tmp_path, results)


@pytest.mark.slow
def test_many_models_and_schedules_stay_small(make_model, make_results, make_samples, tmp_path):
    schedules = ["16", "16+shift", "4-8-16", *(f"warmup:4:{n}" for n in range(5, 10))]
    models = [make_model(name, seed, schedules) for name in "abc" for seed in (0, 1)]
    samples = make_samples(keys=[(name, s) for name in "abc" for s in schedules])
    results = make_results(models)
    write_report(results, samples, tmp_path, animation="none")
    check_folder(tmp_path, results)
    assert not (tmp_path / "rollout.gif").exists()


def test_a_report_of_what_went_wrong(make_model, make_results, alter_run, tmp_path):
    """A blow-up at the first step, NaN, one trajectory, one schedule, no samples."""
    model = make_model(schedules=["16"])
    nan = model.runs[0].vrmse_all.model_copy(update={"value": math.nan})
    model = alter_run(
        model, vrmse=(), vrmse_10=nan, vrmse_all=nan, bsnmse={}, blow_up=1, spectra=(),
        physics={"mass": ()}, harmonics=(),
    )  # fmt: skip
    text = write_report(make_results([model], trajectories=1), None, tmp_path).read_text()
    assert "(step 1)" in text
    assert "One trajectory only" in text
    assert "nan" not in re.sub(r'base64,[^"]+', "", text).lower()


def test_large_animations_are_written_and_linked(
    make_model, make_results, make_samples, tmp_path, monkeypatch
):
    monkeypatch.setattr(html, "drawings", lambda *_: ())  # they take long
    monkeypatch.setattr(pages, "MAX_MOVING", 100)
    samples = make_samples(keys=[("csm", "16")], fields=("tracer",), steps=(1,))
    path = write_report(make_results([make_model(schedules=())]), samples, tmp_path)
    assert "data:image/gif" not in path.read_text()
    assert '<a href="rollout.gif">the file</a>' in path.read_text()
    assert (tmp_path / "rollout.gif").exists()


@pytest.mark.parametrize(("kind", "tag"), [("gif", "img"), ("mp4", "video")])
def test_the_animation_is_the_first_figure(
    make_model, make_results, make_samples, tmp_path, monkeypatch, kind, tag
):
    if kind == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr(html, "drawings", lambda *_: ())  # they take long
    samples = make_samples(keys=[("csm", "16")], fields=("tracer",), steps=(1, 2))
    results = make_results([make_model(schedules=["16"])])
    text = write_report(results, samples, tmp_path, animation=kind).read_text()
    found = read(text)
    assert f"<{tag} " in text.partition('id="figure-rollout"')[2].partition("</figure>")[0]
    assert "in motion" in text.partition('id="figure-rollout"')[2][:200]
    assert [attrs["id"] for attrs in found.all("figure")] == ["figure-rollout"]


ORDER = ["verdict", "pictures", "errors", "dial", "evaluated", "numbers", "artifacts", "scales",
         "training", "reading"]  # fmt: skip


def test_sections_are_in_order_and_in_the_contents(make_results, picture):
    sections = ("training", "scales", "artifacts", "dial", "errors", "pictures")
    found = read(render(make_results(), [picture(name, section=name) for name in sections]))
    assert [attrs["id"] for attrs in found.all("section")] == ORDER
    links = [attrs["href"] for attrs in found.all("a")]
    assert links[: len(ORDER) - 1] == [f"#{name}" for name in ORDER[1:]]


def test_sections_without_content_are_left_out(make_results, picture):
    found = read(render(make_results(), [picture("a", section="errors")]))
    ids = [attrs["id"] for attrs in found.all("section")]
    assert ids == ["verdict", "errors", "evaluated", "numbers", "reading"]
    assert "#dial" not in [attrs["href"] for attrs in found.all("a")]


def test_every_link_within_the_page_leads_somewhere(small):
    """And every figure has one, with its number, before everything else."""
    text = small[1].read_text()
    found = read(text)
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len({*ids})
    links = [attrs["href"][1:] for attrs in found.all("a") if attrs["href"].startswith("#")]
    assert {*links} <= {*ids}
    figures = [attrs["id"] for attrs in found.all("figure")]
    assert len(figures) > 10
    contents = text.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r'href="#(figure-[^"]+)"[^>]*>(\d+)<', contents) == [
        (name, str(number)) for number, name in enumerate(figures, start=1)
    ]
    assert text.index("</nav>") < text.index("<section")


def test_other_fields_are_folded(make_results, make_samples, tmp_path, monkeypatch):
    given = make_results(schedules=["16"]), make_samples(keys=[("csm", "16")], steps=(1,)), {}
    only = list(islice(html.drawings(*given), 2))
    monkeypatch.setattr(html, "drawings", lambda *_: only)
    text = write_report(make_results(), None, tmp_path).read_text()
    before, _, folded = text.partition("<summary>Other fields</summary>")
    assert "figure-panels_0_tracer" in before.partition("<section")[2]
    assert '<figure id="figure-panels_1_pressure">' in folded.partition("</details>")[0]


def test_the_verdict_comes_first_in_two_sentences(make_results):
    text = render(make_results())
    first = "csm with schedule 4 has the lowest error of 4 rollouts, VRMSE 0.113 [0.101, 0.124]"
    assert text.index("</h1>") < text.index(first) < text.index("<h2>")
    verdict = text.partition('id="verdict"')[2].partition("</section>")[0]
    assert verdict.count("<p>") == 2
    assert verdict.index("</p>") < verdict.index("<details>")
    assert "csm with schedule 4: better than the mean" in verdict.partition("<details>")[2]


def test_tables_are_folded_and_the_lowest_values_marked(make_model, make_results):
    results = make_results([make_model(), make_model("other", factor=0.8)])
    text = render(results)
    numbers = text.partition('id="numbers"')[2].partition("</section>")[0]
    assert numbers.count("<table>") == len(tables(results)) == 5
    for part in numbers.split("<table>")[:-1]:
        assert part.rindex("<details>") > part.rfind("</details>")
    assert "<details open" not in text
    marked = [unescape(cell) for cell in re.findall(r'lowest"><strong>(.*?)</strong>', numbers)]
    assert len(marked) == sum(len(table.best) for table in tables(results))
    lowest = [run.vrmse_all.value for model in results.models for run in model.runs]
    assert f"{min(lowest):#.3g}" in " ".join(marked)


def test_the_command_can_be_pasted(make_results):
    words = ["overtone", "evaluate", "my run/best", "a;b", "--schedule", "4-8-16+shift", "it's"]
    results = make_results().model_copy(update={"command": shlex.join(words)})
    (code,) = re.findall(r"<dt>command</dt><dd>(.*?)</dd>", render(results))
    shown = re.sub("<[^>]+>", "", code)
    assert shlex.split(unescape(shown)) == words


def test_curves_are_part_of_it(make_model, make_results, tmp_path):
    record = {"kind": "train", "losses": {"8": 0.5}, "lr": 0.1}
    lines = [json.dumps(record | {"update": update}) for update in range(9)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    results = make_results([make_model(schedules=())])
    path = write_report(results, None, tmp_path, curves={"csm": tmp_path / "metrics.jsonl"})
    assert "Training of csm" in path.read_text()


def test_other_animations_are_refused(make_results, tmp_path):
    with pytest.raises(OvertoneError, match="gif"):
        write_report(make_results(), None, tmp_path, animation="avi")


HOSTILE = "_[/x]$\\oops$ $x^2$\x1b[2J\u202e\udcff模🙂 <script>alert('a&b')</script>"
SAID = "_[/x]$\\oops$ $x^2$\\x1b[2J\\u202e\\xff模🙂 <script>alert('a&b')</script>"
"""A name with something for everybody who might obey it, and how it is to be shown."""


def test_hostile_names_are_shown_and_never_obeyed(
    make_model, make_results, make_samples, alter_run, tmp_path
):
    """In every place where a name can stand; one has no end."""
    model = make_model(HOSTILE, schedules=["4-8-16"])
    law = model.runs[0].physics["divergence"]
    own = {"physics": {HOSTILE: law}, "fields": {HOSTILE: law[0]}, "bsnmse": {HOSTILE: law[0]}}
    fields = HOSTILE, "x" * 5000
    results = make_results([alter_run(model, schedule=HOSTILE, **own)], name=HOSTILE)
    domain = {**results.data.domain, "fields": fields}
    data = results.data.model_copy(update={"split": HOSTILE, "domain": domain})
    said = {"data": data, "command": HOSTILE, "machine": {HOSTILE: HOSTILE}}
    results = results.model_copy(update=said)
    samples = make_samples(keys=[(HOSTILE, HOSTILE)], fields=fields, steps=(1,))
    run = tmp_path / "run"
    run.mkdir()
    losses = {"kind": "train", "update": 1, "losses": {"8": 0.5, SAID: 0.5}, "lr": 0.1}
    (run / "metrics.jsonl").write_text(json.dumps(losses) + "\n")
    text = write_report(results, samples, tmp_path / "out", curves={HOSTILE: run}).read_text()
    checker = read(text)
    assert not checker.all("script")
    assert all(c.isprintable() or c == "\n" for c in text)
    words = "".join(checker.text)
    # Title, heading, facts, tables and captions.
    assert words.count(SAID) > 20
    assert sum(SAID in attrs.get("alt", "") for attrs in checker.all("img")) > 2
    drawings = list((tmp_path / "out" / "figures").glob("*.svg"))
    assert len(drawings) > 10
    for path in drawings:
        ElementTree.parse(path)  # complains about characters that XML does not know
        assert "<script" not in path.read_text()


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("failing", ["animate", "page", "sentences"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_report_that_fails_leaves_the_old_one_whole(
    make_model, make_results, make_samples, tmp_path, monkeypatch, failing, error
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(html, "drawings", lambda *_: ())  # they take long
    samples = make_samples(keys=[("csm", "16")], fields=("tracer",), steps=(1,))
    write_report(make_results([make_model(schedules=())]), samples, tmp_path / "out")
    before = files_of(tmp_path)
    assert len(before) == 5
    monkeypatch.setattr(html, failing, fail)
    with pytest.raises(type(error) if isinstance(error, OSError) else error):
        write_report(make_results([make_model("other", schedules=())]), samples, tmp_path / "out")
    assert files_of(tmp_path) == before


def test_files_beside_the_page_are_named_as_they_lie(make_results, make_samples, tmp_path):
    samples = make_samples(keys=[("csm", "16")], fields=("tracer",), steps=(1,))
    made = tuple(html._animation(make_results(), samples, tmp_path, "gif"))
    assert '<span class="files">rollout.gif</span>' in render(make_results(), made)
