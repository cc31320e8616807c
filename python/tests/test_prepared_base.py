"""nearwise.Exact: the answers of knn and range_search from a base that is prepared once and kept alive."""

import gc
import weakref

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
from checks import MACHINES, frees_what_it_takes, in_threads, lets_other_threads_run, refuses, reports_of, runs_in_a_child, spoiled, stops_by_progress
from hypothesis import given
from samples import TAILS, TYPES, assert_same, positive_rows, random_rows


@given(
    seed=st.integers(0, 2**32 - 1),
    query_rows=st.integers(0, 12),
    base_rows=st.integers(0, 80),
    dim=st.sampled_from(TAILS),
    k=st.integers(1, 100),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    metric=st.sampled_from(oracle.METRICS),
    radius=st.sampled_from((0, 1, 5, 100)),
)
def test_equals_the_definition(seed, query_rows, base_rows, dim, k, types, metric, radius):
    queries = random_rows(seed, query_rows, dim, types[0])
    base = random_rows(seed + 1, base_rows, dim, types[1])
    prepared = nearwise.Exact(base, metric=metric)
    oracle.check(prepared.search(queries, k, pad=True), queries, base, k, metric)
    oracle.check_range(prepared.range_search(queries, radius), queries, base, radius, metric)


@pytest.mark.parametrize("metric", oracle.METRICS)
@pytest.mark.parametrize("base_type", TYPES)
def test_queries_of_every_type(base_type, metric):
    base = positive_rows(3, 1500, 40, base_type)
    prepared = nearwise.Exact(base, metric=metric)
    for query_type in TYPES:
        queries = base[::50].astype(np.float32).astype(query_type)
        assert_same(prepared.search(queries, 20), nearwise.knn(queries, base, 20, metric=metric))
        radius = prepared.search(queries[:1], 20).distances[0, -1]
        assert_same(
            prepared.range_search(queries, radius), nearwise.range_search(queries, base, radius, metric=metric)
        )


def test_same_bits_for_any_threads_and_instruction_set(queries, base):
    expected = nearwise.knn(queries, base, 10)
    for options in MACHINES:
        assert_same(nearwise.Exact(base, **options).search(queries, 10), expected)


def test_what_it_says_of_itself(base):
    prepared = nearwise.Exact(base, metric="cosine")
    assert (len(prepared), prepared.shape, prepared.metric) == (300, (300, 24), "cosine")
    assert repr(prepared) == "<nearwise.Exact: 300 vectors of 24 elements, cosine>"
    with pytest.raises(AttributeError):
        prepared.metric = "euclidean"


def test_the_base_lives_as_long_as_it_is_needed(queries, base):
    expected = nearwise.knn(queries, base, 5)
    own = base.copy()
    watched = weakref.ref(own)
    prepared = nearwise.Exact(own)
    del own
    gc.collect()
    assert watched() is not None
    rubbish = [np.full_like(base, np.nan) for _ in range(50)]  # would take the place of freed memory
    assert_same(prepared.search(queries, 5), expected)
    del prepared, rubbish
    gc.collect()
    assert watched() is None


@pytest.mark.parametrize(
    "convert",
    [
        lambda base: base.astype(np.float64),
        np.asfortranarray,
        lambda base: base[::-1][::-1].astype(">f4"),
        lambda base: base.tolist(),
        lambda base: np.repeat(base, 2, axis=1)[:, ::2],
    ],
)
def test_a_converted_base_is_its_own(convert, queries, base):
    prepared = nearwise.Exact(convert(base))
    gc.collect()
    rubbish = [np.full_like(base, np.nan) for _ in range(50)]
    assert_same(prepared.search(queries, 5), nearwise.knn(queries, base, 5))
    del rubbish


def test_a_part_of_an_array_without_a_copy(queries, base):
    wide = np.full((600, 40), np.nan, np.float32)
    wide[::2, 3:27] = base
    assert_same(nearwise.Exact(wide[::2, 3:27]).search(queries, 5), nearwise.knn(queries, base, 5))


def test_a_mapped_file(queries, base, tmp_path):
    nearwise.write_vectors(tmp_path / "base.fbin", base)
    prepared = nearwise.Exact(nearwise.read_vectors(tmp_path / "base.fbin"))
    gc.collect()
    assert_same(prepared.search(queries, 5), nearwise.knn(queries, base, 5))


def test_an_array_in_use_is_not_resized(base):
    own = base.copy()
    prepared = nearwise.Exact(own)
    refuses(ValueError, "", own.resize, (10, 24), refcheck=True)
    assert len(prepared) == 300


def test_it_and_its_results_are_freed():
    base = np.random.default_rng(2).standard_normal((20_000, 64), dtype=np.float32)  # 5 MB

    def use():
        assert nearwise.Exact(base).range_search(base[:10], np.inf).ids.size == 200_000  # 2.4 MB

    frees_what_it_takes(use)


