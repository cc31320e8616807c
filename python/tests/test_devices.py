"""Searches of host arrays on other devices than the CPU: the same answers, or an error that says why not."""

import device_memory
import nearwise
import numpy as np
import oracle
import pytest
from checks import refuses, spoiled
from device_memory import needs_device, needs_two_devices
from samples import TYPES, assert_same, positive_rows
from tensor import CUDA, FLOAT, Tensor


def with_other_ids(index, rows):
    """An index of the same training with other ids."""
    other = index.empty_copy()
    other.add(rows[:30], ids=np.arange(1000, 1030))
    return other


OPERATIONS = {
    "knn": lambda array, device: nearwise.knn(array, array, 2, device=device),
    "exact_knn_graph": lambda array, device: nearwise.exact_knn_graph(array, 2, device=device),
    "build_knn_graph": lambda array, device: nearwise.build_knn_graph(array, 2, device=device),
    "range_search": lambda array, device: nearwise.range_search(array, array, 1, device=device),
    "train_kmeans": lambda array, device: nearwise.train_kmeans(array, 2, device=device),
    "assign": lambda array, device: nearwise.assign(array, array, device=device),
    "select_k": lambda array, device: nearwise.select_k(array, 2, device=device),
    "IvfFlat": lambda array, device: nearwise.IvfFlat.train(array, lists=2, device=device),
    "GraphIndex": lambda array, device: nearwise.GraphIndex.build(array, device=device),
    "ProductQuantizer": lambda array, device: nearwise.ProductQuantizer.train(array, bits=4, device=device),
    "Exact": lambda array, device: nearwise.Exact(array, device=device),
    "Ivf.to": lambda array, device: nearwise.IvfFlat.train(array, lists=2).to(device),
    "Exact.to": lambda array, device: nearwise.Exact(array).to(device),
}


@pytest.mark.skipif(bool(device_memory.devices()), reason="there is a CUDA device")
class TestWithoutCuda:
    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_every_operation_says_so(self, operation, base):
        refuses("unsupported", "device cuda:0 is not available.*devices here: cpu", OPERATIONS[operation], base, "cuda:0")

    def test_arrays_on_a_device_are_refused_before_anyone_touches_them(self, base):
        class Interface:
            __cuda_array_interface__ = {"shape": (2, 24), "typestr": "<f4", "data": (4096, False), "version": 3}

        refuses("unsupported", "device cuda:0 is not available", nearwise.knn, Tensor(base, FLOAT, device=CUDA), base, 5)
        refuses("unsupported", "base: the Interface is on no CUDA device", nearwise.knn, base, Interface(), 5)


def test_devices_are_listed_for_one_that_is_not_there(base):
    here = ", ".join(device["name"] for device in nearwise.info()["devices"])
    for name, kind in (("abacus", ValueError), ("cuda:99", nearwise.Error)):
        refuses(kind, f"{name}.*devices here: {here}", nearwise.knn, base, base, 1, device=name)


def test_moving_to_the_cpu_keeps_all_options(base, queries):
    index = nearwise.Exact(base, metric="cosine", threads=1, isa="portable", memory_limit="64MiB")
    again = index.to("cpu")
    assert again.device == "cpu" and again.metric == "cosine"
    assert_same(again.search(queries, 3), index.search(queries, 3))
    refuses(ValueError, "got 'abacus'", index.to, "abacus")
    refuses(TypeError, "device: expected a string", index.to, 0)


def test_a_moved_index_keeps_the_base_alive(queries):
    base = np.random.default_rng(5).standard_normal((50, 24), dtype=np.float32)
    expected = nearwise.knn(queries, base, 3)
    index = nearwise.Exact(base.copy()).to("cpu")
    assert_same(index.search(queries, 3), expected)


