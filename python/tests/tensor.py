"""A tensor of no library: the least that DLPack asks for, so that the exchange is tested without PyTorch."""

import ctypes

import numpy as np

HOST, CUDA, ROCM, CUDA_MANAGED = 1, 2, 10, 13
INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


# The consumer calls the deleter when it likes, and a collector of garbage might take the tensor before.
_exported = []


class Tensor:
    """Exports the memory of a numpy array under a DLPack type code of the caller's choice.

    With an address, the array only describes what lies there.
    """

    def __init__(self, array, code, device=HOST, ordinal=0, address=None):
        self.array = array
        self.device = device
        self.ordinal = ordinal
        self.deleted = 0
        address = array.ctypes.data if address is None else address
        ndim = array.ndim
        shape = (ctypes.c_int64 * ndim)(*array.shape)
        strides = (ctypes.c_int64 * ndim)(*(stride // array.itemsize for stride in array.strides))
        # 16 bytes of the address travel as an offset: importers must add it.
        tensor = _DLTensor(
            address - 16, device, ordinal, ndim, code, array.itemsize * 8, 1, shape, strides, byte_offset=16
        )
        self._deleter = _Deleter(self._delete)
        self._managed = _Managed(tensor, None, self._deleter)
        self._keep = (shape, strides)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **_):
        _exported.append(self)
        return _new_capsule(ctypes.addressof(self._managed), b"dltensor", None)

    def __dlpack_device__(self):
        return (self.device, self.ordinal)


def bfloat16_tensor(values):
    """A bfloat16 tensor over bits of our own, so that nothing of ml_dtypes is needed."""
    bits = (np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return Tensor(bits, BFLOAT)
