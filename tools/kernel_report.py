#!/usr/bin/env python3
"""Resources of the kernels in CUDA objects: registers, stack, local memory, instructions, occupancy.

    tools/kernel_report.py build/cuda/src/CMakeFiles/nearwise_cuda.dir/backend/cuda/kernels/*.o
    tools/kernel_report.py --kernels select_rows FILE...

Reads objects, cubins, libraries and programs through cuobjdump. Exit status 1 if a kernel that --gate matches has a stack
frame or loads and stores of local memory: spilled registers, or register arrays indexed at run time.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

LOCAL_ACCESS = re.compile(r"(LDL|STL)\b")


class Multiprocessor(NamedTuple):
    """Limits of one multiprocessor, from the CUDA programming guide's table of compute capabilities."""

    registers: int
    warps: int
    blocks: int
    shared_kilobytes: int


MULTIPROCESSORS = {
    75: Multiprocessor(65536, 32, 16, 64), 80: Multiprocessor(65536, 64, 32, 164),
    86: Multiprocessor(65536, 48, 16, 100), 89: Multiprocessor(65536, 48, 24, 100),
    90: Multiprocessor(65536, 64, 32, 228), 100: Multiprocessor(65536, 64, 32, 228),
    120: Multiprocessor(65536, 48, 24, 100)}


class Instruction(NamedTuple):
    address: int
    name: str  # LDG.E.128
    text: str


@dataclass
class Kernel:
    symbol: str
    architecture: int
    registers: int = 0
    stack_bytes: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    instructions: list[Instruction] = field(default_factory=list)
    name: str = ""

    def count(self, pattern):
        return sum(bool(re.match(pattern, instruction.name)) for instruction in self.instructions)

    def uses_local_memory(self):
        return bool(self.stack_bytes or self.local_bytes
                    or any(LOCAL_ACCESS.match(instruction.name) for instruction in self.instructions))


