"""Whatever can be built can be saved and loaded, however large or small its numbers are."""

import nearwise
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

MAKERS = {
    "flat": lambda rows, metric: nearwise.IvfFlat.build(rows, lists=4, metric=metric),
    "pq": lambda rows, metric: nearwise.IvfPq.build(rows, lists=4, code_bytes=4, bits=4, metric=metric),
    "lsq": lambda rows, metric: nearwise.IvfLsq.build(rows, lists=4, code_bytes=2, rounds=1, metric=metric),
    "graph": lambda rows, metric: nearwise.build_knn_graph(rows, 4, metric=metric),
    "product": lambda rows, metric: nearwise.ProductQuantizer.train(rows, parts=2, bits=4),
    "optimized": lambda rows, metric: nearwise.OptimizedProductQuantizer.train(rows, parts=2, bits=4, rounds=2),
    "additive": lambda rows, metric: nearwise.AdditiveQuantizer.train(rows, codebooks=2, rounds=1),
}
SCALES = (3.4e38, 3e38, 1.1e38, 9e37, 1e30, 1e19, 1.0, 1e-19, 1e-38, 1e-44, 0.0)


@st.composite
def extreme_rows(draw):
    """300 x 8 finite rows of one magnitude, some of them of another, around a centre or all on one side of it."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = random.uniform(-1, 1, (300, 8)) * draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        rows = np.abs(rows)
    others = draw(st.sampled_from((0, 1, 30)))
    rows[:others] = random.uniform(-1, 1, (others, 8)) * draw(st.sampled_from(SCALES))
    return rows.astype(np.float32)


def answers_of(made, rows):
    if isinstance(made, nearwise.Ivf):
        return made.search(rows, 3, probes=4)
    if isinstance(made, nearwise.KnnGraph):
        return made.ids, made.distances
    return (made.encode(rows),)


@pytest.mark.parametrize("kind", MAKERS)
@settings(max_examples=25)
@given(rows=extreme_rows(), metric=st.sampled_from(("sqeuclidean", "inner_product", "cosine")))
def test_what_is_built_is_loaded(tmp_path_factory, kind, rows, metric):
    try:
        made = MAKERS[kind](rows, metric)
    except ValueError as error:
        # Codes have a largest magnitude. Finite numbers are never called anything else.
        assert "magnitudes must be at most" in str(error), error
        return
    path = tmp_path_factory.mktemp("extreme") / "saved.nw"
    made.save(path)
    loaded = nearwise.load(path)
    for before, after in zip(answers_of(made, rows), answers_of(loaded, rows), strict=True):
        np.testing.assert_array_equal(before, after)


@given(rows=extreme_rows(), metric=st.sampled_from(("sqeuclidean", "inner_product", "cosine")))
def test_exact_search_takes_every_finite_row(rows, metric):
    found = nearwise.knn(rows, rows, 3, metric=metric)
    assert ((found.ids >= 0) & (found.ids < 300)).all() and not np.isnan(found.distances).any()
    nearwise.train_kmeans(rows, 3, metric="cosine" if metric == "cosine" else "sqeuclidean")
    nearwise.Exact(rows, metric=metric).search(rows[:5], 2)
