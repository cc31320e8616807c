"""Pages say what users ask for: docs/notes/user-questions.md at most two clicks from the start page, every public name
in the reference."""
import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
ROW = re.compile(r"^\| (.*\?) \| \[.*\]\(\.\./(.*)\) \| (.*) \|$", re.M)
QUESTIONS = ROW.findall((DOCS / "notes" / "user-questions.md").read_text(encoding="utf-8"))


def linked_pages(page):
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text(encoding="utf-8"))
            if "://" not in target}


def pages_within(clicks):
    """{page: fewest clicks from the start page}"""
    found = {DOCS / "README.md": 0}
    for click in range(1, clicks + 1):
        for page in [page for page, before in found.items() if before == click - 1]:
            for target in linked_pages(page):
                found.setdefault(target, click)
    return found


def pages_of_the_package():
    return "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))


@pytest.mark.parametrize("module", ["nearwise", "nearwise.cluster", "nearwise.sklearn"])
def test_every_public_name_is_in_the_reference(module):
    source = (DOCS.parent / "python" / module.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    (listed,) = [ast.literal_eval(node.value) for node in ast.parse(source).body
                 if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"]
    pages = pages_of_the_package().splitlines()
    assert [name for name in listed if not name.startswith("__") and f"::: {module}.{name}" not in pages] == []


def test_there_are_twelve():
    assert len(QUESTIONS) == 12


@pytest.mark.parametrize(("question", "page", "words"), QUESTIONS)
def test_the_answer_is_two_clicks_away(question, page, words):
    assert DOCS / page in pages_within(2)
    assert words in (DOCS / page).read_text(encoding="utf-8").replace("\n", " ")


@pytest.mark.parametrize(("question", "page"), [(question, page) for question, page, _ in QUESTIONS])
def test_the_start_page_asks_it(question, page):
    links = dict(re.findall(r"\[([^]]+\?)\]\(([^)#]+)", (DOCS / "README.md").read_text(encoding="utf-8")))
    assert links[question] == page


def heading_links(text):
    """As the site and GitHub make them."""
    return {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines() if line.startswith("#")}


def test_questions_lead_to_headings():
    links = re.findall(r"\?\]\(([^)#]+)#([^)]+)\)", (DOCS / "README.md").read_text(encoding="utf-8"))
    assert len(links) >= 4
    for page, heading in links:
        assert heading in heading_links((DOCS / page).read_text(encoding="utf-8")), (page, heading)


def test_clicks_are_counted():
    found = pages_within(1)
    assert found[DOCS / "guide" / "filters.md"] == 1
    assert DOCS / "adr" / "0002-instruction-set-per-context.md" not in found
