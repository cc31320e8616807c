from pathlib import PurePosixPath

import pytest

import check_text

# Put together here so that this file passes the check it tests.
HOME = "/" + "home/someone"
MARK = "TO" + "DO"


def findings(path, content):
    content = content.encode() if isinstance(content, str) else content
    return check_text.check_file(PurePosixPath(path), content)


@pytest.mark.parametrize(("path", "content"), [
    ("src/core/a.cpp", "int a;\n" * 600),
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
    ("src/core/a.cpp", "int a;\n" * 601, "601 lines"),
    ("python/nearwise/a.py", "a = 1\n" * 601, "601 lines"),
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


def test_program_fails_on_a_violation_and_not_without(make_repository, tool):
    root = make_repository({"src/a.cpp": f"// {MARK}\n"})
    assert tool("check_text.py", "--root", root).returncode == 1
    (root / "src/a.cpp").write_text("\n")
    assert tool("check_text.py", "--root", root).returncode == 0
