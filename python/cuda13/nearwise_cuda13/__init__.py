"""The CUDA backend of nearwise, for CUDA 13: a shared library, loaded by nearwise when a CUDA device is first asked for."""

import os

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libnearwise_cuda.so")
