from pathlib import PurePosixPath

import pytest

import check_text

# Assembled here so that this file passes the check it tests.
HOME = "/" + "home/someone"
MARK = "TO" + "DO"


def findings(path, content):
    content = content.encode() if isinstance(content, str) else content
    return check_text.check_file(PurePosixPath(path), content)


@pytest.mark.parametrize(("path", "content"), [
    ("src/core/a.cpp", "int a;\n" * 502),
    ("docs/long.md", "words\n" * 5000),
    ("docs/a.md", "see docs/work/notes and https://example.org/home/page"),
    ("tools/a.sh", 'cd "${root}/work/x" && ls "$HOME/.cache"'),
    ("tests/golden/v1.nw", b"\0\1\2"),
    ("docs/pictures/a_path.png", b"\x89PNG\0"),
    ("src/core/a.cpp", "auto todo = next();  // the list of what is to be done"),
])
def test_accepts(path, content):
    assert findings(path, content) == []


@pytest.mark.parametrize(("path", "content", "reason"), [
    ("src/core/a.cpp", "int a;\n" * 503, "503 lines"),
    ("python/nearwise/a.py", "a = 1\n" * 503, "503 lines"),
    ("docs/a.md", f"data lies in {HOME}/data", "one machine"),
    ("CMakeLists.txt", f'set(X "{HOME}/x")', "one machine"),
    ("src/core/a.cpp", f"int a;\n// {MARK}: finish\n", "a.cpp:2: an unfinished"),
    ("src/core/a.cpp", "// Made by x. DO " + "NOT EDIT", "program made"),
    ("build/a.txt", "", "a program makes"),
    ("python/nearwise/_core.so", b"\x7fELF\0", "a program makes"),
    ("compile_commands.json", "[]", "a program makes"),
    ("bench/data/vectors.fbin", b"\0\0", "binary"),
    ("docs/pictures/a.png", b"\x89PNG" + b"\0" * 65536, "65540 bytes"),
    ("docs/a.png", b"\x89PNG\0", "binary"),
    ("src/core/a.cpp", b"// caf\xe9", "UTF-8"),
])
def test_refuses(path, content, reason):
    found = findings(path, content)
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(("folder", "count", "refused"), [
    ("src/core", 30, False), ("src/core", 31, True), ("python/nearwise/cluster", 31, True), ("tests/core", 31, False), ("bench", 31, False)])
def test_folders_have_at_most_thirty_files(folder, count, refused):
    found = check_text.check_folders([PurePosixPath(folder, f"a{number}.cpp") for number in range(count)])
    assert len(found) == refused
    assert not found or f"{folder}: 31 files" in found[0]


def test_program_fails_on_a_violation_and_not_without(make_repository, tool):
    root = make_repository({"src/a.cpp": f"// {MARK}\n"})
    assert tool("check_text.py", "--root", root).returncode == 1
    (root / "src/a.cpp").write_text("\n")
    assert tool("check_text.py", "--root", root).returncode == 0


@pytest.mark.parametrize("text", [
    "// Candidates get a second look.",
    "Candidates get a second\nlook.",
    "// candidates get a second\n// look",
    "auto kept = second_look(rows);",
    "struct MeasuredRecall {};",
])
def test_refuses_retired_terms(text):
    (finding,) = findings("src/core/a.cpp", text)
    assert "is retired: say" in finding


@pytest.mark.parametrize("text", ["int second_lookup;", "auto xMeasuredRecall = 1;", "the second, look", "re-ranking"])
def test_accepts_what_only_resembles_a_retired_term(text):
    assert findings("src/core/a.cpp", text) == []


def test_every_retired_term_is_refused_and_has_a_replacement():
    assert len(check_text.RETIRED) > 50
    for pattern, retired, say, _ in check_text.RETIRED:
        assert pattern.search(f"x {retired} y"), retired
        assert say


@pytest.mark.parametrize(("path", "line", "refused"), [
    ("src/core/a.cpp", "// " + "x" * 108, True),
    ("src/core/a.cpp", "// " + "x" * 107, False),
    ("src/core/a.cpp", 'auto text = "' + "x" * 110 + '";', False),
    ("python/nearwise/a.py", "a = 1  # " + "x" * 102, True),
    ("docs/a.md", "x" * 200, False),
])
def test_comments_end_at_column_110(path, line, refused):
    assert bool(findings(path, line)) == refused
