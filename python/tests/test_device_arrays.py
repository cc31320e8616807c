"""Arrays on CUDA devices: read where they are, once their own library is done with them."""

import concurrent.futures
import copy
import gc
import pickle

import nearwise
import numpy as np
import pytest
from checks import refuses
from device_memory import CudaArray, DeviceTensor, free_bytes, is_emulated, needs_device, needs_two_devices
from nearwise._rows import as_rows
from samples import TYPES, assert_same, positive_rows
from tensor import CUDA_MANAGED

pytestmark = needs_device

PROTOCOLS = {"DLPack": lambda tensor: tensor, "CUDA array interface": DeviceTensor.as_interface}


@pytest.fixture
def on_device():
    """DeviceTensor(...), freed at the end."""
    made = []

    def make(*arguments, **options):
        made.append(DeviceTensor(*arguments, **options))
        return made[-1]

    yield make
    gc.collect()  # releases remaining references
    for tensor in made:
        tensor.memory.free()


@pytest.fixture(params=PROTOCOLS)
def share(request, on_device):
    """The argument as an array on a device, under either protocol."""

    def make(*arguments, **options):
        return PROTOCOLS[request.param](on_device(*arguments, **options))

    return make


LAYOUTS = {
    "contiguous": lambda a: a,
    "every third row": lambda a: a[::3],
    "first columns": lambda a: a[:, :13],
    "middle columns of every other row": lambda a: a[1::2, 3:16],
    "one row": lambda a: a[5:6],
    "one column": lambda a: a[:, 4:5],
}

REFUSED = {
    "rows backwards": lambda a: a[::-1],
    "columns backwards": lambda a: a[:, ::-1],
    "step within rows": lambda a: a[:, ::2],
    "transposed": lambda a: a.T,
    "repeated rows": lambda a: np.broadcast_to(a[:1], a.shape),
    "overlapping rows": lambda a: np.lib.stride_tricks.as_strided(a, (4, 9), (8, a.itemsize)),
}


class TestAnswers:
    @pytest.mark.parametrize("dtype", [dtype for dtype in TYPES])
    def test_every_type(self, dtype, on_device):
        queries, base = positive_rows(1, 9, 17, dtype), positive_rows(2, 70, 17, dtype)
        expected = nearwise.knn(queries, base, 5)
        assert_same(nearwise.knn(on_device(queries), on_device(base), 5), expected)

    @pytest.mark.parametrize("dtype", [dtype for dtype in TYPES])
    def test_one_vector_is_one_query(self, dtype, on_device):
        base = positive_rows(2, 70, 17, dtype)
        expected = nearwise.knn(base[4], base, 5)
        assert expected.ids.shape == (5,)
        vector = on_device(base[4])
        assert_same(nearwise.knn(vector, on_device(base), 5), expected)
        gc.collect()
        assert vector.deleted == 1

    def test_one_vector_of_the_interface(self, share, base):
        assert_same(nearwise.knn(share(base[4]), base, 5), nearwise.knn(base[4], base, 5))
        refuses(ValueError, "elements of a row must be adjacent", nearwise.knn, share(base, lambda a: a[4, ::2]), base, 5)
        refuses(ValueError, "dtype float64", nearwise.knn, share(base[4].astype(np.float64)), base, 5)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_layouts_that_are_read_in_place(self, layout, share, base):
        view = LAYOUTS[layout]
        part = view(base[:90])
        shared = share(base[:90], view)
        assert as_rows(shared, "base").copied_bytes == 0
        count = min(3, len(part))
        assert_same(nearwise.knn(shared, shared, count), nearwise.knn(part, part, count))

    @pytest.mark.parametrize("layout", REFUSED)
    def test_layouts_that_are_not(self, layout, share, base):
        with pytest.raises(ValueError, match="base: the elements of a row must be adjacent.*on cuda:0"):
            nearwise.knn(base, share(base[:90], REFUSED[layout]), 1)

    def test_host_and_device_together(self, share, queries, base):
        expected = nearwise.knn(queries, base, 5)
        assert_same(nearwise.knn(queries, share(base), 5), expected)
        assert_same(nearwise.knn(share(queries), base, 5), expected)
        assert_same(nearwise.knn(share(queries), base.astype(np.float64), 5, device="cuda:0"), expected)

    def test_graph(self, share, base):
        assert_same(nearwise.exact_knn_graph(share(base[:60]), 4), nearwise.exact_knn_graph(base[:60], 4))

    def test_select_k(self, share):
        values = np.random.default_rng(3).standard_normal((7, 300), dtype=np.float32)
        order = np.random.default_rng(4).permutation(300)
        assert_same(nearwise.select_k(share(values), 10), nearwise.select_k(values, 10))
        narrow = share(values, lambda a: a[::2, 20:200])
        assert_same(nearwise.select_k(narrow, 5, largest=True), nearwise.select_k(values[::2, 20:200], 5, largest=True))
        for ids in (order, order.astype(np.uint32), np.stack([order] * 7)):
            expected = nearwise.select_k(values, 10, ids=ids)
            assert_same(nearwise.select_k(share(values), 10, ids=share(ids)), expected)
            assert_same(nearwise.select_k(share(values), 10, ids=ids), expected)
            assert_same(nearwise.select_k(values, 10, ids=share(ids)), expected)

    def test_results_are_numpy_arrays(self, share, queries, base):
        found = nearwise.knn(share(queries), share(base), 5)
        assert type(found.ids) is np.ndarray and type(found.distances) is np.ndarray

    def test_managed_memory_is_used_on_its_device(self, on_device, queries, base):
        shared = on_device(base, kind=CUDA_MANAGED)
        assert as_rows(shared, "base").array.device == "cuda:0"
        assert_same(nearwise.knn(queries, shared, 5), nearwise.knn(queries, base, 5))

    def test_empty_arrays(self, share, queries, base):
        assert nearwise.knn(share(queries, lambda a: a[:0]), share(base), 5).ids.shape == (0, 5)
        padded = nearwise.knn(queries, share(base, lambda a: a[:0]), 5, pad=True)
        assert (padded.ids == -1).all()


