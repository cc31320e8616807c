"""Mapped files that someone truncates: a nearwise.Error in operations, and SIGBUS as ever in code of the caller."""

import signal
import subprocess
import sys

import pytest

PREPARE = """
import faulthandler, os, sys
import numpy as np
import nearwise

folder = sys.argv[1]
path = os.path.join(folder, "vectors.fbin")
rows = np.random.default_rng(1).standard_normal((5000, 16), dtype=np.float32)
nearwise.write_vectors(path, rows)
index_path = os.path.join(folder, "index.nw")

def lost(call, name):
    for _ in range(2):
        try:
            call()
        except nearwise.Error as error:
            assert error.code == "corrupt", error.code
            assert name in str(error) and "truncated while in use" in str(error), error
        else:
            raise AssertionError("no error")
"""


def run(code, folder, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", PREPARE + code, str(folder)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler"), ("-O",)])
def test_operations(tmp_path, options):
    done = run(
        """
mapped = nearwise.read_vectors(path)
index = nearwise.IvfFlat.train(rows, lists=8)
index.add(rows)
index.save(index_path)
loaded = nearwise.load(index_path)
os.truncate(path, 4096)
os.truncate(index_path, 4096)
lost(lambda: nearwise.knn(rows[:9], mapped, 3), "vectors.fbin")
lost(lambda: nearwise.train_kmeans(mapped, 20), "vectors.fbin")
lost(lambda: nearwise.build_knn_graph(mapped, 5), "vectors.fbin")
lost(lambda: nearwise.write_vectors(os.path.join(folder, "copy.fbin"), mapped), "vectors.fbin")
lost(lambda: loaded.search(rows[:9], 3, probes=8), "index.nw")
lost(lambda: loaded.add(rows), "index.nw")
lost(lambda: loaded.save(os.path.join(folder, "copy.nw")), "index.nw")
assert len(loaded) == 5000
assert sorted(os.listdir(folder)) == ["index.nw", "vectors.fbin"]
found = nearwise.knn(rows[:9], rows, 3)
assert (found.ids[:, 0] == np.arange(9)).all()
print("done")
""",
        tmp_path,
        *options,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")])
def test_code_of_the_caller(tmp_path, options):
    done = run("mapped = nearwise.read_vectors(path)\nos.truncate(path, 4096)\nprint(mapped.sum())", tmp_path, *options)
    assert done.returncode == -signal.SIGBUS and done.stdout == ""
    assert ("Fatal Python error: Bus error" in done.stderr) == bool(options)


def test_while_other_threads_search(tmp_path):
    done = run(
        """
import threading
mapped = nearwise.read_vectors(path)
expected = nearwise.knn(rows[:50], rows, 3)
outcomes = []
def search():
    for _ in range(200):
        try:
            found = nearwise.knn(rows[:50], mapped, 3)
            assert (found.ids == expected.ids).all(), "a wrong answer"
        except nearwise.Error as error:
            assert error.code == "corrupt", error
            outcomes.append(error)
            return
threads = [threading.Thread(target=search) for _ in range(4)]
for thread in threads:
    thread.start()
os.truncate(path, 100_000)
for thread in threads:
    thread.join()
assert len(outcomes) == 4, outcomes
print("done")
""",
        tmp_path,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
