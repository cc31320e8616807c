"""Makes the modules of tools/ and bench/ importable, and creates small repositories to test them on."""
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path[:0] = [str(TOOLS), str(TOOLS.parent / "bench")]


@pytest.fixture
def tool():
    """Runs a program of tools/ and returns its CompletedProcess."""

    def run(name, *arguments, **options):
        command = [sys.executable, str(TOOLS / name)] if name.endswith(".py") else [str(TOOLS / name)]
        return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, **options)

    return run


@pytest.fixture
def make_repository(tmp_path):
    """Makes a git repository from {path: text}; returns its folder."""

    def make(contents):
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
        for path, text in contents.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return make
