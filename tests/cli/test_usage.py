"""Command lines that cannot be parsed: the message names the word that was meant."""
import numpy as np
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
    (["bench", "base.fbin"], "this program has no command 'bench'; that of the Python package has: nearwise[bench], see docs/start/install.md"),
    (["bench", "base.fbin", "--against", "faiss", "-o", "x.html"], "nearwise[bench], see docs/start/install.md"),
    (["gpu-check", "--quick"], "this program has no command 'gpu-check'; that of the Python package has: nearwise, see docs/start/install.md"),
    (["gpu-check"], "nearwise, see docs/start/install.md"),
    (["index", "bench"], "unknown command 'bench'; expected one of choose"),
    # a noun without a verb
    (["index"], "index: expected a command: choose, build, add, remove, merge, calibrate, search"),
    # options of other libraries, of the flat layout, and typing errors
    (["index", "search", "i.nw", "q.fbin", "--nprobe", "8"], "index search: unknown option --nprobe; did you mean --probes?"),
    (["index", "search", "i.nw", "q.fbin", "--nprobe=8"], "unknown option --nprobe; did you mean --probes?"),
    (["index", "search", "--n_probes", "8"], "unknown option --n_probes; did you mean --probes?"),
    (["index", "search", "i.nw", "q.fbin", "--ef", "8"], "unknown option --ef; did you mean --candidates or --beam?"),
    (["index", "search", "i.nw", "q.fbin", "--efSearch", "8"], "did you mean --candidates or --beam?"),
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
    (["index", "build", "b.fbin", "-o", "x.nw", "--M", "32"], "unknown option --M; did you mean --degree or --code-bytes?"),
    (["index", "build", "b.fbin", "-o", "x.nw", "--efConstruction", "99"], "did you mean --target-recall?"),
    (["index", "build", "b.fbin", "-o", "x.nw", "--factory", "IVF100"], "did you mean --kind?"),
    (["index", "search", "g.nw", "q.fbin", "--ef_search", "9"], "did you mean --candidates or --beam?"),
    (["knn", "b.fbin", "q.fbin", "--space", "cosine"], "did you mean --metric?"),
    (["knn", "b.fbin", "q.fbin", "--distance=cosine"], "did you mean --metric?"),
    (["knn", "b.fbin", "q.fbin", "--out", "x.nw"], "did you mean --output?"),
    (["knn", "--query", "q.fbin", "b.fbin"], "unknown option --query; give it by position: nearwise knn base queries"),
    (["index", "build", "--input", "b.fbin"], "give it by position: nearwise index build base"),
    (["kmeans", "b.fbin", "-k", "10", "-o", "c.fbin"], "unknown option -k; did you mean --clusters?"),
    (["dedup", "b.fbin", "-o", "k.npy", "--threshold", "0.9"], "did you mean --similarity or --radius?"),
    (["convert", "b.npy", "-o", "b.fbin", "--rows", "9"], "did you mean --limit-rows?"),
    # of the program itself
    (["version"], "did you mean 'nearwise --version'?"),
    (["-v"], "unknown option -v; did you mean --version?; expected a command: knn, "),
    (["index", "--foo"], "index: unknown option --foo; expected a command: choose, "),
    # methods and libraries
    (["hnsw", "b.fbin"], "unknown command 'hnsw'; did you mean 'nearwise index build'?"),
    (["nearest", "b.fbin"], "did you mean 'nearwise knn'?"),
    (["index", "create", "b.fbin"], "did you mean 'nearwise index build'?"),
    (["index", "list"], "did you mean 'nearwise info'?"),
    (["deduplicate", "b.fbin"], "did you mean 'nearwise dedup'?"),
    # words too many
    (["eval", "a.nw", "b.nw", "c.nw"], "eval: unexpected argument 'c.nw'"),
    (["convert", "a.npy", "b.fbin"], "convert: unexpected argument 'b.fbin'; an output is given by -o b.fbin"),
]


@pytest.mark.parametrize("arguments, words", UNKNOWN, ids=[" ".join(arguments) for arguments, _ in UNKNOWN])
def test_unknown_words(nearwise, arguments, words):
    error = nearwise(*arguments, expect=2).err
    assert words in error and error.count("\n") == 1


def test_help_is_a_command_too(nearwise):
    assert nearwise("help").out == nearwise("--help").out
    assert nearwise("help", "index", "build").out == nearwise("index", "build", "--help").out