@needs_device
class TestHostArrays:
    @pytest.mark.parametrize("metric", oracle.METRICS)
    @pytest.mark.parametrize("dtype", TYPES)
    def test_knn(self, dtype, metric):
        queries, base = positive_rows(1, 9, 17, dtype), positive_rows(2, 70, 17, dtype)
        found = nearwise.knn(queries, base, 5, metric=metric, device="cuda:0")
        assert_same(found, nearwise.knn(queries, base, 5, metric=metric, device="cpu"))

    def test_names_of_the_first_device(self, queries, base):
        assert_same(nearwise.knn(queries, base, 3, device="cuda"), nearwise.knn(queries, base, 3))

    @pytest.mark.parametrize("isa", ["f32", "tf32", "bf16"])
    def test_tensor_cores_give_the_same_answer(self, isa, queries, base):
        assert_same(nearwise.knn(queries, base, 3, device="cuda:0", isa=isa), nearwise.knn(queries, base, 3))

    def test_exact_knn_graph(self, base):
        assert_same(nearwise.exact_knn_graph(base[:60], 4, device="cuda:0"), nearwise.exact_knn_graph(base[:60], 4))

    def test_knn_graph(self, base):
        there = nearwise.build_knn_graph(base[:60], 4, device="cuda:0")
        here = nearwise.build_knn_graph(base[:60], 4)
        np.testing.assert_array_equal(there.ids, here.ids)
        np.testing.assert_array_equal(there.distances, here.distances)
        there.validate()

    def test_graph_index(self, queries, base):
        here = nearwise.GraphIndex.build(base[:80], degree=16, seed=4)
        there = nearwise.GraphIndex.build(base[:80], degree=16, seed=4, device="cuda:0")
        assert there.calibration == here.calibration
        assert_same(there.search(queries, 5), here.search(queries, 5))

    @pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "cosine"])
    @pytest.mark.parametrize("dtype", TYPES)
    def test_kmeans(self, dtype, metric):
        rows = positive_rows(1, 90, 9, dtype)
        options = {"metric": metric, "iterations": 2, "seed": 4}
        here = nearwise.train_kmeans(rows, 6, **options)
        there = nearwise.train_kmeans(rows, 6, device="cuda:0", **options)
        for name in ("centroids", "sizes", "errors"):
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name), name)
        found = nearwise.assign(rows, here.centroids, metric=metric, device="cuda:0")
        assert_same(found, nearwise.assign(rows, here.centroids, metric=metric))

    @pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
    def test_inverted_files(self, metric):
        rows, queries = positive_rows(1, 90, 8, np.float32), positive_rows(2, 7, 8, np.float32)
        options = {"metric": metric, "lists": 4, "iterations": 1, "seed": 4}
        for train in (
            lambda **where: nearwise.IvfFlat.train(rows, **options, **where),
            lambda **where: nearwise.IvfPq.train(rows, code_bytes=2, bits=4, **options, **where),
        ):
            answers = []
            for device in ("cpu", "cuda:0"):
                index = train(device=device)
                index.add(rows)
                assert repr(index).endswith(f"{metric}>" if device == "cpu" else f"{metric}, cuda:0>")
                answers.append([index.search(queries, 5, probes=2), index.search(queries, 5, rerank=rows, candidates=20)])
            for here, there in zip(*answers):
                assert_same(there, here)

    @pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
    def test_inverted_files_whose_lists_stay_on_the_device(self, metric):
        rows, queries = positive_rows(1, 120, 8, np.float32), positive_rows(2, 7, 8, np.float32)
        options = {"metric": metric, "lists": 4, "iterations": 1, "seed": 4}
        for train in (
            lambda: nearwise.IvfFlat.train(rows, **options),
            lambda: nearwise.IvfPq.train(rows, code_bytes=2, bits=4, **options),
        ):
            here, there = train(), train()
            assert (there.device, there.device_bytes) == ("cpu", 0)
            assert there.to("cuda:0") is there
            assert there.device == "cuda:0" and repr(there).endswith(f"{metric}, cuda:0>")
            for change in (
                lambda index: index.add(rows[:80]),
                lambda index: index.add(rows[80:], ids=np.arange(500, 540)),
                lambda index: index.remove([3, 4, 505]),
                lambda index: index.update([1, 2], rows[90:92]),
                lambda index: index.compact(),
            ):
                change(here)
                change(there)
                for _ in range(2):
                    assert_same(there.search(queries, 5, probes=2), here.search(queries, 5, probes=2))
                    assert there.device_bytes > 0
                assert_same(there.search(queries, 5, filter=range(0, 80, 2)), here.search(queries, 5, filter=range(0, 80, 2)))
            there.merge(with_other_ids(here, rows))
            here.merge(with_other_ids(here, rows))
            assert_same(there.search(queries, 5, probes=3), here.search(queries, 5, probes=3))
            assert there.to("cpu") is there
            assert (there.device, there.device_bytes) == ("cpu", 0)
            assert_same(there.search(queries, 5, probes=3), here.search(queries, 5, probes=3))

    def test_lists_that_do_not_fit_on_the_device(self):
        rows = positive_rows(1, 400, 16, np.float32)
        index = nearwise.IvfFlat.train(rows, lists=4, iterations=1, memory_limit=3_500_000)
        index.add(np.tile(rows, (40, 1)))
        answer = index.search(rows[:3], 5)
        refuses("out_of_memory", "Ivf.to: the lists take .* of memory on cuda:0", index.to, "cuda:0")
        assert index.device == "cpu" and index.device_bytes == 0
        assert_same(index.search(rows[:3], 5), answer)

    def test_inverted_files_of_additive_codes(self):
        rows, queries = positive_rows(1, 260, 4, np.float32), positive_rows(2, 7, 4, np.float32)
        options = {"lists": 4, "iterations": 1, "code_bytes": 1, "rounds": 1, "train_iterations": 1, "encode_iterations": 1}
        answers = []
        for device in ("cpu", "cuda:0"):
            index = nearwise.IvfLsq.train(rows, **options, device=device, seed=4)
            index.add(rows[:60])
            answers.append(index.search(queries, 5, probes=2))
        assert_same(*answers)

    def test_product_quantizers_and_rotations(self):
        rows = positive_rows(1, 60, 8, np.float32)
        for train in (nearwise.ProductQuantizer.train, nearwise.OptimizedProductQuantizer.train):
            here = train(rows, parts=2, bits=4, iterations=1, seed=4)
            there = train(rows, parts=2, bits=4, iterations=1, seed=4, device="cuda:0")
            codes = here.encode(rows)
            np.testing.assert_array_equal(there.encode(rows, context=nearwise.Context(device="cuda:0")), codes)
            np.testing.assert_array_equal(there.tables(rows, context=nearwise.Context(device="cuda:0")), here.tables(rows))
            np.testing.assert_array_equal(there.decode(codes, context=nearwise.Context(device="cuda:0")), here.decode(codes))
        rotation = nearwise.Rotation.pca(rows, 5)
        rotated = rotation.apply(rows)
        np.testing.assert_array_equal(rotation.apply(rows, context=nearwise.Context(device="cuda:0")), rotated)
        np.testing.assert_array_equal(rotation.reverse(rotated, context=nearwise.Context(device="cuda:0")), rotation.reverse(rotated))

    def test_additive_quantizers(self):
        rows = positive_rows(1, 260, 4, np.float32)
        quantizer = nearwise.AdditiveQuantizer.train(rows, codebooks=2, rounds=1)
        codes = quantizer.encode(rows[:40], seed=4)
        np.testing.assert_array_equal(quantizer.encode(rows[:40], seed=4, context=nearwise.Context(device="cuda:0")), codes)
        np.testing.assert_array_equal(quantizer.decode(codes, context=nearwise.Context(device="cuda:0")), quantizer.decode(codes))
        assert quantizer.error(rows[:40], context=nearwise.Context(device="cuda:0")) == quantizer.error(rows[:40])
        assert_same(quantizer.search(rows[:5], codes, 3, context=nearwise.Context(device="cuda:0")), quantizer.search(rows[:5], codes, 3))

    def test_select_k(self):
        values = np.random.default_rng(3).standard_normal((7, 300), dtype=np.float32)
        ids = np.random.default_rng(4).permutation(300)
        for options in ({}, {"largest": True}, {"ids": ids}, {"ids": ids.astype(np.uint32)}):
            found = nearwise.select_k(values, 10, device="cuda:0", **options)
            assert_same(found, nearwise.select_k(values, 10, **options))

    def test_converted_arrays(self, queries, base):
        found = nearwise.knn(queries.astype(np.float64), np.asfortranarray(base), 3, device="cuda:0")
        assert_same(found, nearwise.knn(queries, base, 3))

    def test_padding_and_empty_arrays(self, queries, base):
        found = nearwise.knn(queries, base[:3], 5, pad=True, device="cuda:0")
        assert_same(found, nearwise.knn(queries, base[:3], 5, pad=True))
        assert nearwise.knn(queries[:0], base, 5, device="cuda:0").ids.shape == (0, 5)
        padded = nearwise.knn(queries, base[:0], 2, pad=True, device="cuda:0")
        assert (padded.ids == -1).all()

    def test_wrong_arguments(self, queries, base):
        with pytest.raises(ValueError, match="k must be at most the number of base rows, 300, got 301"):
            nearwise.knn(queries, base, 301, device="cuda:0")
        refuses(ValueError, "base row 123 holds NaN", nearwise.knn, queries, spoiled(base, 123), 1, device="cuda:0")
        with pytest.raises(ValueError, match="must be f32, tf32 or bf16"):
            nearwise.knn(queries, base, 1, device="cuda:0", isa="portable")

    def test_what_a_device_does_not_have_is_named(self, queries, base):
        for search in (
            lambda: nearwise.range_search(queries, base, 1, device="cuda:0"),
            lambda: nearwise.Exact(base, device="cuda:0").range_search(queries, 1),
        ):
            refuses("unsupported", "the cuda backend does not implement it", search)

    def test_memory_limit(self, queries, base):
        refuses("out_of_memory", "memory limit", nearwise.knn, queries, base, 5, device="cuda:0", memory_limit=1000)
        limited = nearwise.knn(queries, base, 5, device="cuda:0", memory_limit="2MiB")
        assert_same(limited, nearwise.knn(queries, base, 5))

    def test_progress(self, queries, base):
        seen = []
        nearwise.knn(queries, base, 5, device="cuda:0", progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (20 * 300, 20 * 300)


@needs_device
class TestIndex:
    def test_searches_where_it_was_prepared(self, queries, base):
        index = nearwise.Exact(base, device="cuda:0")
        assert index.device == "cuda:0" and repr(index).endswith("sqeuclidean, cuda:0>")
        for _ in range(2):
            assert_same(index.search(queries, 5), nearwise.knn(queries, base, 5))

    @pytest.mark.parametrize("dtype", TYPES)
    def test_moves_there_and_back(self, dtype):
        queries, base = positive_rows(1, 9, 17, dtype), positive_rows(2, 70, 17, dtype)
        expected = nearwise.knn(queries, base, 5, metric="cosine")
        index = nearwise.Exact(base, metric="cosine", isa="portable")
        there = index.to("cuda:0")
        back = there.to("cpu")
        assert [part.device for part in (index, there, back)] == ["cpu", "cuda:0", "cpu"]
        for part in (index, there, back):
            assert_same(part.search(queries, 5), expected)

    def test_tensor_cores_stay_on_devices(self, base, queries):
        expected = nearwise.knn(queries, base, 3)
        index = nearwise.Exact(base, device="cuda:0", isa="tf32")
        for moved in (index.to("cpu"), index.to("cuda:0"), index.to("cuda:0", isa="bf16")):
            assert_same(moved.search(queries, 3), expected)
        refuses(ValueError, "got 'portable'", index.to, "cuda:0", isa="portable")

    def test_memory_limit_moves_along(self, base, queries):
        limited = nearwise.Exact(base, memory_limit="2MiB").to("cuda:0")
        assert_same(limited.search(queries, 5), nearwise.knn(queries, base, 5))
        moved = nearwise.Exact(base, memory_limit=130_000).to("cuda:0")
        refuses("out_of_memory", "", moved.search, np.repeat(queries, 100, axis=0), 100)


@needs_two_devices
def test_two_devices(queries, base):
    expected = nearwise.knn(queries, base, 5)
    assert_same(nearwise.knn(queries, base, 5, device="cuda:1"), expected)
    second = nearwise.Exact(base, device="cuda:0").to("cuda:1")
    assert second.device == "cuda:1"
    assert_same(second.search(queries, 5), expected)
