"""The package as a whole: examples that run, documentation that is true, types that are there."""

import doctest
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import nearwise
import numpy as np
import pytest
from checks import fields_of

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))
MODULES = sorted(module.name for module in pkgutil.walk_packages(nearwise.__path__, "nearwise."))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failures == 0


@pytest.mark.parametrize("name", [name for name in nearwise.__all__ if inspect.isclass(getattr(nearwise, name))])
def test_doctests_of_classes(name):
    """They and their methods belong to no module that testmod would find them in."""
    names = {"np": np, **vars(nearwise)}
    for test in doctest.DocTestFinder().find(getattr(nearwise, name), name, module=False, globs=names):
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples(path, tmp_path):
    # Relative entries would mean something else in the folder that the example writes to.
    paths = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    result = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


def test_version_is_that_of_the_build():
    declared = re.search(r"project\(nearwise VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert nearwise.__version__ == declared[1]
    try:
        assert importlib.metadata.version("nearwise") == nearwise.__version__
    except importlib.metadata.PackageNotFoundError:
        pass  # a build folder, not an installation


def test_info():
    info = nearwise.info()
    assert set(info) == {"version", "instruction_sets", "devices", "cuda", "scans"}
    assert set(info["cuda"]) == {"driver_version", "runtime_version", "problem", "library"}
    assert bool(info["cuda"]["problem"]) == (len(info["devices"]) == 1)
    assert info["version"] == nearwise.__version__
    assert info["instruction_sets"] and "cpu" in [device["name"] for device in info["devices"]]
    assert {"f32", "u8", "i8"} <= {scan["rows"] for scan in info["scans"]}
    for scan in info["scans"]:
        assert set(scan) == {"rows", "multiplied_as", "gflops"}
        assert scan["multiplied_as"] in ("f32", "bf16", "integers") and scan["gflops"] > 0


def test_public_names_are_documented():
    for name in nearwise.__all__:
        thing = getattr(nearwise, name)
        if name != "__version__":
            assert inspect.getdoc(thing), name


def classes():
    """Without protocols."""
    return {name: value for name in nearwise.__all__ if name != "Searchable" and inspect.isclass(value := getattr(nearwise, name))}


def test_every_class_has_a_repr_of_its_own():
    assert [name for name, value in classes().items() if value.__repr__ is object.__repr__] == []


def test_collections_have_a_length():
    """Named tuples have that of tuples; the others hold nothing to count."""
    without = {name for name, value in classes().items() if not hasattr(value, "__len__")}
    quantizers = {"ProductQuantizer", "OptimizedProductQuantizer", "AdditiveQuantizer", "Rotation"}
    assert without == quantizers | {"BenchReport", "Context", "Filter", "RecallWarning"} | {name for name in nearwise.__all__ if "Error" in name}


def test_lengths_and_reprs(rows, tmp_path):
    rows = rows[:300]
    path = tmp_path / "rows.fbin"
    nearwise.write_vectors(path, rows)
    plan = nearwise.plan_graph(path, tmp_path / "work", tmp_path / "graph.nw", 3, memory_limit="64MiB")
    expected = [
        (nearwise.Exact(rows), 300, "<nearwise.Exact: 300 vectors of 24 elements, sqeuclidean>"),
        (
            nearwise.IvfFlat.build(rows, lists=4, metric="cosine"),
            300,
            "<nearwise.IvfFlat: 300 vectors of 24 elements in 4 lists, 96 bytes each, cosine>",
        ),
        (
            nearwise.GraphIndex.build(rows, degree=16),
            300,
            "<nearwise.GraphIndex: 300 vectors of 24 elements, 16 edges each, sqeuclidean>",
        ),
        (
            nearwise.build_knn_graph(rows, 3),
            300,
            "<nearwise.KnnGraph: 300 x 3, sqeuclidean, exact, recall 1.0000 [1.0000, 1.0000]>",
        ),
        (nearwise.StringIds(["a", "b", "a"]), 2, "<nearwise.StringIds: 2 names>"),
        (plan, len(plan.tasks), f"<nearwise.Plan: {len(plan.tasks)} tasks in '{tmp_path / 'work'}', "),
    ]
    for value, length, text in expected:
        assert len(value) == length and repr(value).startswith(text)
    assert len(plan.tasks) > 3


def test_types_are_shipped():
    folder = Path(nearwise._core.__file__).parent
    assert (folder / "_core.pyi").is_file() and (folder / "py.typed").is_file()
    stub = (folder / "_core.pyi").read_text()
    for name in ("def knn(", "def exact_knn_graph(", "def range_search(", "class PreparedBase",
                 "def train_kmeans(", "def assign(", "def select_k(", "def map_vectors(", "class ContainerInfo"):
        assert name in stub


@pytest.mark.parametrize(
    ("offered", "header", "struct"),
    [
        (nearwise.knn, "exact.h", "KnnOptions"),
        (nearwise.range_search, "exact.h", "RangeOptions"),
        (nearwise.threshold_join, "threshold_join.h", "ThresholdJoinOptions"),
        (nearwise.Exact, "exact.h", "ExactOptions"),
        (nearwise.train_kmeans, "kmeans.h", "KMeansOptions"),
        (nearwise.assign, "kmeans.h", "AssignOptions"),
        (nearwise.ProductQuantizer.train, "quantize/product_quantizer.h", "ProductQuantizerOptions"),
        (nearwise.OptimizedProductQuantizer.train, "quantize/product_quantizer.h", "ProductQuantizerOptions"),
        (nearwise.OptimizedProductQuantizer.train, "quantize/optimized_product_quantizer.h", "OptimizedProductQuantizerOptions"),
        (nearwise.AdditiveQuantizer.train, "quantize/additive_quantizer.h", "AdditiveQuantizerOptions"),
        (nearwise.AdditiveQuantizer.encode, "quantize/additive_quantizer.h", "AdditiveEncodeOptions"),
        (nearwise.AdditiveQuantizer.error, "quantize/additive_quantizer.h", "AdditiveEncodeOptions"),
        (nearwise.Rotation.pca, "quantize/rotation.h", "PcaOptions"),
    ],
)
def test_keywords_are_the_fields_of_the_options(offered, header, struct):
    """One vocabulary: what C++ calls a field, Python calls the keyword, with the same default."""
    parameters = inspect.signature(offered).parameters
    fields = fields_of(header, struct)
    fields.pop("short_rows", None)  # pad
    fields.pop("quantizer", None)  # a struct of its own
    assert fields and fields.keys() <= parameters.keys()
    # None in Python: parts and training_rows.
    numbers = [name for name in fields.keys() - {"parts", "training_rows"} if fields[name].isdigit()]
    assert all(str(parameters[name].default) == fields[name] for name in numbers)


@pytest.mark.parametrize("offered", [nearwise.knn, nearwise.range_search, nearwise.Exact, nearwise.train_kmeans])
def test_keywords_are_the_fields_of_a_context(offered):
    assert fields_of("context.h", "ContextOptions").keys() - {"clock", "seed", "memory_in_use"} <= inspect.signature(offered).parameters.keys()


def test_import_needs_numpy_only():
    others = {"faiss", "hnswlib", "matplotlib", "ml_dtypes", "torch", "pyarrow", "pytest", "ray", "scipy", "sklearn"}
    code = f"import sys, nearwise; print(sorted({others} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n", result.stderr


def test_import_leaves_out_what_one_call_needs():
    code = "import sys, nearwise; print([name for name in ('nearwise._bench.process', 'nearwise._bench.plots') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n", result.stderr


def test_rows_of_all_sizes_by_the_default_context():
    """The calling thread takes small work, a thread of its own the rest: the answers agree where they meet."""
    random = np.random.default_rng(8)
    for rows in (1, 10, 1000, 3000):
        base = random.standard_normal((rows, 64), dtype=np.float32)
        found = nearwise.knn(base, base, 1)
        np.testing.assert_array_equal(found.ids[:, 0], np.arange(rows))
