"""tools/check_wheel.py finds wheels that are called, say or contain something else than they should."""
import subprocess
import zipfile

import pytest

import check_wheel

VERSION = "0.3.1"
INFO = f"nearwise-{VERSION}.dist-info"
PROJECT = """[project]
name = "nearwise"
description = "Finds"
license = "Apache-2.0"
license-files = ["LICENSE", "licenses/*.txt"]
requires-python = ">=3.11"
authors = [{ name = "nearwise contributors" }]
keywords = ["search", "vectors"]
classifiers = ["Typing :: Typed"]
[project.optional-dependencies]
ray = ["ray"]
"""
METADATA = f"""Metadata-Version: 2.4
Name: nearwise
Version: {VERSION}
Summary: Finds
Author: nearwise contributors
Keywords: search,vectors
License-Expression: Apache-2.0
Classifier: Typing :: Typed
Requires-Python: >=3.11
Provides-Extra: ray
Description-Content-Type: text/markdown

# Read me
"""
ABI3 = "nearwise-0.3.1-cp312-abi3-manylinux_2_28_x86_64.manylinux_2_36_x86_64.whl"
CP311 = "nearwise-0.3.1-cp311-cp311-manylinux_2_36_x86_64.whl"


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Shared objects that take symbols of Python: {what they take: bytes}."""
    folder, found = tmp_path_factory.mktemp("modules"), {}
    for symbol in ("PyList_New", "_Py_Dealloc", "_Py_IsFinalizing"):
        source, module = folder / f"{symbol}.c", folder / f"{symbol}.so"
        source.write_text(f"void {symbol}(void);\nvoid start(void) {{ {symbol}(); }}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", module, source], check=True)
        found[symbol] = module.read_bytes()
    return found


@pytest.fixture
def make(make_repository, modules):
    """Makes a wheel, right but for what the caller changes: {path: text, or None to leave out}. Returns its findings."""
    root = make_repository({"pyproject.toml": PROJECT, "CMakeLists.txt": f"project(nearwise VERSION {VERSION} LANGUAGES CXX)\n",
                            "README.md": "# Read me\n", "LICENSE": "Apache\n", "licenses/fmt.txt": "MIT\n",
                            "python/nearwise/__init__.py": "", "python/nearwise/sub/__init__.py": ""})

    def wheel(name=CP311, tags=("cp311-cp311-manylinux_2_36_x86_64",), module="_core.cpython-311-x86_64-linux-gnu.so", **changes):
        content = {
            "nearwise/__init__.py": "", "nearwise/sub/__init__.py": "", "nearwise/_core.pyi": "", "nearwise/bin/nearwise": "",
            f"nearwise-{VERSION}.data/scripts/nearwise": "", "nearwise.libs/libfmt-64fa4e0e.so.9.1.0": "",
            f"nearwise/{module}": modules["PyList_New"], f"{INFO}/RECORD": "", f"{INFO}/METADATA": METADATA,
            f"{INFO}/WHEEL": "Root-Is-Purelib: false\n" + "".join(f"Tag: {tag}\n" for tag in tags),
            f"{INFO}/licenses/LICENSE": "", f"{INFO}/licenses/licenses/fmt.txt": "",
        } | changes.get("content", {})
        with zipfile.ZipFile(root / name, "w", zipfile.ZIP_DEFLATED) as file:
            for path, text in content.items():
                if text is not None:
                    file.writestr(path, text)
        return check_wheel.check(root / name, root)

    return wheel


def abi3(**changes):
    return {"name": ABI3, "tags": ("cp312-abi3-manylinux_2_28_x86_64", "cp312-abi3-manylinux_2_36_x86_64"),
            "module": "_core.abi3.so"} | changes


def test_right_wheels_pass(make):
    assert make() == []
    assert make(**abi3()) == []


@pytest.mark.parametrize(("change", "finding"), [
    ({"name": "nearwise-0.3.1-cp311-cp311-linux_x86_64.whl"}, "the name is not"),
    ({"tags": ("cp311-cp311-linux_x86_64",)}, "WHEEL has the tags"),
    ({"name": "nearwise-0.3.1-cp313-cp313-manylinux_2_36_x86_64.whl", "tags": ("cp313-cp313-manylinux_2_36_x86_64",),
      "module": "_core.cpython-313-x86_64-linux-gnu.so"}, "wheels are cp311-cp311 and cp312-abi3"),
    ({"module": "_core.abi3.so"}, "modules nearwise/_core"),
    (abi3(module="_core.cpython-312-x86_64-linux-gnu.so"), "modules nearwise/_core"),
    ({"content": {f"{INFO}/WHEEL": "Root-Is-Purelib: true\nTag: cp311-cp311-manylinux_2_36_x86_64\n"}}, "depends on its platform"),
])
def test_tags(make, change, finding):
    assert finding in "\n".join(make(**change))


@pytest.mark.parametrize("line", [line for line in METADATA.splitlines() if ": " in line and not line.startswith("Metadata")] + ["# Read me"])
def test_every_line_of_the_metadata_counts(make, line):
    (finding,) = make(content={f"{INFO}/METADATA": METADATA.replace(f"{line}\n", "X: y\n" if ": " in line else "", 1)})
    assert finding.startswith("METADATA: ") and (line.split(":")[0] in finding or line == "# Read me")


def test_every_file_counts(make):
    for path in ("nearwise/sub/__init__.py", "nearwise/_core.pyi", "nearwise/bin/nearwise", f"nearwise-{VERSION}.data/scripts/nearwise",
                 f"{INFO}/licenses/LICENSE", f"{INFO}/licenses/licenses/fmt.txt", f"{INFO}/RECORD"):
        assert make(content={path: None}) == [f"{path} is missing"]
    for path in ("nearwise/tests/test_it.py", "include/nearwise.h", "nearwise/_core.cpython-312-x86_64-linux-gnu.so"):
        assert make(content={path: ""}) == [f"{path} does not belong there"]


def test_symbols_of_the_stable_abi(make, modules):
    assert make(**abi3(content={"nearwise/_core.abi3.so": modules["_Py_Dealloc"]})) == []
    (finding,) = make(**abi3(content={"nearwise/_core.abi3.so": modules["_Py_IsFinalizing"]}))
    assert finding == "_core.abi3.so needs _Py_IsFinalizing, which is not in the stable ABI"


def test_large_wheels_are_found(make, monkeypatch):
    monkeypatch.setattr(check_wheel, "MOST_BYTES", 1000)
    (finding,) = make()
    assert finding.endswith("more than 1000")


def test_licences_are_those_of_the_bill_of_materials():
    names = {path.stem for path in (check_wheel.repository.ROOT / "licenses").glob("*.txt")}
    listed = (check_wheel.repository.ROOT / "tools" / "sbom").read_text(encoding="utf-8")
    assert len(names) == 7 and all(f'"{name}"' in listed for name in names)


@pytest.mark.parametrize("path", sorted((check_wheel.repository.ROOT / "dist").glob("**/nearwise-*.whl")), ids=lambda path: path.name)
def test_wheels_that_were_made(path):
    """Where nothing that they are made of has changed since."""
    root = check_wheel.repository.ROOT
    sources = [root / name for name in ("README.md", "pyproject.toml", "CMakeLists.txt")] + list((root / "python/nearwise").rglob("*.py"))
    if max(source.stat().st_mtime for source in sources) > path.stat().st_mtime:
        pytest.skip("older than its sources")
    assert check_wheel.check(path) == []
