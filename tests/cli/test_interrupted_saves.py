"""Ctrl-C ends a save that has begun: nothing is left of it, and the earlier file stays.

System calls are made slow, so that a save lasts long enough."""
import shutil
import signal
import subprocess
import time

import formats
import numpy as np
import pytest

from conftest import environment, interrupt, program, without_progress

# 4 MB take 10 s: twice as long as interrupt() waits.
SLOW_WRITE = """
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
ssize_t write(int file, const void* data, size_t bytes) {
  const struct timespec pause = {0, 10000000};
  if (file > 2) nanosleep(&pause, 0);
  return syscall(SYS_write, file, data, file > 2 && bytes > 4096 ? 4096 : bytes);
}
"""

SLOW_FSYNC = """
#include <unistd.h>
int fsync(int file) {
  (void)file;
  for (;;) sleep(1);  // a handled signal ends one sleep
}
"""


@pytest.fixture(scope="module")
def preloads(tmp_path_factory):
    """preloads(source): the environment in which the functions of a C source replace those of libc."""
    folder = tmp_path_factory.mktemp("preloads")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, for system calls that take their time")

    def made(source):
        (folder / "slow.c").write_text(source)
        library = folder / f"slow-{len(list(folder.iterdir()))}.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, "slow.c"], cwd=folder, check=True)
        return {"LD_PRELOAD": str(library)}

    return made


def skip_if_refused(process):
    """Ends the test if the sanitizers' runtime refuses to start after another library."""
    if process.poll() is None:
        return
    err = process.communicate()[1]
    if b"runtime does not come first" in err:
        pytest.skip("the program does not start under LD_PRELOAD (sanitizers)")
    pytest.fail(f"ended by itself, exit {process.returncode}: {err}")


def wait_for_save(process, folder):
    """Until a temporary file has content."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if any(path.stat().st_size > 0 for path in folder.glob(".*.tmp")):
            return
        skip_if_refused(process)
        time.sleep(0.02)
    pytest.fail("no save has begun")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Files that make outputs of more than 4 MB: a graph that is a ring, vectors, an index, a quantizer and codes."""
    folder = tmp_path_factory.mktemp("inputs")

    def run(*arguments):
        subprocess.run([program(), *map(str, arguments)], cwd=folder, env=environment(), check=True, timeout=60)

    random = np.random.default_rng(3)
    rows = 600_000
    ring = (np.arange(rows, dtype=np.int32)[:, None] + 1) % rows
    formats.write_truth_bin(folder / "ring.bin", ring, np.ones((rows, 1), np.float32))
    run("convert", "ring.bin", "--metric", "sqeuclidean", "-o", "ring.nw")
    base = random.standard_normal((40_000, 32), dtype=np.float32)
    formats.write_vectors(folder / "base.fbin", base)
    formats.write_vectors(folder / "few.fbin", base[:500])
    formats.write_vectors(folder / "more.fbin", random.standard_normal((100, 32), dtype=np.float32))
    formats.write_vectors(folder / "codes.u8bin", random.integers(0, 256, (40_000, 4), dtype=np.uint8))
    run("quantizer", "train", "base.fbin", "--code-bytes", 4, "--iterations", 2, "-o", "quantizer.nw")
    run("index", "build", "base.fbin", "--codec", "flat", "--lists", 10, "-o", "index.nw")
    yield folder
    shutil.rmtree(folder)


# name: the output, and the arguments before it.
SAVES = {
    "knn": ("found.nw", ["knn", "few.fbin", "base.fbin", "-k", 20]),
    "convert, vectors": ("base.fvecs", ["convert", "base.fbin"]),
    "convert, neighbours": ("ring.npy", ["convert", "ring.nw"]),
    "convert, to a container": ("again.nw", ["convert", "ring.nw"]),
    "graph export": ("ring.npz", ["graph", "export", "ring.nw"]),
    "graph components": ("labels.npy", ["graph", "components", "ring.nw"]),
    "graph duplicates": ("labels.npy", ["graph", "duplicates", "ring.nw", "--distance", 1]),
    "index add": ("index.nw", ["index", "add", "index.nw", "more.fbin"]),
    "quantizer decode": ("decoded.fbin", ["quantizer", "decode", "quantizer.nw", "codes.u8bin"]),
}


@pytest.mark.parametrize("name", SAVES)
def test_ctrl_c_ends_a_save(start, preloads, inputs, tmp_path, name):
    output, arguments = SAVES[name]
    given = [inputs / argument if (inputs / str(argument)).is_file() else argument for argument in arguments]
    (tmp_path / output).write_bytes(b"precious")
    process = start(*given, "-o", output, env=preloads(SLOW_WRITE))
    wait_for_save(process, tmp_path)
    assert interrupt(process) == 130
    out, err = process.communicate()
    # Remarks, such as on distances that are dropped, come before.
    assert out == b"" and without_progress(err).endswith(b"nearwise: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == [output]
    assert (tmp_path / output).read_bytes() == b"precious"


def test_ctrl_c_ends_verify(start, inputs):
    """With nothing to clean up, the process ends at once."""
    names = [inputs / name for name in ("ring.bin", "ring.nw", "index.nw", "base.fbin")]
    process = start("verify", *(1000 * names), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    assert process.poll() is None
    assert interrupt(process) == 130
    assert without_progress(process.communicate()[1]) == b"nearwise: interrupted\n"


def test_the_second_signal_ends_a_save_at_once(start, preloads, small, tmp_path):
    """A disk that does not respond: the first signal cannot end an fsync."""
    process = start("knn", "base.fbin", "queries.fbin", "-o", "found.nw", env=preloads(SLOW_FSYNC))
    time.sleep(1)
    skip_if_refused(process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    assert interrupt(process) == -signal.SIGINT
    assert not (tmp_path / "found.nw").exists()
