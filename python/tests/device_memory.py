"""Arrays in the memory of a CUDA device, made with the CUDA runtime alone: neither PyTorch nor CuPy is needed.

The emulated device is part of nearwise's own module, or of the plugin that this has loaded: either exports its runtime.
On a GPU it is libcudart (or what NEARWISE_CUDART names): streams and memory are the driver's, and common to all copies of
the runtime.

Every array is filled on a stream of its own and handed over unfinished. The emulated device runs a stream only when
somebody waits for it, so a reader that does not wait reads NaN.
"""

import ctypes
import ctypes.util
import functools
import os

import ml_dtypes
import nearwise
import numpy as np
import pytest
from tensor import BFLOAT, CUDA, FLOAT, INT, UINT, Tensor

_HOST_TO_DEVICE = 1
_NON_BLOCKING = 1
_CODES = {"f": FLOAT, "i": INT, "u": UINT}


@functools.cache
def devices():
    """Names of the CUDA devices that nearwise sees."""
    return [device["name"] for device in nearwise.info()["devices"] if device["name"] != "cpu"]


@functools.cache
def is_emulated():
    return any("emulated" in device["model"] for device in nearwise.info()["devices"])


needs_device = pytest.mark.skipif(not devices(), reason="this build or machine has no CUDA device")
needs_two_devices = pytest.mark.skipif(len(devices()) < 2, reason="fewer than two CUDA devices")


@functools.cache
def _runtime():
    if is_emulated():
        return ctypes.CDLL(nearwise.info()["cuda"]["library"] or nearwise._core.__file__)
    path = os.environ.get("NEARWISE_CUDART") or ctypes.util.find_library("cudart")
    if path is None:
        pytest.skip("the CUDA runtime is not found; name libcudart.so in NEARWISE_CUDART")
    return ctypes.CDLL(path)


def call(function, *arguments):
    status = getattr(_runtime(), function)(*arguments)
    assert status == 0, f"{function}: CUDA error {status}"


def _new(function, *arguments):
    handle = ctypes.c_void_p()
    call(function, ctypes.byref(handle), *arguments)
    return handle


def free_bytes():
    """Of the first device, when all that was queued is done."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cudaDeviceSynchronize")
    call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return free.value


class Memory:
    """Bytes on a device, and the stream that fills them."""

    def __init__(self, contents, ordinal=0):
        call("cudaSetDevice", ordinal)
        self.stream = _new("cudaStreamCreateWithFlags", _NON_BLOCKING)
        self.address = _new("cudaMalloc", ctypes.c_size_t(len(contents)))
        call("cudaMemcpyAsync", self.address, contents, ctypes.c_size_t(len(contents)), _HOST_TO_DEVICE, self.stream)
        call("cudaSetDevice", 0)

    def free(self):
        call("cudaStreamSynchronize", self.stream)
        call("cudaFree", self.address)
        call("cudaStreamDestroy", self.stream)


class DeviceTensor(Tensor):
    """A copy of `storage` on a device, of which `view` is shared by DLPack. Keeps the streams it was asked for."""

    def __init__(self, storage, view=lambda array: array, ordinal=0, kind=CUDA):
        storage = np.ascontiguousarray(storage)
        self.storage = storage
        self.memory = Memory(storage.tobytes(), ordinal)
        self.honours_streams = True
        self.asked_for = []
        part = view(storage)
        code = BFLOAT if storage.dtype == ml_dtypes.bfloat16 else _CODES[storage.dtype.kind]
        offset = part.ctypes.data - storage.ctypes.data
        super().__init__(part, code, kind, ordinal, (self.memory.address.value or 0) + offset)

    def __dlpack__(self, *, stream=None):
        self.asked_for.append(stream)
        if self.honours_streams:
            self.make_ready_on(stream)
        return super().__dlpack__()

    def make_ready_on(self, stream):
        """What is queued there from now on finds the elements."""
        event = _new("cudaEventCreateWithFlags", 0)
        call("cudaEventRecord", event, self.memory.stream)
        call("cudaStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        call("cudaEventDestroy", event)

    def as_interface(self, **changes):
        """The same memory under the CUDA array interface."""
        part = self.array
        offset = part.ctypes.data - self.storage.ctypes.data
        return CudaArray(
            {
                "shape": part.shape,
                "typestr": part.dtype.str,
                "data": ((self.memory.address.value or 0) + offset, False),
                "strides": part.strides,
                "version": 3,
                "stream": self.memory.stream.value,
                **changes,
            }
        )


class CudaArray:
    """An array of no library that offers the CUDA array interface and nothing else."""

    def __init__(self, interface):
        self.__cuda_array_interface__ = interface
