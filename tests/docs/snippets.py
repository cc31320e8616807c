"""Runs the snippets of the documentation: every block of Python, shell, C++ and C of a page, in order, in one folder.

    python tests/docs/snippets.py docs/guide/filters.md     # one page, with this Python
    python tests/docs/snippets.py                           # README.md and all pages

A title decides what happens to a block, and readers see it above the block:

    title="not run: a reason"      is left alone
    title="needs faiss"            runs where the module is installed (several: "needs faiss, hnswlib")

What a page takes for granted (files, arrays) is made by a comment `<!-- setup`, in Python. Blocks of Python share their names;
blocks of shell see the program NEARWISE_BIN as `nearwise`; blocks of C++ and C are compiled, not run.
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SHELL_SECONDS = 120
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)(?P<rest>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$", re.M | re.S)
SETUP = re.compile(r"<!-- setup\n(?P<code>.*?)-->", re.S)
TITLE = re.compile(r'title="([^"]*)"')
RUN = ("python", "bash", "cpp", "c")
# Text that is shown, not run.
SHOWN = ("text", "json", "toml", "yaml", "cmake")


class Snippet(NamedTuple):
    page: Path
    line: int  # of its first line of code
    language: str
    title: str
    code: str

    @property
    def needs(self):
        """The modules that must be installed."""
        return [name.strip() for name in self.title.removeprefix("needs ").split(",")] if self.title.startswith("needs ") else []

    @property
    def is_run(self):
        return self.language in RUN and not self.title.startswith("not run: ")


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets_of(page):
    """All blocks of a page in their order, its setup first."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in SETUP.finditer(text):
        found.append((match.start("code"), "python", "", match["code"]))
    for match in FENCE.finditer(text):
        title = TITLE.search(match["rest"])
        code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.M)
        found.append((match.start("code"), match["language"], title[1] if title else "", code))
    return [Snippet(page, text.count("\n", 0, start) + 1, language, title, code)
            for start, language, title, code in sorted(found)]


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def missing_modules(snippets):
    return sorted({name for snippet in snippets for name in snippet.needs if not is_installed(name)})


def run_python(snippet, names):
    # Line numbers of errors are those of the page.
    code = compile("\n" * (snippet.line - 1) + snippet.code, str(snippet.page), "exec")
    exec(code, names)


def run_shell(snippet, folder):
    programs = folder / ".programs"
    if not programs.exists():
        programs.mkdir()
        (programs / "nearwise").symlink_to(Path(os.environ["NEARWISE_BIN"]).resolve())
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", snippet.code], cwd=folder, capture_output=True, text=True,
                         timeout=SHELL_SECONDS, env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"})
    if run.returncode != 0:
        raise RuntimeError(f"{snippet.page}:{snippet.line}: exit {run.returncode}\n{snippet.code}\n{run.stdout}{run.stderr}")


COMPILERS = {"cpp": ["g++", "-std=c++20", "-x", "c++"], "c": ["gcc", "-std=c99", "-Wextra", "-Wpedantic", "-x", "c"]}


def compile_only(snippet):
    """Includes stay where they are; the rest is the body of a function, unless it has a main of its own."""
    lines = snippet.code.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = "\n".join(line for line in lines if not line.startswith("#include"))
    if "int main(" not in body:
        body = f"void snippet(void);\nvoid snippet(void) {{\n{body}\n}}\n"
    command = [*COMPILERS[snippet.language], "-fsyntax-only", "-Wall", "-Wno-unused-variable", "-I", ROOT / "include", "-"]
    run = subprocess.run(command, input="\n".join([*includes, body]), capture_output=True, text=True, timeout=SHELL_SECONDS)
    if run.returncode != 0:
        raise RuntimeError(f"{snippet.page}:{snippet.line}: does not compile\n{run.stderr}")


def run_page(page, folder):
    """Runs the blocks of a page; returns how many, and the modules for lack of which others were left out."""
    chosen = [snippet for snippet in snippets_of(page) if snippet.is_run]
    missing = missing_modules(chosen)
    names, ran, before = {"__name__": "__snippets__"}, 0, Path.cwd()
    os.chdir(folder)
    try:
        for snippet in chosen:
            if missing_modules([snippet]):
                continue
            if snippet.language == "python":
                run_python(snippet, names)
            elif snippet.language == "bash":
                run_shell(snippet, Path(folder))
            else:
                compile_only(snippet)
            ran += 1
    finally:
        os.chdir(before)
    return ran, missing


def main(paths):
    sys.path.append(str(ROOT / "bench" / "data"))  # the encoder of the data sets
    for page in [Path(path).resolve() for path in paths] or pages():
        with tempfile.TemporaryDirectory(prefix="nearwise-docs-") as folder:
            ran, missing = run_page(page, folder)
        if ran or missing:
            print(f"{page.relative_to(ROOT)}: {ran} run{f'; without {missing}' if missing else ''}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
