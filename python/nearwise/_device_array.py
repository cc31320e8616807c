"""Arrays on CUDA devices that other libraries share: by DLPack, or by the CUDA array interface.

An array may be handed over while its library's work on it is still queued. Both protocols say how to order that work
before the consumer's:

- DLPack: the consumer names a stream, and the producer makes the array ready for work on that stream. We open one on
  the array's device, name it and wait for it. Not the default stream: others queue there, and some streams wait for it.
- CUDA array interface: the producer names the stream that its work is on (or none, if it has finished), and we wait
  for that.

The host waits, rather than a stream for an event, because a search opens streams of its own as it goes, and returns its
results to the host: the call lasts as long as the work anyway. When it returns, nothing of ours is queued any more, so
the producer has nothing to wait for in turn.
"""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np

from nearwise import _core
from nearwise._error import Error

_DEVICE_MEMORY = (2, 13)  # DLPack's numbers for memory of a CUDA device and for managed memory
_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

DeviceArray = _core.DeviceArray


def from_device(values: Any, name: str) -> Union[None, DeviceArray, np.ndarray]:
    """The argument `name` if it is on a CUDA device, its elements complete; None if it is not."""
    if hasattr(values, "__dlpack__") and hasattr(values, "__dlpack_device__"):
        device, ordinal = values.__dlpack_device__()
        return _from_dlpack(values, name, int(ordinal)) if int(device) in _DEVICE_MEMORY else None
    interface = getattr(values, "__cuda_array_interface__", None)
    return None if interface is None else _from_interface(values, interface, name)


def _from_dlpack(tensor: Any, name: str, ordinal: int) -> DeviceArray:
    stream = _core.ExchangeStream(f"cuda:{ordinal}")
    try:
        # The capsule and not the tensor: what the exporter has to say then reaches the user.
        array = DeviceArray(tensor.__dlpack__(stream=stream.handle))
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: {type(tensor).__name__} cannot be used in place: {error}") from error
    stream.wait()
    return array


def _from_interface(values: Any, interface: dict[str, Any], name: str) -> Union[DeviceArray, np.ndarray]:
    if interface.get("mask") is not None:
        raise ValueError(f"{name}: a masked array is not accepted; fill or drop the masked elements")
    shape = tuple(interface["shape"])
    dtype = np.dtype(interface["typestr"])
    if not dtype.isnative or dtype.kind not in _DLPACK_CODES:
        raise ValueError(f"{name}: dtype {dtype.str} of a device array is not accepted")
    if 0 in shape:
        return np.empty(shape, dtype)  # no memory, hence on no device
    strides = _strides_in_elements(interface.get("strides"), shape, dtype.itemsize, name)
    address = interface["data"][0]
    device = _core.device_of(address)
    if device == "cpu":
        raise Error(
            f"{name}: the {type(values).__name__} is on no CUDA device that this build of nearwise can use", "unsupported"
        )
    stream: Optional[int] = interface.get("stream")
    if stream == 0:
        raise ValueError(f"{name}: stream 0 of a CUDA array interface is ambiguous; 1 is the legacy default stream")
    if stream is not None:
        _core.wait_for_stream(device, stream)
    return _core.describe_device_array(
        address, shape, strides, _DLPACK_CODES[dtype.kind], dtype.itemsize * 8, int(device.split(":")[1]), values
    )


def _strides_in_elements(strides: Optional[tuple[int, ...]], shape: tuple[int, ...], itemsize: int, name: str) -> list[int]:
    if strides is None:
        return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
    if any(stride % itemsize for stride in strides):
        raise ValueError(f"{name}: strides {strides} of a device array are no multiples of its {itemsize}-byte elements")
    return [stride // itemsize for stride in strides]
