"""The cluster's tests, each file in a network of its own: Ray listens at the machine's outer address."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "cluster"
ISOLATED = Path(__file__).parents[2] / "tools" / "isolated"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("test_*.py")), ids=lambda path: path.stem)
def test_on_a_cluster(path, tmp_path):
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "own", path]
    result = subprocess.run(
        [ISOLATED, *tests], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=560
    )
    assert result.returncode == 0, result.stdout[-8000:]
    assert " passed" in result.stdout and "skipped" not in result.stdout


def test_no_network_but_a_loopback():
    result = subprocess.run([ISOLATED, "ip", "-oneline", "address"], capture_output=True, text=True, timeout=30)
    assert {line.split()[1] for line in result.stdout.splitlines()} == {"lo"}, result


def test_nothing_is_left_behind():
    script = "sleep 1000 & echo started; wait"
    process = subprocess.Popen([ISOLATED, "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    process.kill()
    # The pipe ends when the last process that holds it does.
    assert process.communicate(timeout=30)[0] == ""
