"""mkdocs hooks: what the site has in addition to docs/.

- reference/cpp/: the C++ reference (cpp_reference.py)
- reference/help.md: what `--help` prints (help_pages.py), of the program NEARWISE_BIN
- source/: files of the repository outside of docs/ that a page links to, so that the site needs nothing else
"""
import os
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cpp_reference  # noqa: E402  (found through the line above)
import help_pages  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Links and pictures, as in tests/tools/docs_test.py: in or out of code.
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)]*)?\)")
LANGUAGES = {".py": "python", ".cpp": "cpp", ".h": "cpp", ".c": "c", ".yml": "yaml", ".txt": "text", ".cu": "cpp"}


def source_uri(path):
    """Where the site has a file of the repository that is not in docs/."""
    name = path.relative_to(ROOT).as_posix()
    return f"source/{name}" if path.suffix == ".md" else f"source/{name}.md"


def repository_path(uri):
    """The file of a page, or None for what is generated."""
    if not uri.startswith("source/"):
        return DOCS / uri if (DOCS / uri).exists() else None
    path = ROOT / uri.removeprefix("source/")
    return path if path.exists() else path.with_suffix("")


def linked_files(path):
    """The files of the repository outside of docs/ that a page links to."""
    for _, _, target, _ in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            file = (path.parent / target).resolve()
            if file.is_file() and file.is_relative_to(ROOT) and not file.is_relative_to(DOCS):
                yield file


def source_pages():
    """{path on the site: content} of all files that pages link to, and those that these link to."""
    waiting, pages = sorted(DOCS.rglob("*.md")), {}
    while waiting:
        for file in linked_files(waiting.pop()):
            if (uri := source_uri(file)) in pages:
                continue
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".md":
                waiting.append(file)
            else:
                text = f"# {file.name}\n\n`{file.relative_to(ROOT)}`\n\n~~~~{LANGUAGES.get(file.suffix, 'text')}\n{text}~~~~\n"
            pages[uri] = text
    return pages


def named_pages(nav):
    """All pages that the navigation names."""
    if isinstance(nav, str):
        return {nav}
    return set().union(*(named_pages(each) for each in (nav.values() if isinstance(nav, dict) else nav)))


def expanded(nav, pages, named):
    """The navigation with the pages that match in the place of a pattern (`guide/*.md`), without those named elsewhere."""
    if isinstance(nav, list):
        return [page for each in nav for page in (
            sorted(uri for uri in pages if Path(uri).match(each) and uri not in named) if isinstance(each, str) and "*" in each
            else [expanded(each, pages, named)])]
    return {title: expanded(each, pages, named) for title, each in nav.items()} if isinstance(nav, dict) else nav


def on_config(config):
    global generated
    generated = {**cpp_reference.pages(ROOT), "reference/help.md": help_pages.page(os.environ["NEARWISE_BIN"]), **source_pages()}
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(generated)
    config.nav = expanded(config.nav, pages, named_pages(config.nav))
    return config


def on_files(files, config):
    for uri, content in generated.items():
        page = File.generated(config, uri, content=content)
        if uri.startswith("source/"):
            page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to files outside of docs/ lead to their pages; links to folders there have none and become text."""
    here = repository_path(page.file.src_uri)
    if here is None or (page.file.src_uri.startswith("source/") and here.suffix != ".md"):
        return markdown

    def led(match):
        mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        file = (here.parent / target).resolve()
        if "://" in target or target.startswith("mailto:") or not file.is_relative_to(ROOT) or not file.exists():
            return match[0]
        if file.is_dir():
            return text
        uri = file.relative_to(DOCS).as_posix() if file.is_relative_to(DOCS) else source_uri(file)
        return f"{mark}[{text}]({os.path.relpath(uri, Path(page.file.src_uri).parent)}{anchor})"

    return LINK.sub(led, markdown)
