"""The snippets of README.md and docs/ do what they say. Needs the package, and the program NEARWISE_BIN."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import snippets  # noqa: E402  (found through the line above)

PAGES = [page for page in snippets.pages() if any(snippet.is_run for snippet in snippets.snippets_of(page))]


def name(page):
    return str(page.relative_to(snippets.ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_snippets_run(page, tmp_path, capsys):
    snippets.run_page(page, tmp_path)


@pytest.mark.parametrize("page", snippets.pages(), ids=name)
def test_every_block_is_run_or_says_that_it_is_not(page):
    odd = [f"{snippet.line}: {snippet.language or 'no language'}" for snippet in snippets.snippets_of(page)
           if snippet.language not in (*snippets.RUN, *snippets.SHOWN)]
    assert odd == []


def written(folder, text):
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_a_snippet_that_fails_is_found(tmp_path):
    page = written(tmp_path, "# Page\n\n```python\nimport nearwise\nnearwise.knn([[0.0]], [[1.0]], k=2)\n```\n")
    with pytest.raises(ValueError, match="k") as caught:
        snippets.run_page(page, tmp_path)
    assert any(entry.path == page and entry.lineno == 4 for entry in caught.traceback)


def test_a_command_that_fails_is_found(tmp_path):
    page = written(tmp_path, "```bash\nnearwise knn nowhere.fbin -k 1\n```\n")
    with pytest.raises(RuntimeError, match="page.md:2: exit"):
        snippets.run_page(page, tmp_path)


def test_cpp_that_does_not_compile_is_found(tmp_path):
    page = written(tmp_path, "```cpp\n#include <nearwise/exact.h>\nnearwise::knn(1);\n```\n")
    with pytest.raises(RuntimeError, match="does not compile"):
        snippets.run_page(page, tmp_path)


def test_c_that_does_not_compile_is_found(tmp_path):
    include = "#include <nearwise/c/nearwise_c.h>\n"
    good = written(tmp_path, f"```c\n{include}nearwise_context_destroy(NULL);\n```\n")
    assert snippets.run_page(good, tmp_path) == (1, [])
    bad = written(tmp_path, f"```c\n{include}nearwise::knn(1);\n```\n")
    with pytest.raises(RuntimeError, match="does not compile"):
        snippets.run_page(bad, tmp_path)


def test_titles_decide(tmp_path):
    page = written(tmp_path, '<!-- setup\nx = 1\n-->\n```python\ny = x\n```\n```python title="not run: it would fail"\nz\n```\n'
                             '```python title="needs a_module_that_is_nowhere"\nz\n```\n')
    assert snippets.run_page(page, tmp_path) == (2, ["a_module_that_is_nowhere"])
