#!/usr/bin/env python3
"""Checks what wheels are called, say and contain: tags, metadata, files, licences, size, symbols of Python; of the CUDA
backend's wheel also which libraries it needs, where it looks for them, and what it exports.

    tools/check_wheel.py dist/nearwise-*.whl dist/nearwise_cuda13-*.whl

tools/build_wheel runs it on what it has made. Needs nothing but Python's standard library and readelf.
"""
import argparse
import email.parser
import itertools
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import repository

NAME = re.compile(r"(?P<package>nearwise|nearwise_cuda13)-(?P<version>[\d.]+)-(?P<python>\w+)-(?P<abi>\w+)-(?P<platform>manylinux_[\w.]+)\.whl")
MOST_BYTES = {"nearwise": 6_000_000, "nearwise_cuda13": 8_000_000}
# The folder of each package's pyproject.toml and README.md, and the tags of its wheels.
FOLDERS = {"nearwise": ".", "nearwise_cuda13": "python/cuda13"}
TAGS = {"nearwise": {("cp311", "cp311"), ("cp312", "abi3")}, "nearwise_cuda13": {("py3", "none")}}
# Of the CUDA backend: NVIDIA's libraries come from NVIDIA's packages, the others are the system's.
BACKEND = "nearwise_cuda13/libnearwise_cuda.so"
NVIDIA_LIBRARIES = {"libcublas.so.13", "libcudart.so.13"}
SYSTEM_LIBRARIES = {"ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"}
NVIDIA_FOLDER = "$ORIGIN/../nvidia/cu13/lib"
# Names with an underscore in front that the stable ABI has (Misc/stable_abi.toml of CPython).
STABLE_PRIVATE = {"_PyObject_GC_New", "_PyObject_New", "_PyWeakref_RefType", "_Py_CheckRecursiveCall", "_Py_Dealloc", "_Py_DecRef",
                  "_Py_EllipsisObject", "_Py_FalseStruct", "_Py_IncRef", "_Py_NoneStruct", "_Py_NotImplementedStruct", "_Py_TrueStruct"}
UNDEFINED_PRIVATE = re.compile(r"\bUND (_Py\w+)")


def extension(python, abi):
    """A pattern of the extension module's file name."""
    return r"_core\.abi3\.so" if abi == "abi3" else rf"_core\.cpython-{python.removeprefix('cp')}-[\w-]+\.so"


def check_tags(name, wheel_file):
    """The file's name says what the file WHEEL says, and which Pythons it is for."""
    match = NAME.fullmatch(name)
    if not match:
        return ["the name is not nearwise-VERSION-PYTHON-ABI-manylinux_*.whl, nor that of nearwise_cuda13"]
    parts = [match[part].split(".") for part in ("python", "abi", "platform")]
    told = {"-".join(tag) for tag in itertools.product(*parts)}
    fields = email.parser.Parser().parsestr(wheel_file)
    findings = []
    if set(fields.get_all("Tag", [])) != told:
        findings.append(f"WHEEL has the tags {sorted(fields.get_all('Tag', []))}, the name has {sorted(told)}")
    if fields["Root-Is-Purelib"] != "false":
        findings.append("WHEEL does not say that the wheel depends on its platform")
    tags = TAGS[match["package"]]
    if (match["python"], match["abi"]) not in tags:
        findings.append(f"{match['python']}-{match['abi']}: wheels are {' and '.join('-'.join(tag) for tag in sorted(tags))}")
    return findings


def check_metadata(metadata, project, version, readme):
    """METADATA says what pyproject.toml says."""
    fields = email.parser.Parser().parsestr(metadata)
    expected = {
        "Name": [project["name"]], "Version": [version], "Summary": [project["description"]], "License-Expression": [project["license"]],
        "Author": [", ".join(author["name"] for author in project["authors"])], "Requires-Python": [project["requires-python"]],
        "Classifier": project["classifiers"], "Provides-Extra": sorted(project.get("optional-dependencies", {})),
        "Description-Content-Type": ["text/markdown"], "Keywords": [",".join(project["keywords"])],
        "Project-URL": [f"{label}, {address}" for label, address in project.get("urls", {}).items()],
    }
    if project["name"] == "nearwise-cuda13":
        expected["Requires-Dist"] = [f"nearwise=={version}", "nvidia-cublas==13.*", "nvidia-cuda-runtime==13.*"]
    findings = [f"METADATA: {name} is {fields.get_all(name, [])}, not {values}" for name, values in expected.items()
                if sorted(fields.get_all(name, [])) != sorted(values)]
    if fields.get_payload().strip() != readme.strip():
        findings.append("METADATA: the description is not README.md")
    return findings


