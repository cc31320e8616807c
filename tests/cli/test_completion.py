"""nearwise completion: the scripts in real shells."""
import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import program
from test_usage import commands_of

# The verbs that are Python.
PACKAGE = Path(__file__).resolve().parents[2] / "python" / "nearwise"
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
    assert offer("") == sorted(["knn", "index", "graph", "quantizer", "plan", "kmeans", "join", "dedup", "eval", "convert", "verify", "info",
                                "completion", "bench", "gpu-check"])
    assert offer("in") == ["index", "info"]
    assert offer("index", "") == sorted(["choose", "build", "add", "remove", "merge", "calibrate", "search", "export"])
    assert offer("graph", "e") == ["eval", "export"]
    assert offer("plan", "") == ["dedup", "graph", "index", "join"]
    assert offer("completion", "") == ["bash", "fish", "zsh"]


def test_options_are_those_of_the_command(offer):
    assert offer("index", "build", "--co") == ["--code-bytes", "--codec"]
    assert offer("index", "search", "index.nw", "--pr") == ["--probes"]
    assert offer("index", "search", "--ki") == [] and offer("quantizer", "train", "--ki") == ["--kind"]
    assert {"-o", "--output", "--help", "--json", "--memory-limit"} <= set(offer("knn", "base.fbin", "-"))
    assert offer("--ver") == ["--version"]


def test_every_command_of_the_help_is_offered(offer, nearwise):
    for *nouns, verb in commands_of(nearwise):
        assert verb in offer(*nouns, ""), (nouns, verb)
    assert "nearwise bench" in nearwise("--help").out and "bench" in offer("b")
    assert "nearwise gpu-check" in nearwise("--help").out and "gpu-check" in offer("gp")


def test_every_option_of_the_help_is_offered(offer, nearwise):
    for command in commands_of(nearwise):
        text = nearwise(*command, "--help").out.split("Options:\n")[1].split("\n\n")[0]
        terms = re.findall(r"^  (-\S+)", text, re.M)
        assert terms and offer(*command, "-") == sorted(name for term in terms for name in term.split(",")), command


def options_of(verb):
    """{option: its choices, or None} of the parser in the package."""
    calls = [node for node in ast.walk(ast.parse((PACKAGE / verb / "command.py").read_text(encoding="utf-8")))
             if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"]
    found = {"-h": None, "--help": None}
    for call in calls:
        choices = [ast.literal_eval(each.value) for each in call.keywords if each.arg == "choices"]
        found |= dict.fromkeys([ast.literal_eval(each) for each in call.args], list(choices[0]) if choices else None)
    return found


def names_of_bench(table):
    source = ast.parse((PACKAGE / "_bench" / "methods.py").read_text(encoding="utf-8"))
    (value,) = [node.value for node in source.body if isinstance(node, (ast.Assign, ast.AnnAssign))
                and getattr(getattr(node, "target", None) or node.targets[0], "id", "") == table]
    return sorted(ast.literal_eval(key) for key in (value.keys if isinstance(value, ast.Dict) else value.elts))


def test_bench_is_offered_as_the_package_has_it(offer):
    options = options_of("_bench")
    assert len(options) > 17 and options.pop("data") is None
    assert offer("bench", "-") == sorted(options)
    for name, choices in options.items():
        if choices is not None:
            assert offer("bench", name, "") == sorted(choices)
    assert offer("bench", "--against", "") == names_of_bench("RIVALS")
    assert offer("bench", "--kinds", "") == names_of_bench("OWN")
    assert offer("bench", "--threads", "") == []


def test_gpu_check_is_offered_as_the_package_has_it(offer):
    options = options_of("_gpu_check")
    assert len(options) > 9 and offer("gpu-check", "-") == sorted(options)
    sections = {match for path in (PACKAGE / "_gpu_check").glob("*.py")
                for match in re.findall(r'Case\(\s*"\w+",\s*"(\w+)"', path.read_text(encoding="utf-8"))}
    assert len(sections) > 5 and offer("gpu-check", "--only", "") == sorted(sections)
    assert offer("gpu-check", "--limit", "") == []


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
