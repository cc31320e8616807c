"""Files that are no index, and places where none can be saved."""

import os

import numpy as np
from outcomes import NotApplicable, wrong
from vectors import ROWS

from cases.registry import Cases

CASES = Cases()


def loaded(adapter, content):
    """Loads and searches a file of these bytes, which is no index."""
    path = adapter.folder / f"bad-{os.getpid()}"
    path.write_bytes(content)
    try:
        index = adapter.load(path)
        adapter.answers(index)
        return wrong(f"loaded and searched, size {adapter.size(index)}")
    finally:
        path.unlink()


@CASES.add("save")
def empty_file(adapter):
    """loading an empty file"""
    return loaded(adapter, b"")


@CASES.add("save")
def random_file(adapter):
    """loading random bytes"""
    return loaded(adapter, np.random.default_rng(3).bytes(4096))


@CASES.add("save")
def text_file(adapter):
    """loading a text"""
    return loaded(adapter, b"hello world, this is not an index\n" * 50)


@CASES.add("save")
def file_of_zeros(adapter):
    """loading 64 KiB of zeros"""
    return loaded(adapter, bytes(65536))


@CASES.add("save")
def huge_count(adapter):
    """loading a short file whose header claims 2^40 vectors"""
    return loaded(adapter, adapter.with_huge_count(adapter.base_path.read_bytes()))


@CASES.add("save")
def appended_bytes(adapter):
    """loading a file with bytes appended"""
    return loaded(adapter, adapter.base_path.read_bytes() + b"more" * 10)


@CASES.add("save")
def missing_file(adapter):
    """loading a file that does not exist"""
    adapter.load(adapter.folder / "missing" / "index")
    return wrong("loaded")


@CASES.add("save")
def folder_as_file(adapter):
    """loading a folder"""
    adapter.load(adapter.folder)
    return wrong("loaded")


@CASES.add("save", "dim")
def load_as_other_dimension(adapter):
    """loading a file of 32 dimensions as one of 64"""
    index = adapter.load(adapter.base_path, dim=64)
    try:
        adapter.search(index, np.zeros((50, 64), np.float32), 10)
    except Exception:
        raise NotApplicable("the dimension is read from the file") from None
    return wrong("loaded and searched")


@CASES.add("save")
def save_into_missing_folder(adapter):
    """saving into a folder that does not exist"""
    adapter.save(adapter.built(ROWS[:300]), adapter.folder / "missing" / "index")
    return wrong("success reported")


@CASES.add("save")
def save_over_a_folder(adapter):
    """saving to the name of a folder"""
    target = adapter.folder / f"folder-{os.getpid()}"
    target.mkdir(exist_ok=True)
    (target / "content").touch()
    adapter.save(adapter.built(ROWS[:300]), target)
    return wrong("success reported")
