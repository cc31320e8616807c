"""Command lines that cannot be parsed: the message names the word that was meant."""
import pytest

UNKNOWN = [
    # commands of the flat layout, and of other programs
    (["build", "base.fbin", "-o", "x.nw"], "unknown command 'build'; did you mean 'nearwise index build' or 'nearwise graph build'?"),
    (["search", "index.nw", "q.fbin"], "did you mean 'nearwise index search'?"),
    (["measure", "index.nw", "base.fbin"], "did you mean 'nearwise index calibrate'?"),
    (["train", "base.fbin"], "did you mean 'nearwise quantizer train'?"),
    (["index", "measure"], "did you mean 'nearwise index calibrate'?"),
    # typing errors
    (["indx"], "unknown command 'indx'; did you mean 'nearwise index'?"),
    (["index", "biuld", "base.fbin"], "unknown command 'biuld'; did you mean 'nearwise index build'?"),
    (["graph", "component", "g.nw"], "did you mean 'nearwise graph components'?"),
    (["serach", "index.nw", "q.fbin"], "unknown command 'serach'; did you mean 'nearwise index search'?"),
    (["dance"], "unknown command 'dance'; expected one of knn, index, graph, quantizer, plan, kmeans"),
    # of the Python package
    (["bench", "base.fbin"], "this program has no command 'bench'; the one of the Python package has: pip install nearwise[bench]"),
    (["bench", "base.fbin", "--against", "faiss", "-o", "x.html"], "pip install nearwise[bench]"),
    (["index", "bench"], "unknown command 'bench'; expected one of choose"),
    # a noun without a verb
    (["index"], "index: expected a command: choose, build, add, remove, merge, calibrate, search"),
    # options of other libraries, of the flat layout, and typing errors
    (["index", "search", "i.nw", "q.fbin", "--nprobe", "8"], "index search: unknown option --nprobe; did you mean --probes?"),
    (["index", "search", "i.nw", "q.fbin", "--nprobe=8"], "unknown option --nprobe; did you mean --probes?"),
    (["index", "search", "--n_probes", "8"], "unknown option --n_probes; did you mean --probes?"),
    (["index", "search", "i.nw", "q.fbin", "--ef", "8"], "unknown option --ef; did you mean --candidates?"),
    (["index", "search", "i.nw", "q.fbin", "--efSearch", "8"], "did you mean --candidates?"),
    (["index", "search", "i.nw", "q.fbin", "--n_neighbors", "8"], "did you mean -k?"),
    (["graph", "build", "b.fbin", "-o", "g.nw", "--n_neighbors", "8"], "did you mean --degree?"),
    (["knn", "b.fbin", "q.fbin", "--memory", "1GiB"], "did you mean --memory-limit?"),
    (["graph", "build", "b.fbin", "-o", "g.nw", "--way", "pairs"], "did you mean --method?"),
    (["graph", "build", "b.fbin", "-o", "g.nw", "--recall", "0.9"], "did you mean --target-recall?"),
    (["quantizer", "train", "b.fbin", "-o", "w.nw", "--codec", "pq"], "did you mean --kind?"),
    (["knn", "b.fbin", "q.fbin", "--metrc", "cosine"], "did you mean --metric?"),
    (["knn", "--base", "b.fbin", "--queries", "q.fbin"],
     "unknown option --base; give it by position: nearwise knn base queries"),
    (["knn", "b.fbin", "q.fbin", "--colour", "red"], "knn: unknown option --colour (see 'nearwise knn --help')"),
    # words too many
    (["eval", "a.nw", "b.nw", "c.nw"], "eval: unexpected argument 'c.nw'"),
]


@pytest.mark.parametrize("arguments, words", UNKNOWN, ids=[" ".join(arguments) for arguments, _ in UNKNOWN])
def test_unknown_words(nearwise, arguments, words):
    error = nearwise(*arguments, expect=2).err
    assert words in error and error.count("\n") == 1


def test_values_are_named_with_what_was_expected(nearwise):
    for arguments, words in [
        (["knn", "b.fbin", "q.fbin", "-k", "0"], "knn: -k must be a whole number of at least 1, got '0'"),
        (["index", "build", "b.fbin", "-o", "x.nw", "--codec", "zip"], "--codec must be one of flat, pq, lsq, got 'zip'"),
        (["index", "build", "b.fbin", "-o", "x.nw", "--target-recall", "1.5"],
         "--target-recall must be above 0 and at most 1, got '1.5'"),
        (["knn", "b.fbin", "q.fbin", "--memory-limit", "much"], "--memory-limit must be a size such as 2GiB"),
    ]:
        assert words in nearwise(*arguments, expect=2).err


def commands_of(nearwise, *path):
    """All commands, from the help texts."""
    text = nearwise(*path, "--help").out
    if "Subcommands:" not in text:
        return [path]
    lines = text.split("Subcommands:\n")[1].splitlines()
    names = [line.split()[0] for line in lines[: lines.index("") if "" in lines else None]]
    return [command for name in names for command in commands_of(nearwise, *path, name)]


def test_every_command_has_an_example_and_short_lines(nearwise):
    commands = commands_of(nearwise)
    assert len(commands) == 30 and ("index", "calibrate") in commands and ("plan", "graph") in commands
    for command in commands:
        text = nearwise(*command, "--help").out
        assert "Example:\n" in text and f"nearwise {' '.join(command)}" in text
        footer = text.split("Example:\n")[1].splitlines()
        assert max(map(len, footer)) <= 110, (command, max(footer, key=len))
