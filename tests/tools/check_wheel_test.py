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
    monkeypatch.setitem(check_wheel.MOST_BYTES, "nearwise", 1000)
    (finding,) = make()
    assert finding.endswith("more than 1000")


CUDA = "nearwise_cuda13-0.3.1-py3-none-manylinux_2_36_x86_64.whl"
CUDA_INFO = f"nearwise_cuda13-{VERSION}.dist-info"
CUDA_REQUIREMENTS = ("nearwise==0.3.1", "nvidia-cublas==13.*", "nvidia-cuda-runtime==13.*")
CUDA_METADATA = "".join(line + "\n" for line in METADATA.replace("Name: nearwise", "Name: nearwise-cuda13").splitlines()[:9]
                        if not line.startswith("Provides")) + "".join(f"Requires-Dist: {name}\n" for name in CUDA_REQUIREMENTS) + """\
Description-Content-Type: text/markdown

# Read me
"""


@pytest.fixture(scope="module")
def backends(tmp_path_factory):
    """Stand-ins of the backend: {"right" or what is wrong with it: bytes}."""
    folder = tmp_path_factory.mktemp("backends")
    (folder / "empty.c").write_text("void runtime(void) {}\n")
    (folder / "backend.c").write_text("void runtime(void);\nvoid nearwise_cuda_backend(void) { runtime(); }\n")
    (folder / "more.c").write_text("void runtime(void);\nvoid nearwise_cuda_backend(void) { runtime(); }\nvoid another(void) {}\n")
    for name in ("cublas", "cudart", "fmt"):
        version = {"fmt": 9}.get(name, 13)
        subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,lib{name}.so.{version}", "-o", folder / f"lib{name}.so", folder / "empty.c"],
                       check=True)

    def link(source="backend.c", libraries=("cublas", "cudart"), folders="$ORIGIN/../nvidia/cu13/lib"):
        path = folder / "made.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, folder / source, f"-L{folder}", "-Wl,--no-as-needed", f"-Wl,-rpath,{folders}",
                        *(f"-l{name}" for name in libraries)], check=True)
        return path.read_bytes()

    return {"right": link(), "bundled": link(libraries=("cublas", "cudart", "fmt")), "static": link(libraries=("cublas",)),
            "elsewhere": link(folders="/usr/local/cuda/lib64"), "more": link("more.c")}


@pytest.fixture
def make_cuda(make_repository, backends):
    """Makes a wheel of the CUDA backend as make() does."""
    lines = [line for line in PROJECT.splitlines() if "ray" not in line and "optional" not in line]
    root = make_repository({"CMakeLists.txt": f"project(nearwise VERSION {VERSION} LANGUAGES CXX)\n",
                            "python/cuda13/pyproject.toml": "\n".join(lines).replace('"nearwise"', '"nearwise-cuda13"'),
                            "python/cuda13/README.md": "# Read me\n", "python/cuda13/LICENSE": "Apache\n",
                            "python/cuda13/licenses/fmt.txt": "MIT\n", "python/cuda13/nearwise_cuda13/__init__.py": ""})

    def wheel(name=CUDA, backend="right", **content):
        content = {"nearwise_cuda13/__init__.py": "", "nearwise_cuda13/libnearwise_cuda.so": backends[backend],
                   f"{CUDA_INFO}/RECORD": "", f"{CUDA_INFO}/METADATA": CUDA_METADATA,
                   f"{CUDA_INFO}/WHEEL": "Root-Is-Purelib: false\nTag: py3-none-manylinux_2_36_x86_64\n",
                   f"{CUDA_INFO}/licenses/LICENSE": "", f"{CUDA_INFO}/licenses/licenses/fmt.txt": ""} | content
        with zipfile.ZipFile(root / name, "w", zipfile.ZIP_DEFLATED) as file:
            for path, text in content.items():
                if text is not None:
                    file.writestr(path, text)
        return check_wheel.check(root / name, root)

    return wheel


def test_a_right_wheel_of_the_cuda_backend_passes(make_cuda):
    assert make_cuda() == []


@pytest.mark.parametrize(("backend", "finding"), [
    ("bundled", "needs libfmt.so.9, which no package brings along"), ("static", "does not need libcudart.so.13"),
    ("elsewhere", "looks for libraries in ['/usr/local/cuda/lib64']"), ("more", "not nearwise_cuda_backend alone"),
])
def test_the_libraries_of_the_cuda_backend(make_cuda, backend, finding):
    (found,) = make_cuda(backend=backend)
    assert finding in found


def test_the_files_of_the_cuda_backend(make_cuda):
    for path in ("nearwise_cuda13/__init__.py", "nearwise_cuda13/libnearwise_cuda.so", f"{CUDA_INFO}/licenses/licenses/fmt.txt"):
        assert make_cuda(**{path: None}) == [f"{path} is missing"]
    assert make_cuda(**{"nearwise_cuda13.libs/libcudart.so.13": ""}) == ["nearwise_cuda13.libs/libcudart.so.13 does not belong there"]


@pytest.mark.parametrize("requirement", CUDA_REQUIREMENTS)
def test_every_requirement_of_the_cuda_backend_counts(make_cuda, requirement):
    (finding,) = make_cuda(**{f"{CUDA_INFO}/METADATA": CUDA_METADATA.replace(f"Requires-Dist: {requirement}\n", "")})
    assert finding.startswith("METADATA: Requires-Dist is ")


def test_tags_of_the_cuda_backend(make_cuda):
    findings = make_cuda(name=CUDA.replace("py3-none", "cp311-cp311"))
    assert any("wheels are py3-none" in finding for finding in findings)


def test_licences_are_those_of_the_bill_of_materials():
    names = {path.stem for path in (check_wheel.repository.ROOT / "licenses").glob("*.txt")}
    listed = (check_wheel.repository.ROOT / "tools" / "sbom").read_text(encoding="utf-8")
    assert len(names) == 7 and all(f'"{name}"' in listed for name in names)


@pytest.mark.parametrize("path", sorted((check_wheel.repository.ROOT / "dist").glob("**/nearwise*.whl")), ids=lambda path: path.name)
def test_wheels_that_were_made(path):
    """Where nothing that they are made of has changed since."""
    root = check_wheel.repository.ROOT
    sources = [root / name for name in ("README.md", "pyproject.toml", "CMakeLists.txt")] + list((root / "python").glob("*/**/*.py"))
    if max(source.stat().st_mtime for source in sources) > path.stat().st_mtime:
        pytest.skip("older than its sources")
    assert check_wheel.check(path) == []