class TestStreams:
    """The emulated device shows a missing wait every time, a GPU now and then."""

    def test_dlpack_names_a_stream_of_ours(self, on_device, queries, base):
        tensors = on_device(queries), on_device(base)
        assert_same(nearwise.knn(*tensors, 5), nearwise.knn(queries, base, 5))
        for tensor in tensors:
            (stream,) = tensor.asked_for
            assert stream not in (None, -1, 0, 1, 2, tensor.memory.stream.value)

    @pytest.mark.skipif(not is_emulated(), reason="a GPU may happen to be done")
    def test_without_the_exchange_the_elements_are_not_there(self, on_device, queries, base):
        tensor = on_device(queries)
        tensor.honours_streams = False
        refuses(ValueError, "query row 0 holds NaN", nearwise.knn, tensor, base, 5)
        with pytest.raises(ValueError, match="query row 0 holds NaN"):
            nearwise.knn(on_device(queries).as_interface(stream=None), base, 5)

    def test_the_interface_names_a_stream(self, on_device, queries, base):
        expected = nearwise.knn(queries, base, 5)
        assert_same(nearwise.knn(on_device(queries).as_interface(), base, 5), expected)

    @pytest.mark.parametrize("stream", [1, 2])
    def test_work_on_a_default_stream(self, stream, on_device, queries, base):
        tensor = on_device(queries)
        tensor.make_ready_on(stream)
        shared = tensor.as_interface(stream=stream)
        assert_same(nearwise.knn(shared, base, 5), nearwise.knn(queries, base, 5))

    def test_work_that_is_done(self, on_device, queries, base):
        tensor = on_device(queries)
        as_rows(tensor, "queries")  # waits
        shared = tensor.as_interface(stream=None)
        assert_same(nearwise.knn(shared, base, 5), nearwise.knn(queries, base, 5))

    def test_stream_zero_is_ambiguous(self, on_device, queries, base):
        with pytest.raises(ValueError, match="queries: stream 0 of a CUDA array interface"):
            nearwise.knn(on_device(queries).as_interface(stream=0), base, 5)

    def test_interface_without_stream_and_strides(self, on_device, queries, base):
        tensor = on_device(queries)
        as_rows(tensor, "queries")  # waits
        interface = tensor.as_interface(version=2).__cuda_array_interface__
        del interface["stream"], interface["strides"]
        assert_same(nearwise.knn(CudaArray(interface), base, 5), nearwise.knn(queries, base, 5))


