"""The kernels' source: what it computes when a C++ compiler runs it, and that CUDA's takes it."""

from __future__ import annotations

import ast
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from roofline.devices.cuda import arithmetic, generated, kernels

#: What CUDA has and C++ lacks; a grid's threads run one after the other.
SHIM = """
#include <cmath>
#include <cstdio>
using std::sqrt; using std::exp; using std::log; using std::pow; using std::sin; using std::cos;
struct Three { unsigned x; };
static Three threadIdx, blockIdx, blockDim, gridDim;
struct float4 { float x, y, z, w; };
#define __global__
static inline float rsqrt(float x) { return 1.0f / sqrt(x); }
"""
#: What the functions are, for a check in double precision.
PYTHON = {
    "exp": lambda x: math.exp(-x),
    "exp2": lambda x: 2.0**-x,
    "expm1": lambda x: math.expm1(-x),
    "log": lambda x: math.log(x + 3),
    "log2": lambda x: math.log2(x + 3),
    "log1p": lambda x: math.log1p(x + 1),
    "tanh": lambda x: math.tanh(x + 1),
    "erf": lambda x: math.erf(x + 1),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "sqrt": lambda x: math.sqrt(x + 1),
    "rsqrt": lambda x: 1 / math.sqrt(x + 1),
    "sin": lambda x: math.sin(x + 1),
    "cos": lambda x: math.cos(x + 1),
    "pow": lambda x: (x + 1) ** 0.7,
}


def run(tmp_path: Path, code: str) -> list[str]:
    """What a C++ program prints, a line each."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    (tmp_path / "kernel.cpp").write_text(SHIM + code)
    subprocess.run([compiler, "-O1", "-w", "-o", tmp_path / "kernel", tmp_path / "kernel.cpp"], check=True)
    return subprocess.run([tmp_path / "kernel"], check=True, capture_output=True, text=True).stdout.split("\n")[:-1]


def test_each_function_is_evaluated_as_often_as_is_said(tmp_path):
    # two threads begin at 0 and 1/2; 3 evaluations in a row, 2 turns: 6 in all
    sources = [
        kernels.repeated(expression, "float", 3).replace(" repeated(", f" {name}_(")
        for name, expression in arithmetic.FUNCTIONS.items()
    ]
    calls = [
        f"for (threadIdx.x = 0; threadIdx.x < 2; ++threadIdx.x) {name}_(out, 2);"
        r'printf("%g %g\n", out[0], out[1]);'
        for name in arithmetic.FUNCTIONS
    ]
    lines = run(tmp_path, "\n".join(sources) + "int main() { float out[2]; blockDim.x = 2;" + "\n".join(calls) + "}")
    for name, line in zip(arithmetic.FUNCTIONS, lines, strict=True):
        for begin, ours in zip((0.0, 0.5), map(float, line.split()), strict=True):
            x = begin
            for _ in range(6):
                x = PYTHON[name](x)
            assert ours == pytest.approx(x, rel=1e-4), name


@pytest.mark.parametrize("name", arithmetic.FUNCTIONS)
def test_functions_evaluated_again_and_again_stay_ordinary_numbers(name):
    # Zeros, denormals and infinities run on paths of their own on some GPUs. 4096 = 8 x 512 evaluations.
    for begin in (0.0, 0.25, 0.5, 1.0):
        x = begin
        for _ in range(arithmetic.UNROLL_FUNCTION * arithmetic.TURNS):
            x = PYTHON[name](x)
        assert 1e-30 < abs(x) < 1e30 or name == "expm1"  # whose fixed point is 0


def test_multiply_adds_are_unrolled(tmp_path):
    # Only the loop's count, comparison and jump are not multiply-adds: 128 / (128 + 3) = 97.7 %
    assert arithmetic.UNROLL_MULTIPLY_ADD / (arithmetic.UNROLL_MULTIPLY_ADD + 3) > 0.97
    source = kernels.repeated(arithmetic.MULTIPLY_ADD, "float", 128)
    (line,) = run(
        tmp_path, source + 'int main() { float out[1]; blockDim.x = 1; repeated(out, 2); printf("%g\\n", *out); }'
    )
    # x = 0.999 x + 0.001 from 0: 1 - 0.999^n, with n = 256: 0.22596
    assert float(line) == pytest.approx(1 - 0.999**256, rel=1e-4)


def reading(tmp_path: Path, blocks: int, threads: int, slice_: int, step: int, each: int, loads: int) -> list[int]:
    """How often the kernel reads each number of 16 bytes."""
    loaded = re.sub(
        r"asm volatile\(.*?;\"(.*?)\"l\"\((.*?)\)\);",
        r"v[j] = *(\2); ++count[\2 - data0];",
        kernels.reread(),
        flags=re.S,
    )
    assert "asm" not in loaded
    size = blocks * threads * each
    code = f"""static float4 data0[{size}]; static int count[{size}];
{loaded}
int main() {{
    float out = 0; blockDim.x = {threads};
    for (blockIdx.x = 0; blockIdx.x < {blocks}; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < {threads}; ++threadIdx.x)
            reread(data0, &out, {slice_}, {step}, {each}, {loads});
    for (int i = 0; i < {size}; ++i) printf("%d\\n", count[i]);
}}"""
    return [int(line) for line in run(tmp_path, code)]


def test_a_slice_is_read_again_and_again(tmp_path):
    # 3 blocks of 4 threads, 5 loads each: 60 numbers. 40 loads of each thread are 8 passes.
    assert reading(tmp_path, 3, 4, slice_=5 * 4, step=4, each=5, loads=40) == [8] * 60


def test_an_array_is_read_once(tmp_path):
    # 3 blocks of 4 threads, 16 loads each, all threads side by side: 192 numbers, once
    assert reading(tmp_path, 3, 4, slice_=4, step=12, each=16, loads=16) == [1] * 192


def test_cuda_takes_the_source(tmp_path):
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("needs CUDA's compiler, nvcc")
    sources = [kernels.reread()]
    for number, (expression, dtype, unroll) in enumerate(
        [(one, "float", arithmetic.UNROLL_FUNCTION) for one in arithmetic.FUNCTIONS.values()]
        + [(arithmetic.MULTIPLY_ADD, dtype, arithmetic.UNROLL_MULTIPLY_ADD) for dtype in ("float", "double")]
    ):
        sources.append(kernels.repeated(expression, dtype, unroll).replace(" repeated(", f" repeated{number}("))
    (tmp_path / "all.cu").write_text("\n".join(sources))
    done = subprocess.run(
        [compiler, "-ptx", "-arch=sm_80", "-o", tmp_path / "all.ptx", tmp_path / "all.cu"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    ptx = (tmp_path / "all.ptx").read_text()
    # 8 loads past the first cache;
    # 128 fused multiply-adds in fp64, and in fp32 beside those inside functions
    assert ptx.count("ld.global.cg.v4.f32") == kernels.IN_FLIGHT
    assert ptx.count("fma.rn.f64") >= 128
    assert ptx.count("fma.rn.f32") >= 128


def test_generated_code_has_every_function():
    source = Path(generated.__file__).with_name("triton_kernels.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    compared = [
        node.comparators[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant)
    ]
    assert compared == list(arithmetic.FUNCTIONS)