def test_threads_search_at_once():
    base = np.random.default_rng(4).standard_normal((6000, 32), dtype=np.float32)
    for options in ({}, {"memory_limit": "16MiB"}):
        prepared = nearwise.Exact(base, **options)
        expected = [prepared.search(base[first : first + 500], 5) for first in range(0, 2000, 500)]

        def search(part):
            queries = base[part * 500 : part * 500 + 500]
            for _ in range(5):
                assert_same(prepared.search(queries, 5), expected[part])
                assert prepared.range_search(queries, 0).ids.tolist() == list(range(part * 500, part * 500 + 500))

        in_threads(search, (0,), (1,), (2,), (3,))()


def test_other_python_threads_run_meanwhile():
    rows = np.random.default_rng(0).standard_normal((20_000, 128), dtype=np.float32)
    lets_other_threads_run(nearwise.Exact(rows, threads=1).search, rows, 10)


def test_a_forked_child_searches(queries, base):
    for options in ({}, {"memory_limit": "64MiB"}):
        prepared = nearwise.Exact(base, **options)
        expected = prepared.search(queries, 5)
        runs_in_a_child(lambda: (prepared.search(queries, 5).ids == expected.ids).all())


def test_progress(base):
    rows = np.tile(base, (100, 1))
    assert reports_of(nearwise.Exact, rows)[-1] == (30_000, 30_000)
    prepared = nearwise.Exact(rows)
    assert reports_of(prepared.search, base, 3)[-1] == (9_000_000, 9_000_000)
    assert reports_of(prepared.range_search, base, 0)[-1] == (9_000_000, 9_000_000)


def test_progress_that_raises_stops_it(base):
    rows = np.random.default_rng(0).standard_normal((60_000, 512), dtype=np.float32)
    prepared = nearwise.Exact(rows)
    stops_by_progress(prepared.search, rows, 10, seconds=5)
    assert prepared.search(rows[:3], 1).ids.tolist() == [[0], [1], [2]]  # still usable


def test_memory_limit_counts_the_kept_form(queries):
    base = np.random.default_rng(6).standard_normal((4000, 64), dtype=np.float32)  # 1 MB
    assert_same(nearwise.Exact(base, memory_limit="8MiB").search(queries[:, :1].repeat(64, 1), 10),
                nearwise.knn(queries[:, :1].repeat(64, 1), base, 10))
    for limit in (1000, 100_000):
        refuses("out_of_memory", "memory", nearwise.Exact, base, memory_limit=limit)


def test_memory_limit_counts_converted_copies(base):
    text = r"base: a converted copy of float64 \(300, 24\) takes 28800"
    refuses("out_of_memory", text, nearwise.Exact, base.astype(np.float64), memory_limit=20_000)
    prepared = nearwise.Exact(base, memory_limit="1MiB")
    many = np.zeros((10_900, 24))
    refuses("out_of_memory", "converted copies take|the prepared base takes", prepared.search, many, 1)
    refuses(nearwise.Error, "queries: a converted copy of float64", prepared.range_search, np.zeros((20_000, 24)), 1)


def test_errors(queries, base):
    refuses(ValueError, r"base: expected a 2-D .*base\[None, :\]", nearwise.Exact, base[0])
    refuses(ValueError, "metric: expected one of", nearwise.Exact, base, metric="l3")
    refuses(ValueError, "device must be cpu, cuda or cuda:N, got 'tpu'", nearwise.Exact, base, device="tpu")
    refuses(TypeError, "threads: expected an integer", nearwise.Exact, base, threads=1.5)
    refuses(ValueError, "dimension", nearwise.Exact, np.zeros((3, 0), np.float32))
    refuses(TypeError, "", nearwise.Exact, base, "cosine")
    refuses(ValueError, r"\b17\b", nearwise.Exact, spoiled(base, 17))
    prepared = nearwise.Exact(base)
    with pytest.raises(ValueError, match="queries and base must have the same dimension, got 23 and 24"):
        prepared.search(queries[:, :23], 1)
    refuses(ValueError, "300.*301", prepared.search, queries, 301)
    refuses(TypeError, "pad: expected True or False, got 'drop'", prepared.search, queries, 3, pad="drop")
    refuses(TypeError, "progress: expected None, True or a callable", prepared.search, queries, 3, progress=3)
    refuses(TypeError, "", prepared.search, queries, 3, "pad")


def test_the_private_class_cannot_be_misused(base):
    from nearwise import _core

    refuses(TypeError, "", _core.PreparedBase)
    settings = nearwise._context.Call("test", None).settings
    vectors = _core.Rows(array=base, type="f32", name="queries")
    given = {"k": 1, "pad": False, "filter": None, "settings": settings, "progress": None}
    empty = _core.PreparedBase.__new__(_core.PreparedBase)
    with pytest.warns(RuntimeWarning, match="uninitialized"), pytest.raises(TypeError):
        empty.search(queries=vectors, **given)
    refuses(TypeError, "", nearwise.Exact(base)._prepared.search, queries=base, **given)
