"""Compile CUDA source to PTX with NVRTC, from the CUDA packages that JAX installs; no GPU is needed."""

import ctypes
import ctypes.util
import importlib.util
import re
from functools import cache
from pathlib import Path

ARCHITECTURE = "compute_80"  # PTX for it runs on every newer GPU too
VERSION = "8.3"  # of PTX, CUDA 12.3: NVRTC writes its newest, which older drivers refuse


# Divisions and roots in single precision to two units in the last place. Exact ones have branches: with them a step of
# the humanoid takes 1.22 ms instead of 1.12 (docs/decisions/gpu_first_run.md).
APPROXIMATE = (b"-prec-div=false", b"-prec-sqrt=false")


class CompilerMissing(Exception):
    """NVRTC is not installed."""


@cache
def _library() -> ctypes.CDLL:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = sorted(path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.*"))
    for name in [*map(str, found), ctypes.util.find_library("nvrtc")]:
        if name and "builtins" not in name and not name.endswith(".alt.so"):
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    raise CompilerMissing("NVRTC is not installed (pip install 'jaxsim-mjcf[cuda]')")


@cache
def is_installed() -> bool:
    """Return whether NVRTC is installed."""
    try:
        return _library() is not None
    except CompilerMissing:
        return False


@cache
def makes_programs() -> bool:
    """Return whether this machine can compile programs for CUDA: with JAX's plugin and NVRTC."""
    plugins = (f"jax_cuda{k}_plugin" for k in (12, 13, 14))
    return is_installed() and any(importlib.util.find_spec(p) for p in plugins)


@cache
def ptx_of(source: str) -> str:
    """Return PTX of CUDA source. Raises CompilerMissing without NVRTC, RuntimeError with its log on errors."""
    lib, program = _library(), ctypes.c_void_p()
    options = [f"--gpu-architecture={ARCHITECTURE}".encode(), b"-w", *APPROXIMATE]
    lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    try:
        failed = lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if failed:
            raise RuntimeError(_text(program, "ProgramLog"))
        return re.sub(r"(?m)^\.version .*$", f".version {VERSION}", _text(program, "PTX"))
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> str:
    lib, size = _library(), ctypes.c_size_t()
    getattr(lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(lib, f"nvrtcGet{what}")(program, buffer)
    return buffer.value.decode()
