"""The verb `gpu-check`: every operation of a CUDA device against the CPU's bytes, and what it takes."""
