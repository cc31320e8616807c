"""Documentation names what exists."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FOLDERS = {"bench", "cli", "cmake", "cuda_emulation", "docs", "examples", "include", "licenses", "python", "src", "tests", "tools"}
CODE = re.compile(r"`([\w./-]+)`")
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def named_paths(text):
    """Paths of the repository in backticks."""
    return {name for name in CODE.findall(text) if name.split("/")[0] in FOLDERS and ("/" in name or name in FOLDERS)}


def missing_paths(text):
    return sorted(name for name in named_paths(text) if not (ROOT / name).exists())


def broken_links(page):
    return sorted(target for target in LINK.findall(page.read_text(encoding="utf-8"))
                  if "://" not in target and not (page.parent / target).exists())


def test_architecture_names_many_paths():
    assert len(named_paths((DOCS / "architecture.md").read_text(encoding="utf-8"))) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_paths_that_exist(page):
    assert missing_paths(page.read_text(encoding="utf-8")) == []


def test_a_path_that_does_not_exist_is_found():
    assert missing_paths("see `src/core` and `src/nowhere/file.cpp`") == ["src/nowhere/file.cpp"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def test_every_page_is_in_the_index():
    index = DOCS / "README.md"
    linked = {(DOCS / target).resolve() for target in LINK.findall(index.read_text(encoding="utf-8"))}
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name != "adr"} | {DOCS / "adr" / "README.md"}
    assert sorted(str(page.relative_to(DOCS)) for page in pages - linked - {index}) == []
