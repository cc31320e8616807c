#!/usr/bin/env python3
"""Checks what wheels are called, say and contain: tags, metadata, files, licences, size, symbols of Python.

    tools/check_wheel.py dist/nearwise-*.whl

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

MOST_BYTES = 6_000_000
NAME = re.compile(r"nearwise-(?P<version>[\d.]+)-(?P<python>\w+)-(?P<abi>\w+)-(?P<platform>manylinux_[\w.]+)\.whl")
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
        return ["the name is not nearwise-VERSION-PYTHON-ABI-manylinux_*.whl"]
    parts = [match[part].split(".") for part in ("python", "abi", "platform")]
    told = {"-".join(tag) for tag in itertools.product(*parts)}
    fields = email.parser.Parser().parsestr(wheel_file)
    findings = []
    if set(fields.get_all("Tag", [])) != told:
        findings.append(f"WHEEL has the tags {sorted(fields.get_all('Tag', []))}, the name has {sorted(told)}")
    if fields["Root-Is-Purelib"] != "false":
        findings.append("WHEEL does not say that the wheel depends on its platform")
    if (match["python"], match["abi"]) not in {("cp311", "cp311"), ("cp312", "abi3")}:
        findings.append(f"{match['python']}-{match['abi']}: wheels are cp311-cp311 and cp312-abi3")
    return findings


def check_metadata(metadata, project, version, readme):
    """METADATA says what pyproject.toml says."""
    fields = email.parser.Parser().parsestr(metadata)
    expected = {
        "Name": [project["name"]], "Version": [version], "Summary": [project["description"]], "License-Expression": [project["license"]],
        "Author": [", ".join(author["name"] for author in project["authors"])], "Requires-Python": [project["requires-python"]],
        "Classifier": project["classifiers"], "Provides-Extra": sorted(project["optional-dependencies"]),
        "Description-Content-Type": ["text/markdown"], "Keywords": [",".join(project["keywords"])],
        "Project-URL": [f"{label}, {address}" for label, address in project.get("urls", {}).items()],
    }
    findings = [f"METADATA: {name} is {fields.get_all(name, [])}, not {values}" for name, values in expected.items()
                if sorted(fields.get_all(name, [])) != sorted(values)]
    if fields.get_payload().strip() != readme.strip():
        findings.append("METADATA: the description is not README.md")
    return findings


def check_files(names, match, licences, package):
    """The package's files, its two programs, libraries and licences; nothing else."""
    info = f"nearwise-{match['version']}.dist-info"
    wanted = {*package, "nearwise/_core.pyi", "nearwise/bin/nearwise", f"nearwise-{match['version']}.data/scripts/nearwise",
              *(f"{info}/licenses/{licence}" for licence in licences), *(f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL"))}
    module = re.compile("nearwise/" + extension(match["python"], match["abi"]))
    library = re.compile(r"nearwise\.libs/[\w.+-]+\.so[\w.]*")
    modules = [name for name in names if module.fullmatch(name)]
    allowed = {*wanted, *modules, *(name for name in names if library.fullmatch(name)), f"{info}/sboms/auditwheel.cdx.json"}
    findings = [f"{name} is missing" for name in sorted(wanted - set(names))]
    findings += [f"{name} does not belong there" for name in sorted(set(names) - allowed)]
    return findings if len(modules) == 1 else [*findings, f"modules nearwise/{extension(match['python'], match['abi'])}: {len(modules)}, not 1"]


def private_symbols(module):
    """Names of Python that a module takes, and that another Python may not have."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(module)
        file.flush()
        run = subprocess.run(["readelf", "--dyn-syms", "--wide", file.name], capture_output=True, text=True, check=True)
    return sorted(set(UNDEFINED_PRIVATE.findall(run.stdout)) - STABLE_PRIVATE)


def check(path, root=repository.ROOT):
    """Findings of one wheel."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r"project\(nearwise VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    match = NAME.fullmatch(path.name)
    if not match:
        return check_tags(path.name, "")
    licences = [str(file.relative_to(root)) for pattern in project["license-files"] for file in root.glob(pattern)]
    package = [str(file.relative_to("python")) for file in repository.files(root) if file.is_relative_to("python/nearwise")]
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        text = {name.split("/")[1]: wheel.read(name).decode() for name in names if name.endswith((".dist-info/WHEEL", ".dist-info/METADATA"))}
        modules = [wheel.read(name) for name in names if name.endswith("/_core.abi3.so")]
    findings = check_tags(path.name, text.get("WHEEL", ""))
    findings += check_metadata(text.get("METADATA", ""), project, version, (root / "README.md").read_text(encoding="utf-8"))
    findings += check_files(names, match, licences, package)
    findings += [f"_core.abi3.so needs {name}, which is not in the stable ABI" for module in modules for name in private_symbols(module)]
    if path.stat().st_size > MOST_BYTES:
        findings.append(f"{path.stat().st_size} bytes, more than {MOST_BYTES}")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", type=Path)
    wheels = parser.parse_args().wheels
    return repository.conclude("check_wheel", [f"{path.name}: {finding}" for path in wheels for finding in check(path)])


if __name__ == "__main__":
    sys.exit(main())
