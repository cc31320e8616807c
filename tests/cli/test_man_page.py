"""The manual page that tools/man_page.py makes of the help."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import program

TOOL = Path(__file__).resolve().parents[2] / "tools" / "man_page.py"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("man") / "nearwise.1"
    subprocess.run([sys.executable, TOOL, program(), "-o", path], check=True)
    return path


def formatted(page, *options):
    if shutil.which("groff") is None:
        pytest.skip("groff formats it")
    return subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-ww", *options, page], capture_output=True, text=True, check=True)


def test_no_warnings(page):
    assert formatted(page, "-z").stderr == ""
    if shutil.which("man") is not None:
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True)
        assert shown.stderr == ""


def test_every_command_and_option_is_there(page, nearwise):
    text = re.sub(r"\s+", " ", formatted(page).stdout)
    script = nearwise("completion", "bash").out
    # The verbs `bench` and `gpu-check` are Python, with a help of their own.
    commands = [each for each in re.findall(r"^    '([^']+)'\) options='([^']*)'", script, re.M)
                if each[0] not in ("bench", "gpu-check")]
    assert len(commands) > 30
    for command, options in commands:
        assert f" nearwise {command} " in text
        for option in options.split():
            assert f" {option} " in text or f" {option}, " in text, (command, option)
    for code in (2, 65, 66, 69, 70, 71, 73, 74, 130):
        assert re.search(rf" {code} [a-zI]", text)
    version = nearwise("--version").out.strip()
    assert text.startswith("NEARWISE(1) User Commands NEARWISE(1)") and version in text


def test_examples_are_as_typed(page):
    text = formatted(page).stdout
    assert "nearwise index build base.fbin --lists 4096 --code-bytes 16 --target-recall 0.95 -o index.nw\n" in text
    assert "source <(nearwise completion bash)\n" in text


def test_the_same_bytes_again(page, tmp_path):
    subprocess.run([sys.executable, TOOL, program(), "-o", tmp_path / "again.1"], check=True)
    assert (tmp_path / "again.1").read_bytes() == page.read_bytes()
