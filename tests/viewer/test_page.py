"""The page's files: complete, from nowhere else, and whole as one file."""

import re

from overtone.viewer.page import FOLDER, INDEX, MODULES, files, single

RECORDING = {"hello": {"data": {"name": "</script><b>&"}}, "text": "</script>"}


def test_every_file_is_offered_and_no_other():
    assert set(files()) == {path.name for path in FOLDER.iterdir() if path.is_file()}


def test_nothing_comes_from_elsewhere():
    for name, (content, _) in files().items():
        found = re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}", content.decode())
        assert not found, f"{name}: {found}"


def test_modules_import_from_those_before_them_alone():
    """So that they can be joined in this order; and no name is exported twice."""
    exported = []
    for place, name in enumerate(MODULES):
        text = files()[name][0].decode()
        imports = re.findall(r'^import \{([^}]*)\} from "\./([a-z.]+)";$', text, flags=re.M)
        assert len(imports) == len(re.findall(r"^import", text, flags=re.M))
        for names, source in imports:
            assert source in MODULES[:place], f"{name} imports {source}"
            for one in names.split(","):
                pattern = rf"^export (?:async )?(?:function|const|class) {one.strip()}\b"
                assert re.search(pattern, files()[source][0].decode(), flags=re.M), one
        # Unexported names are shared, too, once the modules are one.
        exported += re.findall(
            r"^(?:export )?(?:async )?(?:function|const|class|let) (\w+)", text, flags=re.M
        )
    assert len(exported) == len(set(exported))


def test_one_file_holds_all_and_loads_nothing():
    page = single(RECORDING)
    assert not re.search(r"^(?:import|export) ", page, flags=re.M)
    assert '<link rel="stylesheet"' not in page
    assert 'src="main.js"' not in page
    for name in (*MODULES, INDEX):
        assert f'"./{name}"' not in page
    assert page.count("class App") == 1


def test_names_from_files_are_text():
    page = single(RECORDING)
    assert page.count("</script>") == 2  # those of the page itself
    assert "<title>Overtone: &lt;/script&gt;&lt;b&gt;&amp;</title>" in page
    assert "<b>&" not in page.replace("<b>Overtone", "")