class TestIndex:
    def test_is_prepared_where_its_base_is(self, share, queries, base):
        index = nearwise.Exact(share(base))
        assert index.device == "cuda:0"
        expected = nearwise.knn(queries, base, 5)
        assert_same(index.search(queries, 5), expected)
        assert_same(index.search(share(queries), 5), expected)

    def test_host_base_with_queries_on_a_device(self, share, queries, base):
        index = nearwise.Exact(base)
        refuses(ValueError, "the queries are on cuda:0 and the work is on cpu", index.search, share(queries), 5)
        assert_same(index.to("cuda:0").search(share(queries), 5), nearwise.knn(queries, base, 5))

    def test_whole_numbers_with_queries_on_a_device(self, share):
        """An index of bytes looks at the queries before it searches: not where it cannot."""
        rows = positive_rows(1, 64, 32, np.uint8).astype(np.float32)
        refuses(ValueError, "the queries are on cuda:0", nearwise.Exact(rows).search, share(rows), 1)
        refuses(ValueError, "the queries are on cuda:0", nearwise.Exact(rows).range_search, share(rows), 1)

    def test_a_base_on_a_device_stays_there(self, share, base):
        refuses(ValueError, "the base rows are on cuda:0 and the work is on cpu", nearwise.Exact(share(base)).to, "cpu")

    def test_copies_share_a_base_on_a_device(self, share, queries, base):
        index = nearwise.Exact(share(base))
        assert_same(copy.copy(index).search(queries, 5), nearwise.knn(queries, base, 5))
        refuses(TypeError, "expected a base in host memory to pickle, got one on cuda:0", pickle.dumps, index)
        again = pickle.loads(pickle.dumps(nearwise.Exact(base, device="cuda:0")))
        assert again.device == "cuda:0"
        assert_same(again.search(queries, 5), nearwise.knn(queries, base, 5))

    def test_the_memory_lives_as_long_as_the_index(self, on_device, queries, base):
        tensor = on_device(base)
        index = nearwise.Exact(tensor)
        moved = index.to("cuda:0")
        del index
        gc.collect()
        assert tensor.deleted == 0
        assert_same(moved.search(queries, 5), nearwise.knn(queries, base, 5))
        del moved
        gc.collect()
        assert tensor.deleted == 1

    def test_the_tensor_is_given_back_after_a_call(self, on_device, base):
        tensor = on_device(base)
        nearwise.knn(tensor, tensor, 5)
        assert tensor.deleted == 2


class TestLife:
    @pytest.mark.skipif(not is_emulated(), reason="others use the device, and CUDA keeps memory in its pools")
    def test_nothing_stays_behind(self, on_device, queries, base):
        tensor = on_device(base)
        before = free_bytes()
        nearwise.knn(queries, tensor, 5)
        index = nearwise.Exact(tensor)
        index.search(queries, 5)
        assert free_bytes() < before
        del index
        refuses(ValueError, "k must be at most", nearwise.knn, queries, tensor, 301)
        assert free_bytes() == before

    def test_threads_search_at_once(self, on_device, queries, base):
        index = nearwise.Exact(on_device(base))
        expected = nearwise.knn(queries, base, 5)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            shared = [on_device(queries) for _ in range(4)]
            for found in threads.map(lambda tensor: index.search(tensor, 5), shared):
                assert_same(found, expected)


