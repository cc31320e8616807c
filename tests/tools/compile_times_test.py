import json

import pytest

import compile_times

CPP = "src/CMakeFiles/nearwise.dir/ops/exact.cpp.o"
CUDA = "src/CMakeFiles/nearwise.dir/backend/cuda/knn.cu.o"


@pytest.fixture
def build(tmp_path):
    """Makes a build folder with a Ninja log of (milliseconds, object), where every compilation is `true`."""

    def make(entries):
        lines = ["# ninja log v5"]
        commands = []
        for milliseconds, output in entries:
            lines.append(f"100\t{100 + milliseconds}\t0\t{output}\tabc")
            commands.append({"directory": str(tmp_path), "command": f"true -o {output} -c x.cpp", "file": "x.cpp"})
            (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / output).touch()
        (tmp_path / ".ninja_log").write_text("\n".join(lines) + "\n")
        (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
        return tmp_path

    return make


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the program; compiling again takes `cpu_seconds`. Returns status, compiled objects and what was said."""

    def call(folder, cpu_seconds, *arguments):
        compiled = []

        def compile_again(_, output):
            compiled.append(output)
            return cpu_seconds

        monkeypatch.setattr(compile_times, "compile_again", compile_again)
        monkeypatch.setattr("sys.argv", ["compile_times", str(folder), *map(str, arguments)])
        status = compile_times.main()
        said = capsys.readouterr()
        return status, compiled, said.out + said.err

    return call


@pytest.mark.parametrize(("entries", "suspects"), [
    ([(29_000, CPP), (59_000, CUDA)], []),
    ([(31_000, CPP)], [CPP]),
    ([(61_000, CUDA)], [CUDA]),
    ([(31_000, CPP), (2_000, CPP)], []),  # compiled again, faster
    ([(90_000, "bin/nearwise")], []),  # a link is no compilation
])
def test_only_what_the_clock_suspects_is_compiled_again(build, run, entries, suspects):
    status, compiled, _ = run(build(entries), 1000, "--tolerance", 1)
    assert compiled == suspects
    assert status == (1 if suspects else 0)


def test_cpu_time_decides(build, run):
    folder = build([(90_000, CPP)])
    status, _, said = run(folder, 29, "--tolerance", 1)
    assert status == 0
    assert "the machine was busy" in said
    status, _, said = run(folder, 31, "--tolerance", 1)
    assert status == 1
    assert "src/ops/exact.cpp: 31.0 s" in said


def test_tolerance_widens_the_bars(build, run):
    assert run(build([(90_000, CPP)]), 40, "--tolerance", 1.5)[0] == 0
    assert run(build([(90_000, CPP)]), 46, "--tolerance", 1.5)[0] == 1


def test_objects_of_removed_files_do_not_count(build, run):
    folder = build([(90_000, CPP)])
    (folder / CPP).unlink()
    assert run(folder, 1000)[0] == 0


def test_measures_the_compile_command_of_the_object(build):
    folder = build([(90_000, CPP)])
    assert 0 <= compile_times.compile_again(folder, CPP) < 5
    with pytest.raises(SystemExit):
        compile_times.compile_again(folder, CUDA)


def test_a_folder_without_a_log_is_an_error(tmp_path, run):
    assert run(tmp_path, 0)[0] == 2