def check_files(names, match, licences, package):
    """The package's files, its two programs, libraries and licences; nothing else."""
    info = f"{match['package']}-{match['version']}.dist-info"
    wanted = {*package, *(f"{info}/licenses/{licence}" for licence in licences), *(f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL"))}
    if match["package"] == "nearwise_cuda13":
        wanted.add(BACKEND)
        return [f"{name} {'is missing' if name in wanted else 'does not belong there'}" for name in sorted(wanted ^ set(names))]
    wanted |= {"nearwise/_core.pyi", "nearwise/bin/nearwise", f"nearwise-{match['version']}.data/scripts/nearwise"}
    module = re.compile("nearwise/" + extension(match["python"], match["abi"]))
    library = re.compile(r"nearwise\.libs/[\w.+-]+\.so[\w.]*")
    modules = [name for name in names if module.fullmatch(name)]
    allowed = {*wanted, *modules, *(name for name in names if library.fullmatch(name)), f"{info}/sboms/auditwheel.cdx.json"}
    findings = [f"{name} is missing" for name in sorted(wanted - set(names))]
    findings += [f"{name} does not belong there" for name in sorted(set(names) - allowed)]
    return findings if len(modules) == 1 else [*findings, f"modules nearwise/{extension(match['python'], match['abi'])}: {len(modules)}, not 1"]


def readelf(library, *options):
    """What readelf prints of a library's bytes."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(library)
        file.flush()
        return subprocess.run(["readelf", "--wide", *options, file.name], capture_output=True, text=True, check=True).stdout


def private_symbols(module):
    """Names of Python that a module takes, and that another Python may not have."""
    return sorted(set(UNDEFINED_PRIVATE.findall(readelf(module, "--dyn-syms"))) - STABLE_PRIVATE)


def check_backend(library):
    """The CUDA backend needs NVIDIA's libraries where NVIDIA's packages put them, and exports one function."""
    dynamic = readelf(library, "--dynamic")
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    findings = [f"{BACKEND} does not need {name}" for name in sorted(NVIDIA_LIBRARIES - needed)]
    findings += [f"{BACKEND} needs {name}, which no package brings along" for name in sorted(needed - NVIDIA_LIBRARIES - SYSTEM_LIBRARIES)]
    folders = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
    if folders != [NVIDIA_FOLDER]:
        findings.append(f"{BACKEND} looks for libraries in {folders}, not in {NVIDIA_FOLDER}")
    exported = re.findall(r"(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +(?:\d+|ABS) (\S+)", readelf(library, "--dyn-syms"))
    if exported != ["nearwise_cuda_backend"]:
        findings.append(f"{BACKEND} exports {exported[:5]}, not nearwise_cuda_backend alone")
    return findings


def check(path, root=repository.ROOT):
    """Findings of one wheel."""
    match = NAME.fullmatch(path.name)
    if not match:
        return check_tags(path.name, "")
    name, folder = match["package"], root / FOLDERS[match["package"]]
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r"project\(nearwise VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    licences = [str(file.relative_to(folder)) for pattern in project["license-files"] for file in folder.glob(pattern)]
    sources = Path("python") if name == "nearwise" else Path(FOLDERS[name])
    package = [str(file.relative_to(sources)) for file in repository.files(root) if file.is_relative_to(sources / name)]
    with zipfile.ZipFile(path) as wheel:
        names = [file for file in wheel.namelist() if not file.endswith("/")]
        text = {file.split("/")[1]: wheel.read(file).decode() for file in names if file.endswith((".dist-info/WHEEL", ".dist-info/METADATA"))}
        modules = [wheel.read(file) for file in names if file.endswith("/_core.abi3.so")]
        backends = [wheel.read(file) for file in names if file == BACKEND]
    findings = check_tags(path.name, text.get("WHEEL", ""))
    findings += check_metadata(text.get("METADATA", ""), project, version, (folder / "README.md").read_text(encoding="utf-8"))
    findings += check_files(names, match, licences, package)
    findings += [f"_core.abi3.so needs {symbol}, which is not in the stable ABI" for module in modules for symbol in private_symbols(module)]
    findings += [finding for library in backends for finding in check_backend(library)]
    if path.stat().st_size > MOST_BYTES[name]:
        findings.append(f"{path.stat().st_size} bytes, more than {MOST_BYTES[name]}")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", type=Path)
    wheels = parser.parse_args().wheels
    return repository.conclude("check_wheel", [f"{path.name}: {finding}" for path in wheels for finding in check(path)])


if __name__ == "__main__":
    sys.exit(main())
