"""Inductor's code for a GPU, generated without one: tensors are fake, and what asks for the device gets an H100.

Nothing is compiled and nothing runs. Neither CUDA nor Triton has to be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

_H100 = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=80 * 2**30,
    warp_size=32,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    L2_cache_size=50 * 2**20,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    gcnArchName="",
)


@contextmanager
def _pretended() -> Iterator[None]:
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor import scheduler
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._subclasses import fake_tensor
    from torch.utils import _triton

    def properties(*_: Any, **__: Any) -> Any:
        return _H100

    DeviceProperties.create.cache_clear()
    with ExitStack() as stack:
        for owner, name, value in (
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "device_count", lambda: 1),
            (torch.cuda, "current_device", lambda: 0),
            (torch.cuda, "get_device_properties", properties),
            (torch.cuda, "get_device_capability", lambda *_: (9, 0)),
            (CudaInterface, "get_device_properties", staticmethod(properties)),
            (CudaInterface, "get_compute_capability", staticmethod(lambda *_: 90)),
            (CudaInterface.Worker, "get_device_properties", staticmethod(properties)),
            (scheduler, "has_triton", lambda *_: True),
            (_triton, "triton_hash_with_backend", lambda: "none"),
            (fake_tensor, "init_gpu_context", lambda *_: None),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield
    DeviceProperties.create.cache_clear()


def generate(function: Callable[..., Any], *inputs: tuple[tuple[int, ...], torch.dtype]) -> tuple[Any, str]:
    """(the lowered graph, its code) of a function of tensors of these shapes and types."""
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    with _pretended(), mode:
        given = [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in inputs]
        traced = make_fx(function, decomposition_table=select_decomp_table())(*given)
        lowered = GraphLowering(traced, shape_env=mode.shape_env)
        with V.set_graph_handler(lowered), V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            lowered.run(*given)
            code, _ = lowered.codegen()
    return lowered, str(code.value)