def read_resources(text):
    """Kernels by (symbol, architecture) from the output of `cuobjdump -res-usage`."""
    kernels, architecture, symbol = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"arch = sm_(\d+)", line):
            architecture = int(match[1])
        elif match := re.match(r"\s+Function (\S+):$", line):
            symbol = match[1]
        elif symbol and (match := re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", line)):
            registers, stack, shared, local = map(int, match.groups())
            kernels[symbol, architecture] = Kernel(symbol, architecture, registers, stack, local, shared)
            symbol = None
    return kernels


def read_instructions(text):
    """Instructions by (symbol, architecture) from the output of `cuobjdump -sass`."""
    found, architecture, current = {}, None, None
    for line in text.splitlines():
        if match := re.match(r"\s+code for sm_(\d+)", line):
            architecture = int(match[1])
        elif match := re.match(r"\s+Function : (\S+)", line):
            current = found.setdefault((match[1], architecture), [])
        elif current is not None and (match := re.match(r"\s+/\*([0-9a-f]{4,6})\*/\s+(.*?)\s*;", line)):
            words = match[2].split()
            name = words[1] if words[0].startswith("@") else words[0]
            current.append(Instruction(int(match[1], 16), name, match[2]))
    return found


def occupancy(kernel, block):
    """Resident warps of the most there can be; None for an architecture that is not in the table."""
    if kernel.architecture not in MULTIPROCESSORS:
        return None
    limits = MULTIPROCESSORS[kernel.architecture]
    warps = -(-block // 32)
    registers_per_warp = -(-max(kernel.registers, 1) * 32 // 256) * 256  # given out by 256
    # Four parts with registers of their own.
    by_registers = limits.registers // 4 // registers_per_warp * 4 // warps
    # The system takes 1 KiB for each block from sm_80 on; from sm_90 on the kernel's number has it in.
    shared_bytes = kernel.shared_bytes + (1024 if 80 <= kernel.architecture < 90 else 0)
    by_shared = limits.shared_kilobytes * 1024 // max(shared_bytes, 1)
    return min(by_registers, by_shared, limits.blocks, limits.warps // warps) * warps / limits.warps


def loops(kernel):
    """Instructions from a branch's target to the branch, for branches that go back."""
    position = {instruction.address: i for i, instruction in enumerate(kernel.instructions)}
    for i, instruction in enumerate(kernel.instructions):
        target = re.search(r"\b(0x[0-9a-f]+)$", instruction.text)
        if instruction.name.startswith("BRA") and target:
            # A branch to itself follows the end of every kernel.
            first = position.get(int(target[1], 16))
            if first is not None and first < i:
                yield kernel.instructions[first:i + 1]


def successors(kernel):
    """For every instruction the positions of its possible successors. Calls return; BRA.DIV is taken to fall through.

    A conditional call is how the compiler leaves loops on sm_75 and sm_80: it does not return.
    """
    position = {instruction.address: i for i, instruction in enumerate(kernel.instructions)}
    following = []
    for i, instruction in enumerate(kernel.instructions):
        conditional = instruction.text.startswith("@")
        target = re.search(r"\b(0x[0-9a-f]+)$", instruction.text)
        nexts = [i + 1]
        if instruction.name in ("EXIT", "RET") and not conditional:
            nexts = []
        elif instruction.name.startswith("BRA") and not instruction.name.startswith("BRA.DIV"):
            # A branch by a uniform predicate has the predicate behind its name.
            falls_through = conditional or ".U" in instruction.name
            nexts = ([position[int(target[1], 16)]] if target else []) + ([i + 1] if falls_through else [])
        elif instruction.name.startswith("CALL.REL") and conditional:
            nexts.append(position[int(target[1], 16)])
        following.append([j for j in nexts if j < len(kernel.instructions)])
    return following


def reachable(following, inside, start):
    """The positions of `inside` that are reached from `start` without leaving `inside`."""
    found, waiting = set(), [start]
    while waiting:
        for j in following[waiting.pop()]:
            if j in inside and j not in found:
                found.add(j)
                waiting.append(j)
    return found


def loop_around(following, inside, start):
    """The positions of `inside` on a loop through `start` that does not leave `inside`."""
    preceding = [[] for _ in following]
    for i, nexts in enumerate(following):
        for j in nexts:
            preceding[j].append(i)
    return reachable(following, inside, start) & reachable(preceding, inside, start)


def cuobjdump():
    """The program: on PATH, of the toolkit named by the environment, of tools/setup."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nearwise")
    homes = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda", cache / "cuda-env/toolkit",
             Path(sysconfig.get_paths()["purelib"], "nvidia/cu13")]
    homes += Path(os.environ.get("NEARWISE_ENV") or cache / "env").glob("lib/python3.*/site-packages/nvidia/cu13")
    path = os.pathsep.join([os.environ.get("PATH", ""), *(str(Path(home, "bin")) for home in homes if home)])
    program = shutil.which("cuobjdump", path=path)
    if program is None:
        raise SystemExit("kernel_report: cuobjdump is not here; tools/setup installs it")
    return program


def dump(program, option, file):
    # It calls nvdisasm, which is in the same folder.
    environment = {**os.environ, "PATH": f"{Path(program).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    result = subprocess.run([program, option, str(file)], capture_output=True, text=True, env=environment)
    if result.returncode:
        raise SystemExit(f"kernel_report: {file}: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def demangle(kernels):
    symbols = "\n".join(kernel.symbol for kernel in kernels)
    names = subprocess.run(["c++filt"], input=symbols, capture_output=True, text=True, check=True).stdout.splitlines()
    for kernel, name in zip(kernels, names):
        kernel.name = re.sub(r"^void |\(anonymous namespace\)::|\([^()]*\)$", "", name)


def collect(files):
    """The kernels of the files, by name and architecture."""
    program = cuobjdump()
    kernels = []
    for file in files:
        found = read_resources(dump(program, "-res-usage", file))
        instructions = read_instructions(dump(program, "-sass", file)) if found else {}
        for kernel in found.values():
            if kernel.architecture is None:  # a cubin, which is for one: only the disassembly names it
                kernel.architecture = next(architecture for _, architecture in instructions)
            kernel.instructions = instructions.get((kernel.symbol, kernel.architecture), [])
            if not kernel.instructions:  # the gate would see nothing
                raise SystemExit(f"kernel_report: {file}: no instructions of {kernel.symbol} sm_{kernel.architecture}")
            kernels.append(kernel)
    if kernels:
        demangle(kernels)
    return sorted(kernels, key=lambda kernel: (kernel.name, kernel.architecture))


def report(kernels, gate, block):
    """Prints the table; returns the number of refused kernels."""
    print(f"{'kernel':60} {'sm':>4} {'regs':>4} {'stack':>5} {'local':>5} {'shared':>6} {'instr':>6} "
          f"{'LDL+STL':>7} {'occupancy':>9}")
    refused = 0
    for kernel in kernels:
        fails = bool(re.search(gate, kernel.name)) and kernel.uses_local_memory()
        refused += fails
        warps = occupancy(kernel, block)
        print(f"{kernel.name[:60]:60} {kernel.architecture:4} {kernel.registers:4} {kernel.stack_bytes:5} "
              f"{kernel.local_bytes:5} {kernel.shared_bytes:6} {len(kernel.instructions):6} {kernel.count('LDL|STL'):7} "
              f"{'-' if warps is None else f'{warps:.0%}':>9}{'  <-- local memory' if fails else ''}")
    return refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="objects, cubins, libraries or programs")
    parser.add_argument("--kernels", default="", help="regular expression: only these")
    parser.add_argument("--gate", default="", help="regular expression: these must not use local memory; default: all")
    parser.add_argument("--block", type=int, default=128, help="threads of a block, for the occupancy")
    arguments = parser.parse_args()
    kernels = [kernel for kernel in collect(arguments.files) if re.search(arguments.kernels, kernel.name)]
    if not kernels:
        print("kernel_report: no kernel found", file=sys.stderr)
        return 2
    refused = report(kernels, arguments.gate, arguments.block)
    print(f"kernel_report: {len(kernels)} kernels, {refused} with local memory")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
