"""Launching through the driver: a library in C stands in for it, as there is none without a GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from roofline.devices.cuda import nvrtc
from roofline.devices.cuda.card import Grid

#: Keeps what it is called with: the kernel, six sizes, shared memory, the stream, and three arguments of a kernel
#: `(float*, long long, int)`, read as a GPU's driver reads them: behind the addresses it is given.
DRIVER = """
long long seen[12]; int answer = 0;
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void** extra) {
    long long all[12] = {(long long)function, gx, gy, gz, bx, by, bz, shared, (long long)stream,
                         (long long)*(float**)arguments[0], *(long long*)arguments[1], *(int*)arguments[2]};
    for (int i = 0; i < 12; ++i) seen[i] = all[i];
    return extra ? 1 : answer;
}
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "driver.c").write_text(DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "driver.so", tmp_path / "driver.c"], check=True)
    library = ctypes.CDLL(str(tmp_path / "driver.so"))
    monkeypatch.setattr(nvrtc, "_driver", lambda: library)
    # Addresses above 2^32, which an argument passed as a C int would lose.
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0x7FFF12345678))
    return library


def test_arguments_reach_the_driver(driver):
    kernel, data = nvrtc.Kernel(ctypes.c_void_p(0x2345678923456789)), torch.zeros(4)
    kernel(Grid(528, 256), data, ctypes.c_longlong(-(2**40)), ctypes.c_int(-7))
    seen = list((ctypes.c_longlong * 12).in_dll(driver, "seen"))
    sizes = [528, 1, 1, 256, 1, 1, 0]
    assert seen == [0x2345678923456789, *sizes, 0x7FFF12345678, data.data_ptr(), -(2**40), -7]


def test_what_the_driver_refuses_is_an_error(driver):
    ctypes.c_int.in_dll(driver, "answer").value = 701
    with pytest.raises(RuntimeError, match="cuLaunchKernel failed with code 701"):
        nvrtc.Kernel(ctypes.c_void_p(1))(Grid(1, 1), torch.zeros(1), ctypes.c_longlong(0), ctypes.c_int(0))


def test_without_the_compiler_there_is_a_sentence(monkeypatch):
    if torch.version.cuda is not None:
        pytest.skip("needs a build of torch without CUDA")
    nvrtc._compiler.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    with pytest.raises(RuntimeError, match="NVRTC, the compiler that CUDA builds of torch bring, was not found"):
        nvrtc._compiler()