class TestErrors:
    def test_the_cpu_does_not_read_a_device(self, share, queries, base):
        with pytest.raises(ValueError, match="the base rows are on cuda:0 and the work is on cpu; they must be on the host"):
            nearwise.knn(queries, share(base), 5, device="cpu")
        with pytest.raises(ValueError, match="select_k: the values are on cuda:0 and the work is on cpu"):
            nearwise.select_k(share(base), 5, device="cpu")

    def test_files_are_written_from_the_host(self, share, base, tmp_path):
        refuses(ValueError, "rows in host memory expected", nearwise.write_vectors, tmp_path / "base.fbin", share(base))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64, np.uint16])
    def test_types_that_would_need_a_copy(self, dtype, share, base):
        with pytest.raises(ValueError, match=f"base: dtype {np.dtype(dtype).name} on cuda:0 is not accepted; convert it"):
            nearwise.knn(base, share(base.astype(dtype)), 5)

    def test_types_of_a_selection(self, share, base):
        with pytest.raises(ValueError, match="values: expected dtype float32, got float16"):
            nearwise.select_k(share(base.astype(np.float16)), 5)
        with pytest.raises(ValueError, match="ids: expected dtype int64 or uint32, got int32"):
            nearwise.select_k(share(base), 5, ids=share(np.arange(24, dtype=np.int32)))

    def test_one_dimension(self, share, base):
        refuses(ValueError, r"base: expected a 2-D array.*base\[None, :\]", nearwise.knn, base, share(base[0]), 5)
        refuses(ValueError, "queries: expected a 2-D array.* got 3-D", nearwise.knn, share(base[None]), base, 5)

    def test_non_finite_values_and_k(self, share, base):
        broken = base.copy()
        broken[7, 3] = np.inf
        refuses(ValueError, "base row 7 holds NaN or infinity", nearwise.knn, base, share(broken), 5)
        with pytest.raises(ValueError, match="k must be at most the number of base rows, 300, got 301"):
            nearwise.knn(base, share(base), 301)

    def test_interfaces_that_are_refused(self, on_device, base):
        tensor = on_device(base)
        for changes, text in (
            ({"mask": object()}, "masked"),
            ({"typestr": ">f4"}, "dtype >f4 of a device array"),
            ({"typestr": "<V4"}, "dtype"),
            ({"strides": (98, 4)}, "no multiples of its 4-byte elements"),
            ({"data": (tensor.memory.address.value + 2, False)}, "aligned"),
        ):
            refuses(ValueError, text, nearwise.knn, tensor.as_interface(**changes), base, 1)

    def test_an_interface_over_host_memory(self, on_device, base):
        with pytest.raises(nearwise.Error, match="queries: the CudaArray is on no CUDA device") as caught:
            nearwise.knn(on_device(base).as_interface(data=(base.ctypes.data, False)), base, 1)
        assert caught.value.code == "unsupported"

    def test_an_exporter_that_refuses_is_quoted(self, on_device, base):
        class Reluctant(DeviceTensor):
            def __dlpack__(self, *, stream=None):
                raise BufferError("requires grad")

        with pytest.raises(ValueError, match="queries: Reluctant cannot be used in place: requires grad"):
            tensor = Reluctant(base)
            try:
                nearwise.knn(tensor, base, 5)
            finally:
                tensor.memory.free()

    def test_a_device_that_is_not_there(self, on_device, base):
        tensor = on_device(base)
        tensor.ordinal = 63
        refuses("unsupported", "cuda:63 is not available; devices here: cpu, cuda:0", nearwise.knn, tensor, base, 5)

    @pytest.mark.skipif(not is_emulated(), reason="fills the device")
    def test_a_full_device(self, on_device, queries, base):
        shared = on_device(base)
        on_device(np.zeros(free_bytes() - 4096, np.uint8))
        refuses("out_of_memory", "cuda:0.*memory", nearwise.knn, queries, shared, 5)


@needs_two_devices
class TestTwoDevices:
    def test_the_second(self, share, queries, base):
        expected = nearwise.knn(queries, base, 5)
        assert_same(nearwise.knn(queries, share(base, ordinal=1), 5), expected)
        assert_same(nearwise.knn(share(queries, ordinal=1), share(base, ordinal=1), 5, device="cuda:1"), expected)
        assert nearwise.Exact(share(base, ordinal=1)).device == "cuda:1"

    def test_no_silent_copies_between_them(self, share, queries, base):
        first, second = share(base), share(base, ordinal=1)
        for search in (
            lambda: nearwise.knn(queries, first, 5, device="cuda:1"),
            lambda: nearwise.knn(first, second, 5),
            lambda: nearwise.Exact(second, device="cuda:0"),
            lambda: nearwise.Exact(first).to("cuda:1"),
            lambda: nearwise.Exact(first).search(second, 5),
            lambda: nearwise.select_k(first, 5, device="cuda:1"),
        ):
            refuses(ValueError, "are on cuda:[01] and the work is on cuda:[01]", search)
