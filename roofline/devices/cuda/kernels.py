"""CUDA C++ of the kernels that drive one unit of a GPU and nothing else."""

from __future__ import annotations

#: Bytes of one load.
LOAD = 16
#: Loads of a thread before the first is used. The compiler for sm_90 keeps four of them in flight.
IN_FLIGHT = 8
#: Threads of a multiprocessor that read: 4 loads of each are 64 KiB in flight, more than any memory of today wants
#: (8 TB/s x 800 ns over 148 multiprocessors, a B200's, are 43 KiB), and no more threads than every GPU can hold.
READERS = 1024


def repeated(expression: str, dtype: str, unroll: int) -> str:
    """Source of the kernel `repeated(out, times)`: each thread evaluates x = `expression` times x unroll times.

    expression: of the variable x and the type T. Numbers stay in registers; each thread writes its last one, so that no
    evaluation can be left out. Beside the evaluations a turn of the loop has three instructions (count, compare, jump).
    """
    return f"""extern "C" __global__ void repeated({dtype}* out, int times) {{
    typedef {dtype} T;
    T x = T(threadIdx.x) / T(blockDim.x);
    #pragma unroll 1
    for (int i = 0; i < times; ++i) {{
        #pragma unroll
        for (int j = 0; j < {unroll}; ++j) x = {expression};
    }}
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}}"""


def reread() -> str:
    """Source of the kernel `reread(data, out, slice, step, each, loads)`: reads past the caches of the processors.

    A thread of block b reads the numbers of 16 bytes at b x slice + thread + i x step, i = 0 ... each - 1, and again
    from i = 0 until it has read `loads`, a multiple of IN_FLIGHT. Nothing is written, but the compiler cannot know it.
    """
    return f"""extern "C" __global__ void reread(
    const float4* data, float* out, long long slice, long long step, int each, int loads
) {{
    const float4* mine = data + blockIdx.x * slice + threadIdx.x;
    float total = 0.0f;
    int i = 0;
    #pragma unroll 1
    for (int done = 0; done < loads; done += {IN_FLIGHT}) {{
        float4 v[{IN_FLIGHT}];
        #pragma unroll
        for (int j = 0; j < {IN_FLIGHT}; ++j) {{
            asm volatile("ld.global.cg.v4.f32 {{%0, %1, %2, %3}}, [%4];"
                : "=f"(v[j].x), "=f"(v[j].y), "=f"(v[j].z), "=f"(v[j].w) : "l"(mine + i * step));
            i = i + 1 == each ? 0 : i + 1;
        }}
        #pragma unroll
        for (int j = 0; j < {IN_FLIGHT}; ++j) total += v[j].x + v[j].y + v[j].z + v[j].w;
    }}
    if (total == -1.0f) *out = total;
}}"""


def one_number() -> str:
    """Source of the kernel `one_number(out)`: writes 1 to the first number; the least that an op can do."""
    return 'extern "C" __global__ void one_number(float* out) { *out = 1.0f; }'
