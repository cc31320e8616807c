"""The package nearwise-cuda13 next to nearwise, both installed, on a machine without a GPU."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nearwise
import nearwise_cuda13
import pytest

LIBRARY = Path(nearwise_cuda13.LIBRARY)
PACKAGES = LIBRARY.parents[1]
BUILD_ID = re.compile(rb"\d+\.\d+\.\d+-[0-9a-f]{16}\0")
HAS_DRIVER = nearwise.info()["cuda"]["driver_version"] != 0

without_driver = pytest.mark.skipif(HAS_DRIVER, reason="this machine has an NVIDIA driver")

SEARCH = """
import sys, nearwise, numpy
rows = numpy.random.default_rng(1).random((500, 20), dtype=numpy.float32)
assert (nearwise.knn(rows[:50], rows, 1).ids[:, 0] == range(50)).all()
"""


def environment(**variables):
    """Without what names libraries elsewhere."""
    kept = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "NEARWISE_CUDA_BACKEND", "PYTHONPATH")}
    return kept | {name: str(value) for name, value in variables.items()}


def python(code, expect=0, **variables):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(**variables))
    assert run.returncode == expect, run.stderr
    return run.stdout if expect == 0 else run.stderr


def program(*arguments, expect=0, **variables):
    path = Path(sys.executable).with_name("nearwise")
    run = subprocess.run([path, *arguments], capture_output=True, text=True, env=environment(**variables))
    assert run.returncode == expect, run.stderr
    return run.stdout


def cuda(**variables):
    """What info() says of CUDA, and the same by the program."""
    found = json.loads(python("import json, nearwise; print(json.dumps(nearwise.info()['cuda']))", **variables))
    assert json.loads(program("info", "--json", **variables))["cuda"]["driver_version"] == found["driver_version"]
    return found


@pytest.fixture
def other_build(tmp_path):
    """The backend with another id, where it finds NVIDIA's packages; and both ids."""
    content = LIBRARY.read_bytes()
    (own,) = set(BUILD_ID.findall(content))
    other = own[:-3] + (b"00" if own[-3:-1] != b"00" else b"11") + b"\0"
    (tmp_path / "nearwise_cuda13").mkdir()
    (tmp_path / "nvidia").symlink_to(PACKAGES / "nvidia")
    path = tmp_path / "nearwise_cuda13" / LIBRARY.name
    path.write_bytes(content.replace(own, other))
    return path, own[:-1].decode(), other[:-1].decode()


def test_importing_and_searching_on_the_cpu_load_nothing_of_cuda():
    maps = python(SEARCH + "print(open('/proc/self/maps').read())")
    assert "_core" in maps and "libnearwise_cuda" not in maps and "libcu" not in maps


def test_it_is_loaded_with_the_libraries_of_nvidias_packages():
    found = cuda()
    assert found["library"] == str(LIBRARY) and found["runtime_version"] >= 13000
    maps = python("import nearwise; nearwise.info(); print(open('/proc/self/maps').read())")
    loaded = {Path(line.split()[-1]) for line in maps.splitlines() if "/" in line}
    for name in ("libcudart.so.13", "libcublas.so.13"):
        (path,) = (path for path in loaded if path.name == name)
        assert path.is_relative_to(PACKAGES / "nvidia")


@without_driver
def test_a_missing_driver_is_named(tmp_path):
    assert cuda()["problem"] == "there is no NVIDIA driver"
    text = program("info", "--verbose")
    assert "no device can be used: there is no NVIDIA driver\n" in text and str(LIBRARY) in text
    message = python(SEARCH + "nearwise.knn(rows, rows, 1, device='cuda:0')", expect=1)
    assert "device cuda:0 is not available: there is no NVIDIA driver; devices here: cpu" in message
    report = program("gpu-check", "--quick", "--report", tmp_path / "report.json", expect=69)
    assert "CUDA        there is no NVIDIA driver\n" in report


@without_driver
def test_a_driver_that_is_too_old_is_named(tmp_path):
    source = Path(__file__).with_name("old_driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    problem = cuda(LD_LIBRARY_PATH=tmp_path)["problem"]
    assert problem == "the driver is too old: it supports CUDA 12.4, this build needs 13.0"


def test_another_build_is_refused_with_both_ids(other_build):
    path, own, other = other_build
    found = cuda(NEARWISE_CUDA_BACKEND=path)
    assert f"{path} (named by NEARWISE_CUDA_BACKEND) is of another build: it is {other}, nearwise is {own}" in found["problem"]
    assert found["library"] == "" and found["runtime_version"] == 0
    assert "of another build" in program("info", NEARWISE_CUDA_BACKEND=path)
    python(SEARCH, NEARWISE_CUDA_BACKEND=path)


def test_a_file_that_is_missing_is_named(tmp_path):
    problem = cuda(NEARWISE_CUDA_BACKEND=tmp_path / "missing.so")["problem"]
    assert f"{tmp_path}/missing.so (named by NEARWISE_CUDA_BACKEND) cannot be loaded" in problem
    python(SEARCH, NEARWISE_CUDA_BACKEND=tmp_path / "missing.so")


def test_without_the_package(tmp_path):
    """As if it were not installed: a folder that has the other packages."""
    for path in PACKAGES.iterdir():
        if not path.name.startswith("nearwise_cuda13"):
            (tmp_path / path.name).symlink_to(path)
    code = f"import sys; sys.path[:] = [{str(tmp_path)!r}, *(path for path in sys.path if path != {str(PACKAGES)!r})]\n" + SEARCH
    out = python(code + "print(nearwise.info()['cuda']['problem'])")
    assert out.startswith("the CUDA backend is not installed: pip install nearwise-cuda13")
