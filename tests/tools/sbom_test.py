"""The bill of materials names everything that a wheel brings along."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def document(**environment):
    run = subprocess.run([sys.executable, ROOT / "tools" / "sbom"], capture_output=True, text=True, check=True,
                         env=os.environ | environment)
    return json.loads(run.stdout)


def test_it_names_what_the_licence_page_names():
    names = {package["name"].lower() for package in document()["packages"]} - {"nearwise"}
    page = (ROOT / "docs" / "policy" / "licence.md").read_text(encoding="utf-8")
    homes = set(re.findall(r"https://github\.com/\w+/([\w-]+)", page))
    assert len(names) == len(homes) >= 6
    assert {home.lower() for home in homes} == {name.replace("nlohmann-json", "json") for name in names}


def test_every_package_has_version_and_licence():
    for package in document()["packages"]:
        assert re.match(r"\d", package["versionInfo"]), package
        assert package["licenseDeclared"]


def test_it_names_every_library_that_cmake_finds():
    found = set(re.findall(r"^find_package\((\w+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M))
    own = {"hwy": "highway", "fmt": "fmt", "nlohmann_json": "nlohmann-json"}
    assert found <= {*own, "Threads", "PkgConfig", "Python", "GTest", "benchmark", "CLI11", "nanobind"}
    assert {own[name] for name in found if name in own} <= {package["name"] for package in document()["packages"]}


def test_it_repeats_at_the_same_time():
    assert document(SOURCE_DATE_EPOCH="0") == document(SOURCE_DATE_EPOCH="0")
