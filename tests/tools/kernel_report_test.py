import os
import shutil
import subprocess
from pathlib import Path

import pytest

import kernel_report

RESOURCES = """
Fatbin elf code:
================
arch = sm_90
code version = [1,8]

Resource usage:
 Common:
  GLOBAL:0
 Function _Z5cleanPf:
  REG:10 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z5arrayPfi:
  REG:32 STACK:256 SHARED:0 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin elf code:
================
arch = sm_75
Resource usage:
 Function _Z5cleanPf:
  REG:16 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
"""

SASS = """
	code for sm_90
		Function : _Z5cleanPf
        /*0000*/                   LDC R1, c[0x0][0x28] ;           /* 0x00000a00ff017b82 */
                                                                    /* 0x000fe20000000800 */
        /*0010*/                   LDG.E.128 R4, desc[UR6][R2.64] ; /* 0x0000000602007981 */
        /*0020*/                   SHFL.BFLY PT, R5, R4, 0x1, 0x1f ;
        /*0030*/              @!P0 BRA 0x10 ;
        /*0040*/                   EXIT ;
        /*0050*/                   BRA 0x50;
		Function : _Z5arrayPfi
        /*0000*/                   STL [R1], R2 ;
        /*0010*/               @P0 LDL R3, [R1+0x4] ;
        /*0020*/                   EXIT ;
	code for sm_75
		Function : _Z5cleanPf
        /*0000*/                   EXIT ;
"""

@pytest.fixture
def kernels(monkeypatch):
    """The kernels of the texts above."""
    monkeypatch.setattr(kernel_report, "cuobjdump", lambda: "cuobjdump")
    monkeypatch.setattr(kernel_report, "dump", lambda _, option, __: SASS if option == "-sass" else RESOURCES)
    return lambda: kernel_report.collect(["x.o"])


def test_resources_and_instructions_are_joined(kernels):
    array, clean_75, clean = kernels()
    assert (array.name, array.architecture, array.registers, array.stack_bytes) == ("array", 90, 32, 256)
    assert array.count("LDL|STL") == 2
    assert (clean.name, clean.shared_bytes, len(clean.instructions)) == ("clean", 1024, 6)
    assert (clean_75.architecture, clean_75.registers) == (75, 16)


def test_a_kernel_without_instructions_is_not_clean(kernels, monkeypatch):
    monkeypatch.setattr(kernel_report, "dump", lambda _, option, __: "" if option == "-sass" else RESOURCES)
    with pytest.raises(SystemExit, match="no instructions of _Z5cleanPf sm_90"):
        kernels()


def test_the_gate_refuses_local_memory(kernels, capsys):
    assert kernel_report.report(kernels(), gate="", block=128) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "<-- local memory" in line] == ["array"]
    assert kernel_report.report(kernels(), gate="clean", block=128) == 0


@pytest.mark.parametrize("change", [{"stack_bytes": 8}, {"local_bytes": 4}])
def test_each_kind_of_local_memory_is_refused(change):
    kernel = kernel_report.Kernel("k", 90, registers=10)
    assert not kernel.uses_local_memory()
    for name, value in change.items():
        setattr(kernel, name, value)
    assert kernel.uses_local_memory()


@pytest.mark.parametrize(("name", "local"), [("LDL.64", True), ("STL", True), ("LDG.E", False), ("LDS", False)])
def test_instructions_tell_local_memory(name, local):
    kernel = kernel_report.Kernel("k", 90, instructions=[kernel_report.Instruction(0, name, f"{name} R1")])
    assert kernel.uses_local_memory() == local


def test_loops_are_backward_branches(kernels):
    clean = kernels()[2]
    bodies = list(kernel_report.loops(clean))
    assert [[instruction.address for instruction in body] for body in bodies] == [[0x10, 0x20, 0x30]]


@pytest.mark.parametrize(("architecture", "registers", "shared", "expected"), [
    (90, 32, 1024, 1.0), (90, 64, 1024, 0.5), (90, 255, 1024, 0.125), (90, 32, 100 * 1024, 0.125),
    (80, 32, 82 * 1024, 0.0625), (75, 32, 32 * 1024, 0.25)])
def test_occupancy(architecture, registers, shared, expected):
    kernel = kernel_report.Kernel("k", architecture, registers=registers, shared_bytes=shared)
    assert kernel_report.occupancy(kernel, 128) == expected


def test_occupancy_of_an_unknown_architecture():
    assert kernel_report.occupancy(kernel_report.Kernel("k", 61, registers=32), 128) is None


# On a real object, where compiler and disassembler are at hand: an array indexed at run time must be refused.
SOURCE = """
__global__ void clean(float* p) { p[threadIdx.x] *= 2; }
__global__ void array(int* p, int n) {
  int counts[16] = {};
  for (int i = 0; i < n; ++i) ++counts[p[i] & 15];
  p[n] = counts[n & 15];
}
"""


def test_a_real_object(tool, tmp_path):
    nvcc = shutil.which("nvcc") or next(
        (str(path) for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda",
                                Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache",
                                     "nearwise/cuda-env/toolkit"))
         if home and (path := Path(home, "bin/nvcc")).exists()), None)
    if nvcc is None:
        pytest.skip("no nvcc on this machine")
    try:
        kernel_report.cuobjdump()
    except SystemExit as missing:
        pytest.skip(str(missing))
    (tmp_path / "kernels.cu").write_text(SOURCE)
    subprocess.run([nvcc, "-arch=sm_80", "-cubin", "-o", tmp_path / "kernels.cubin", tmp_path / "kernels.cu"], check=True)
    refused = tool("kernel_report.py", tmp_path / "kernels.cubin")
    assert refused.returncode == 1, refused.stderr
    assert "2 kernels, 1 with local memory" in refused.stdout
    accepted = tool("kernel_report.py", "--kernels", "clean", tmp_path / "kernels.cubin")
    assert accepted.returncode == 0 and "clean" in accepted.stdout
    assert tool("kernel_report.py", "--kernels", "absent", tmp_path / "kernels.cubin").returncode == 2
