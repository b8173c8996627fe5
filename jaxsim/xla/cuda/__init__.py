"""Kernels of a GPU: CUDA C, compiled by NVRTC while a program is lowered."""
