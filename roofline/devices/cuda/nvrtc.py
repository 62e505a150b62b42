"""Compile kernels of our own: CUDA C++, by the NVRTC that torch brings, launched through the driver.

torch.cuda._compile_kernel does the same, but wants the headers of a CUDA toolkit, which a machine that only runs models
lacks. All functions raise RuntimeError, as torch does where a processor or a build lacks a feature.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from roofline.devices.cuda.card import Grid

_POINTER = ctypes.c_void_p


@dataclass(frozen=True, slots=True)
class Kernel:
    """Hold a loaded kernel; it stays loaded as long as the process lives."""

    function: Any

    def __call__(self, grid: Grid, *arguments: Any) -> None:
        """Enqueue it on torch's current stream. arguments: values of ctypes' types, and tensors for their addresses.

        The tensors must live until the kernel has run.
        """
        import torch

        words = [_POINTER(word.data_ptr()) if isinstance(word, torch.Tensor) else word for word in arguments]
        addresses = (_POINTER * len(words))(*(ctypes.addressof(word) for word in words))
        stream = _POINTER(torch.cuda.current_stream().cuda_stream)
        launch = _driver().cuLaunchKernel
        launch.argtypes = [_POINTER, *(ctypes.c_uint,) * 7, _POINTER, _POINTER, _POINTER]
        code = launch(self.function, grid.blocks, 1, 1, grid.threads, 1, 1, 0, stream, addresses, None)
        _check_status(code, "cuLaunchKernel")


@cache
def kernel(source: str, name: str) -> Kernel:
    """Compile the kernel `name`, declared extern "C" in `source`, for the current GPU."""
    import torch

    if torch.version.hip is not None:
        raise RuntimeError("kernels of our own are compiled for NVIDIA GPUs only")
    torch.cuda.synchronize()  # makes torch's context the current one, which the driver loads into
    major, minor = torch.cuda.get_device_capability()
    image = compile_source(source, f"sm_{major}{minor}", _compiler())
    driver, module, function = _driver(), _POINTER(), _POINTER()
    _check_status(driver.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    _check_status(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), "cuModuleGetFunction")
    return Kernel(function)


def compile_source(source: str, architecture: str, library: ctypes.CDLL) -> bytes:
    """Compile `source` to machine code (cubin) for an architecture such as "sm_90"."""
    program, options = _POINTER(), (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    code = library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"roofline.cu", 0, None, None)
    _check_status(code, "nvrtcCreateProgram")
    try:
        if library.nvrtcCompileProgram(program, 1, options):
            log = _read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise RuntimeError(f"NVRTC: {log.rstrip(bytes(1)).decode(errors='replace').strip()}")
        return _read(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(size: Callable[..., int], content: Callable[..., int], program: ctypes.c_void_p) -> bytes:
    length = ctypes.c_size_t()
    _check_status(size(program, ctypes.byref(length)), "NVRTC")
    buffer = ctypes.create_string_buffer(length.value)
    _check_status(content(program, buffer), "NVRTC")
    return buffer.raw


@cache
def _compiler() -> ctypes.CDLL:
    import torch

    # The library through which torch itself calls NVRTC knows where the one of its own version lies.
    bundled = Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"
    for name in (str(bundled), f"libnvrtc.so.{str(torch.version.cuda).partition('.')[0]}", "libnvrtc.so"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "nvrtcCreateProgram"):
            return library
    raise RuntimeError("NVRTC, the compiler that CUDA builds of torch bring, was not found")


@cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"the driver's library cannot be loaded ({error})") from error


def _check_status(code: int, call: str) -> None:
    if code:
        raise RuntimeError(f"{call} failed with code {code}")
