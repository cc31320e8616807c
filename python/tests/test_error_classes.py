"""Errors are of the classes that Python users catch, and all of them are a nearwise.Error with a code."""

import copy
import errno
import os
import pickle
import sys
import tempfile
import traceback

import nearwise
import numpy as np
import pytest
from samples import filled

MISSING = f"open a.nw: {os.strerror(errno.ENOENT)}"
CLASSES = [
    (("k: expected at least 1, got 0", "invalid_argument"), nearwise.ArgumentError, ValueError, None),
    ((MISSING, "not_found"), nearwise.NotFoundError, FileNotFoundError, errno.ENOENT),
    (("plan: no such file", "not_found"), nearwise.NotFoundError, FileNotFoundError, errno.ENOENT),
    ((f"open a/b: {os.strerror(errno.ENOTDIR)}", "not_found"), nearwise.NotFoundError, OSError, errno.ENOTDIR),
    ((MISSING, "cannot_create"), nearwise.NotFoundError, FileNotFoundError, errno.ENOENT),
    ((f"create a: {os.strerror(errno.EACCES)}", "cannot_create"), nearwise.AccessError, PermissionError, errno.EACCES),
    ((f"open a: {os.strerror(errno.EPERM)}", "io"), nearwise.AccessError, PermissionError, errno.EPERM),
    ((f"write a: {os.strerror(errno.ENOSPC)}", "io"), nearwise.FileError, OSError, errno.ENOSPC),
    ((f"sync the folder of a: {os.strerror(errno.EIO)}; the file", "io"), nearwise.FileError, OSError, errno.EIO),
    (("lock a: somebody else is at work there", "cannot_create"), nearwise.FileError, OSError, None),
    (("knn: 9 bytes, memory_limit is 8", "out_of_memory"), nearwise.OutOfMemoryError, MemoryError, None),
    (("a.nw: wrong checksum", "corrupt"), nearwise.Error, RuntimeError, None),
    (("cuda:0: gone", "device"), nearwise.Error, RuntimeError, None),
    (("cancelled", "cancelled"), nearwise.Error, RuntimeError, None),
    (("knn: cannot", "unsupported"), nearwise.Error, RuntimeError, None),
    (("knn: a bug",), nearwise.Error, RuntimeError, None),
]


