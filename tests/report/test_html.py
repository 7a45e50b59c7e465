"""The page: well-formed, self-contained, safe."""

import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from overtone.report import html
from overtone.report.html import Picture, page
from overtone.report.summary import sentences
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
    def make(name="a", caption="What it shows.", size=(40, 30)):
        folder = tmp_path / "figures"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.png"
        Image.effect_noise(size, 50).save(path)
        return Picture((path,), f"title {name}", caption, f"alt {name}", size)

    return make


def render(results, pictures=()):
    return page(results, sentences(results), tables(results), pictures)


def test_the_page_is_well_formed_and_needs_no_network(make_results, picture):
    text = render(make_results(), [picture("a"), picture("b")])
    checker = read(text)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not checker.all("script")
    assert not checker.all("link")
    for attrs in checker.all("img"):
        assert attrs["src"].startswith("data:image/png;base64,")
    assert [attrs["href"] for attrs in checker.all("a")] == ["results.json"]


def test_figures_have_numbers_captions_and_alternative_texts(make_results, picture):
    checker = read(render(make_results(), [picture("a"), picture("b")]))
    assert [attrs["alt"] for attrs in checker.all("img")] == ["alt a", "alt b"]
    assert len(checker.all("figure")) == len(checker.all("figcaption")) == 2
    assert {"Figure 1.", "Figure 2."} <= set(checker.text)
    assert all({"width", "height"} <= set(attrs) for attrs in checker.all("img"))


def test_what_was_evaluated_is_said(make_results):
    said = " ".join(read(render(make_results())).text)
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
    made = Picture(made.files, evil, evil, evil + '" onload="x', made.size)
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
    both = Picture((*made.files, svg), made.title, made.caption, made.alt, made.size)
    assert "data:image/svg+xml;base64," in render(make_results(), [both])


def test_pictures_beyond_the_limit_are_named_instead(make_results, picture, monkeypatch):
    pictures = [picture("a", size=(100, 100)), picture("b", size=(100, 100))]
    monkeypatch.setattr(html, "MAX_BYTES", 20_000)
    text = render(make_results(), pictures)
    checker = read(text)
    assert len(checker.all("img")) == 1
    assert len(checker.all("figure")) == 2
    assert "Left out to keep this page small" in text
    assert "figures/b.png" in text


def test_schedules_stay_on_one_line(make_results):
    assert '<span class="whole">4-8-16</span>' in render(make_results())
