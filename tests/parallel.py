"""The tests in several processes at once: a file in one of them, the longest files first, one thread each.

A file stays in one process, so that what it records once is recorded once. Tests that time something real are marked
`xdist_group("timing")` and run one after the other.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

#: Of this process and of its children: two processes with a thread per core each would wait for one another.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NPROC": "1",  # XLA's pool
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # in the process itself, not in a pool of processes that load torch too
}
#: XLA makes the same instructions of a program and leaves it to LLVM unoptimised: a third of the time to compile it.
COMPILED_FAST = {"XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"}

#: Files all of whose tests are slow, by the processor time of the file, most first: what is begun last must not be what
#: takes longest. `make quick` does not even import them, since they load a framework or four.
SLOW = (
    "cli/test_backends.py",
    "pytorch/inductor/test_record.py",
    "models/test_tensorflow_models.py",
    "models/test_keras_models.py",
    "models/test_jax_models.py",
    "backends/test_models.py",
    "models/test_keras2_models.py",
    "models/test_torch_models.py",
    "pytorch/torchscript/test_record.py",
    "models/test_generate.py",
    "measuring/test_experiments.py",
    "recording/test_xspace.py",
    "backends/test_verify.py",
    "recording/test_contention.py",
    "tensorflow/test_with_xla.py",
    "renderers/report/test_browser.py",
    "docs/test_commands.py",
    "docs/test_notebook.py",
    "docs/test_site.py",
    "docs/test_action.py",
    "cli/test_stable_diffusion.py",
    "renderers/test_figure_layout.py",
    "models/test_keras_apis.py",
    "api/test_callbacks.py",
    "api/test_public_names.py",
    "api/test_step_profiler.py",
    "published/test_work.py",
    "pytorch/test_shapes.py",
    "models/test_transformer_xl.py",
    "tensorflow/graph/test_graph.py",
    "pytorch/inductor/test_dynamo.py",
    "pytorch/inductor/test_mix_order.py",
    "pytorch/inductor/test_triton_code.py",
    "test_packaging.py",
    "cli/test_children.py",
    "renderers/test_figures.py",
    "cli/test_profile.py",
    "docs/test_architecture_figure.py",
    "benchmarks/test_gpu_traces.py",
    "xla/test_verify.py",
)
#: The longest of the others.
LONG = ("cli/test_bad_input.py", "comparison/causes/test_planted.py")


def set_variables() -> None:
    """Before a framework is loaded; what the developer set stays."""
    for name, value in (ONE_THREAD | COMPILED_FAST).items():
        os.environ.setdefault(name, value)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if "not slow" in config.getoption("markexpr") and collection_path in _paths(SLOW) else None


def mark_and_sort(items: list[pytest.Item]) -> None:
    """The longest files first; the tests of slow ones, and those that read a recorded trace, marked."""
    slow, order = _paths(SLOW), _paths((*SLOW, *LONG))
    if gone := [path.name for path in order if not path.is_file()]:
        raise pytest.UsageError(f"tests/parallel.py names files that are not there: {', '.join(gone)}.")
    for item in items:
        # A recorded trace is read in a second or two; those made by hand have the same events.
        if item.path in slow or "recorded" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
    items.sort(key=lambda item: order.index(item.path) if item.path in order else len(order))


def _paths(names: tuple[str, ...]) -> list[Path]:
    return [Path(__file__).parent / name for name in names]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`: a group in one process, and a file with what in it has no group."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFileOrGroup(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return group if group != nodeid else nodeid.partition("::")[0]

    return ByFileOrGroup(config, log) if config.getvalue("dist") == "loadgroup" else None