@pytest.mark.parametrize(("given", "kind", "builtin", "number"), CLASSES)
def test_classes_by_code(given, kind, builtin, number):
    error = nearwise.Error(*given)
    error.add_note("of the caller")
    for each in (error, copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(each) is kind and isinstance(each, (nearwise.Error, RuntimeError)) and isinstance(each, builtin)
        assert str(each) == given[0] and each.args == given[:1]
        assert each.code == (given[1] if len(given) > 1 else "internal")
        assert repr(each) == f"{kind.__name__}({given[0]!r})"
        assert each.__notes__ == ["of the caller"]
        assert getattr(each, "errno", None) == number
        assert getattr(each, "strerror", None) == (None if number is None else os.strerror(number))


def test_classes_have_codes():
    codes = {
        nearwise.Error: "internal",
        nearwise.ArgumentError: "invalid_argument",
        nearwise.FileError: "io",
        nearwise.NotFoundError: "not_found",
        nearwise.AccessError: "io",
        nearwise.OutOfMemoryError: "out_of_memory",
    }
    for kind, code in codes.items():
        error = kind("text")
        assert type(error) is kind and error.code == code and str(error) == "text"
        assert kind.__module__ == "nearwise" and issubclass(kind, nearwise.Error)
        assert pickle.loads(pickle.dumps(error)).code == code


READERS = [nearwise.load, nearwise.inspect, nearwise.verify, nearwise.read_vectors, nearwise.read_neighbors]


@pytest.mark.parametrize("read", READERS)
def test_missing_files(read, tmp_path):
    for name in ("missing.fvecs", "nowhere/missing.fvecs"):
        with pytest.raises(FileNotFoundError, match="missing.fvecs: No such file") as caught:
            read(tmp_path / name)
        assert isinstance(caught.value, nearwise.Error)
        assert (caught.value.code, caught.value.errno) == ("not_found", errno.ENOENT)


def test_folders_that_are_not_there(base, tmp_path):
    (tmp_path / "file").write_text("")
    graph = nearwise.build_knn_graph(base, 3)
    for save in (graph.save, lambda path: nearwise.write_vectors(path, base)):
        with pytest.raises(FileNotFoundError) as caught:
            save(tmp_path / "nowhere" / "new.npy")
        assert isinstance(caught.value, nearwise.Error) and caught.value.code == "cannot_create"
        with pytest.raises(OSError) as caught:
            save(tmp_path / "file" / "new.npy")
        assert isinstance(caught.value, nearwise.FileError) and caught.value.errno == errno.ENOTDIR


def test_a_temporary_folder_that_is_not_there(monkeypatch, base, tmp_path):
    data = nearwise.build_knn_graph(base, 3).to_bytes()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(nearwise.Error, match="nowhere") as caught:
        nearwise.from_bytes(data)
    assert isinstance(caught.value, FileNotFoundError) and caught.value.errno == errno.ENOENT


def test_memory(base):
    with pytest.raises(MemoryError, match="memory") as caught:
        nearwise.knn(base, base, 5, memory_limit=100)
    assert isinstance(caught.value, nearwise.OutOfMemoryError) and caught.value.code == "out_of_memory"
    with pytest.raises(MemoryError) as caught:
        nearwise.knn(base, base.astype(np.float64), 5, memory_limit=20_000)
    assert isinstance(caught.value, nearwise.Error)
    huge = np.broadcast_to(np.int32(1), (2**40, 8)), np.broadcast_to(np.float64(1), (2**40, 8))
    with pytest.raises(nearwise.OutOfMemoryError, match="Unable to allocate"):
        nearwise.merge_neighbors([huge], 3)


def probes(index, value):
    index.probes = value


WRONG = {
    "C++": lambda index, rows: nearwise.knn(rows, rows, len(rows) + 1),
    "C++, method": lambda index, rows: index.get([10**6]),
    "C++, NaN": lambda index, rows: index.search(rows * np.nan, 3),
    "Python": lambda index, rows: nearwise.knn(rows, rows, 0),
    "Python, dtype": lambda index, rows: nearwise.knn(rows.astype(complex), rows, 1),
    "numpy": lambda index, rows: index.rerank(rows[0], [[1], [2, 3]], 1),
    "constructor": lambda index, rows: nearwise.Exact(rows[0]),
    "context": lambda index, rows: nearwise.Context(threads=0),
    "context of a call": lambda index, rows: nearwise.knn(rows, rows, 1, memory_limit="much"),
    "setter": lambda index, rows: probes(index, 0),
    "function without a context": lambda index, rows: nearwise.write_vectors("new.txt", rows),
    "classmethod": lambda index, rows: nearwise.ProductQuantizer.from_codebooks([]),
    "plan": lambda index, rows: nearwise.plan_index("a", "b", "c", codec="xz"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case, flat, rows):
    with pytest.raises(ValueError) as caught:
        WRONG[case](flat, rows)
    assert type(caught.value) is nearwise.ArgumentError and caught.value.code == "invalid_argument"
    text = "".join(traceback.format_exception(caught.value))
    assert "During handling" not in text and text.count("nearwise.ArgumentError: ") == 1
    # The place of the check is shown.
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename != __file__


def test_wrong_types_are_type_errors(flat, rows):
    for wrong in (lambda: flat.search(rows, "3"), lambda: nearwise.knn(rows, rows, 3, metrik="cosine"), nearwise.knn):
        with pytest.raises(TypeError) as caught:
            wrong()
        assert not isinstance(caught.value, nearwise.Error)


class Rows:
    """Not an array yet."""

    def __init__(self, error):
        self.error = error

    def __array__(self, *_, **__):
        raise self.error


@pytest.mark.parametrize("kind", [ValueError, OSError, MemoryError, UnicodeError])
def test_errors_of_the_caller_stay_as_they_are(kind, rows):
    given = kind("mine")

    def fails(*_):
        raise given

    def parts():
        yield nearwise.knn(rows[:5], rows, 3)
        fails()

    for call in (
        lambda: nearwise.knn(rows, rows, 3, progress=fails),
        lambda: nearwise.merge_neighbors(parts(), 3),
        lambda: filled(nearwise.IvfFlat, rows, lists=16, progress=fails),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value is given


def test_an_array_that_does_not_convert(rows):
    with pytest.raises(nearwise.ArgumentError, match="queries: Rows does not convert to an array: mine") as caught:
        nearwise.knn(Rows(ValueError("mine")), rows, 3)
    assert type(caught.value.__cause__) is ValueError  # the causes stay


def test_a_pickled_error_needs_no_import(tmp_path):
    """Of the class alone: pickles name it in the package."""
    assert b"nearwise._error" not in pickle.dumps(nearwise.Error("open a", "not_found"))
    assert sys.modules["nearwise"].NotFoundError is type(nearwise.Error("open a", "not_found"))