def test_values_are_named_with_what_was_expected(nearwise):
    for arguments, words in [
        (["knn", "b.fbin", "q.fbin", "-k", "0"], "knn: -k must be a whole number of at least 1, got '0'"),
        (["index", "build", "b.fbin", "-o", "x.nw", "--codec", "zip"], "--codec must be one of flat, pq, lsq, got 'zip'"),
        (["index", "build", "b.fbin", "-o", "x.nw", "--target-recall", "1.5"],
         "--target-recall must be above 0 and at most 1, got '1.5'"),
        (["index", "build", "b.fbin", "-o", "x.nw", "--kind", "HNSW"], "--kind must be one of ivf, graph (here graph), got 'HNSW'"),
        (["knn", "b.fbin", "q.fbin", "--metric", "angular"], "inner_product, cosine (here cosine), got 'angular'"),
        (["knn", "b.fbin", "q.fbin", "--metric", "L2"], "inner_product, cosine (here sqeuclidean), got 'L2'"),
        (["knn", "b.fbin", "q.fbin", "--metric=Cosine"], "inner_product, cosine (here cosine), got 'Cosine'"),
        (["knn", "b.fbin", "q.fbin", "--metric", "hamming"], "sqeuclidean, euclidean, inner_product, cosine, got 'hamming'"),
        (["kmeans", "b.fbin", "-o", "c.npy", "--seeding", "k-means++"], "(here plus_plus), got 'k-means++'"),
        (["knn", "b.fbin", "q.fbin", "--memory-limit", "much"], "--memory-limit must be a size such as 2GiB"),
    ]:
        assert words in nearwise(*arguments, expect=2).err


def test_files_of_other_kinds_are_told_what_to_do(nearwise, small, tmp_path):
    base, _ = small
    (tmp_path / "base.csv").write_text("1,2\n")
    (tmp_path / "base.parquet").write_bytes(b"PAR1")
    np.save(tmp_path / "double.npy", base.astype(np.float64))
    np.save(tmp_path / "one.npy", base[0])
    nearwise("index", "build", "base.fbin", "--codec", "flat", "-o", "index.nw", "-q")
    for name, words in [
        ("base.csv", "suffix '.csv' cannot hold vectors; use one of .npy, "),
        ("base.csv", "; in Python, numpy.save writes an array as .npy"),
        ("base.parquet", "nearwise.arrow.to_vectors, of the Python package, makes one of a column"),
        ("index.nw", "an index is searched by 'nearwise index search'"),
        ("double.npy", "found '<f8' (float64: save array.astype(numpy.float32) of it, "),
        ("one.npy", "2 dimensions expected, found 1 (for one vector save array[None, :])"),
    ]:
        error = nearwise("knn", name, "queries.fbin", "-k", 1, expect=65 if name.endswith(".npy") else 2).err
        assert words in error and error.count("\n") == 1, name
    assert "missing.fbin: No such file" in nearwise("knn", "missing.fbin", "queries.fbin", expect=66).err
    assert "use one of .nw, .ivecs" in nearwise("knn", "base.fbin", "queries.fbin", "-o", "found.csv", expect=2).err


def test_float64_is_refused_with_the_conversion_that_helps(nearwise, small, tmp_path):
    base, _ = small
    np.save(tmp_path / "double.npy", base.astype(np.float64))
    np.save(tmp_path / "ids.npy", np.arange(5.0)[:, None])
    for command in (["convert", "double.npy", "-o", "out.fbin"], ["index", "build", "double.npy", "-o", "index.nw"],
                    ["knn", "base.fbin", "queries.fbin", "--filter", "ids.npy"]):
        error = nearwise(*command, expect=65).err
        assert "(float64: save array.astype(numpy.float32) of it, or of ids array.astype(numpy.int64))" in error
    np.save(tmp_path / "single.npy", np.load(tmp_path / "double.npy").astype(np.float32))
    nearwise("convert", "single.npy", "-o", "out.fbin")
    np.save(tmp_path / "ids.npy", np.load(tmp_path / "ids.npy").astype(np.int64))
    nearwise("knn", "base.fbin", "queries.fbin", "-k", 2, "--filter", "ids.npy")


def test_more_neighbours_than_vectors_name_the_option(nearwise, small):
    assert "(--pad fills missing neighbours" in nearwise("knn", "base.fbin", "queries.fbin", "-k", 300, expect=2).err
    assert "at most 1 for cosine, got 95; 95 % is 0.95" in nearwise("dedup", "base.fbin", "--similarity", 95, "-o", "k.npy", expect=2).err


def commands_of(nearwise, *path):
    """All commands, from the help texts."""
    text = nearwise(*path, "--help").out
    if "Subcommands:" not in text:
        return [path]
    lines = text.split("Subcommands:\n")[1].splitlines()
    names = [line.split()[0] for line in lines[: lines.index("") if "" in lines else None]]
    return [command for name in names for command in commands_of(nearwise, *path, name)]


def test_a_memory_limit_of_0_is_refused_by_every_command(nearwise):
    commands = [command for command in commands_of(nearwise) if "--memory-limit" in nearwise(*command, "--help").out]
    assert len(commands) > 15 and ("convert",) in commands and ("plan", "join") in commands
    for command in commands:
        otherwise = "256MiB" if command == ("convert",) else "no limit"
        for size in ("0", "0GiB"):
            error = nearwise(*command, "--memory-limit", size, expect=2).err
            assert f"--memory-limit must be at least 1 byte (leave the option out for {otherwise}), got '{size}'" in error


def test_every_command_has_an_example_and_short_lines(nearwise):
    commands = commands_of(nearwise)
    assert len(commands) == 33 and ("index", "calibrate") in commands and ("plan", "graph") in commands
    for command in commands:
        text = nearwise(*command, "--help").out
        assert "Example:\n" in text and f"nearwise {' '.join(command)}" in text
        footer = text.split("Example:\n")[1].splitlines()
        assert max(map(len, footer)) <= 110, (command, max(footer, key=len))
