"""nearwise completion: the scripts in real shells."""
import shutil
import subprocess

import pytest
from conftest import program

BASH = shutil.which("bash")


def completed(nearwise, tmp_path, *words):
    """What bash offers for the last word of a command line."""
    (tmp_path / "nearwise.bash").write_text(nearwise("completion", "bash").out)
    quoted = " ".join(f"'{word}'" for word in ("nearwise", *words))
    script = (f"source ./nearwise.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _nearwise; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    shell = subprocess.run([BASH, "--norc", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert shell.returncode == 0 and shell.stderr == "", shell
    return sorted(line for line in shell.stdout.splitlines() if line)


@pytest.fixture
def offer(nearwise, tmp_path):
    if BASH is None:
        pytest.skip("bash is not installed")
    return lambda *words: completed(nearwise, tmp_path, *words)


def test_commands(offer):
    assert offer("") == sorted(["knn", "index", "graph", "quantizer", "plan", "kmeans", "dedup", "eval", "convert", "verify", "info",
                                "completion"])
    assert offer("in") == ["index", "info"]
    assert offer("index", "") == sorted(["choose", "build", "add", "remove", "merge", "calibrate", "search", "export"])
    assert offer("graph", "e") == ["eval", "export"]
    assert offer("plan", "") == ["graph", "index"]
    assert offer("completion", "") == ["bash", "fish", "zsh"]


def test_options_are_those_of_the_command(offer):
    assert offer("index", "build", "--co") == ["--code-bytes", "--codec"]
    assert offer("index", "search", "index.nw", "--pr") == ["--probes"]
    assert offer("index", "search", "--ki") == [] and offer("quantizer", "train", "--ki") == ["--kind"]
    assert {"-o", "--output", "--help", "--json", "--memory-limit"} <= set(offer("knn", "base.fbin", "-"))
    assert offer("--ver") == ["--version"]


def test_values(offer):
    assert offer("index", "build", "base.fbin", "--codec", "") == ["flat", "lsq", "pq"]
    assert offer("quantizer", "train", "--kind", "") == ["lsq", "opq", "pq"]
    assert offer("knn", "--metric", "co") == ["cosine"]
    assert offer("kmeans", "--metric", "e") == []  # euclidean is not for k-means
    assert offer("knn", "base.fbin", "-k", "") == []
    # bash splits --codec=f into three words.
    assert offer("index", "build", "--codec", "=", "f") == ["flat"]
    assert offer("index", "build", "--codec", "=") == ["flat", "lsq", "pq"]


def test_files_and_folders(offer, tmp_path):
    (tmp_path / "base with space.fbin").touch()
    (tmp_path / "bases").mkdir()
    assert offer("knn", "bas") == ["base with space.fbin", "bases"]
    assert offer("knn", "-o", "base ") == ["base with space.fbin"]
    assert offer("index", "build", "--work", "bas") == ["bases"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(nearwise, tmp_path, shell):
    path = tmp_path / f"nearwise.{shell}"
    path.write_text(nearwise("completion", shell).out)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", path], check=True)


def test_every_shell_knows_every_command_and_choice(nearwise):
    for shell in ("bash", "zsh", "fish"):
        script = nearwise("completion", shell).out
        for word in ("calibrate", "components", "opq", "partitions", "memory-limit"):
            assert word in script, (shell, word)


def test_the_script_completes_the_program_itself(tmp_path, nearwise):
    """As a user loads it: from the program, by process substitution."""
    if BASH is None:
        pytest.skip("bash is not installed")
    script = f"source <({program()} completion bash); complete -p nearwise"
    shell = subprocess.run([BASH, "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert "-F _nearwise nearwise" in shell.stdout


def test_unknown_shell(nearwise):
    assert "shell must be one of bash, zsh, fish, got 'csh'" in nearwise("completion", "csh", expect=2).err
