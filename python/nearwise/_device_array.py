"""Arrays on CUDA devices, shared by other libraries through DLPack or the CUDA array interface.

The producer may still have work on the array in a stream. Both protocols order it before ours:

- DLPack: the consumer passes a stream, and the producer makes the array ready on it. We pass a new stream of the
  array's device and wait for it. Not the default stream, on which unrelated work is queued.
- CUDA array interface: the producer names the stream of its work (or none), and we wait for that.

The host waits, not a stream: every operation opens its own streams and returns its results to the host, so the call
takes as long as the work anyway. When it returns, no work of ours is queued.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._error import Error

_DEVICE_MEMORY = (2, 13)  # DLPack's numbers for memory of a CUDA device and for managed memory
_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_CODES_BY_NAME = {"int8": 0, "uint8": 1, "float16": 2, "float32": 2, "bfloat16": 4}  # of the types of vectors

DeviceArray = _core.DeviceArray


def from_device(values: Any, name: str) -> DeviceArray | npt.NDArray[Any] | None:
    """The argument `name` if it is on a CUDA device, after waiting for its elements; None if it is not."""
    if hasattr(values, "__dlpack__") and hasattr(values, "__dlpack_device__"):
        device, ordinal = values.__dlpack_device__()
        return _from_dlpack(values, name, int(ordinal)) if int(device) in _DEVICE_MEMORY else None
    interface = getattr(values, "__cuda_array_interface__", None)
    return None if interface is None else _from_interface(values, interface, name)


def _from_dlpack(tensor: Any, name: str, ordinal: int) -> DeviceArray:
    stream = _core.ExchangeStream(device=f"cuda:{ordinal}")
    try:
        # From the capsule, not the tensor, so that the exporter's own error reaches the user.
        array = DeviceArray(tensor.__dlpack__(stream=stream.handle))
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: {type(tensor).__name__} cannot be used in place: {error}") from error
    stream.wait()
    return array


def _from_interface(values: Any, interface: dict[str, Any], name: str) -> DeviceArray | npt.NDArray[Any]:
    if interface.get("mask") is not None:
        raise ValueError(f"{name}: a masked array is not accepted; fill or drop the masked elements")
    shape = tuple(interface["shape"])
    dtype = np.dtype(interface["typestr"])
    if not dtype.isnative or dtype.kind not in _DLPACK_CODES:
        raise ValueError(f"{name}: dtype {dtype.str} of a device array is not accepted")
    if 0 in shape:
        return np.empty(shape, dtype)  # no memory, so on no device
    strides = _strides_in_elements(interface.get("strides"), shape, dtype.itemsize, name)
    address = interface["data"][0]
    device = _core.device_of(address=address)
    if device == "cpu":
        raise Error(
            f"{name}: the {type(values).__name__} is on no CUDA device that this build of nearwise can use",
            "unsupported",
        )
    stream: int | None = interface.get("stream")
    if stream == 0:
        raise ValueError(f"{name}: stream 0 of a CUDA array interface is ambiguous; 1 is the legacy default stream")
    if stream is not None:
        _core.wait_for_stream(device=device, stream=stream)
    return _core.describe_device_array(
        address=address,
        shape=shape,
        strides=strides,
        code=_DLPACK_CODES[dtype.kind],
        bits=dtype.itemsize * 8,
        ordinal=int(device.split(":")[1]),
        owner=values,
    )


def device_row(vector: DeviceArray) -> DeviceArray:
    """A 1-D array as a matrix [1, dim] of the same memory; one of another element type as it is."""
    code = _CODES_BY_NAME.get(vector.dtype)
    if code is None:
        return vector
    return _core.describe_device_array(
        address=vector.address,
        shape=(1, *vector.shape),
        strides=(vector.shape[0], vector.strides[0] // vector.itemsize),
        code=code,
        bits=vector.itemsize * 8,
        ordinal=int(vector.device.split(":")[1]),
        owner=vector,
    )


def _strides_in_elements(
    strides: tuple[int, ...] | None, shape: tuple[int, ...], itemsize: int, name: str
) -> list[int]:
    if strides is None:
        return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
    if any(stride % itemsize for stride in strides):
        raise ValueError(
            f"{name}: strides {strides} of a device array are no multiples of its {itemsize}-byte elements"
        )
    return [stride // itemsize for stride in strides]
