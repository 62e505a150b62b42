"""What a host launches: kernels one by one, and graphs of them."""

from __future__ import annotations

from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline.core import shipped
from roofline.core.device import Device
from roofline.core.executor import HostLaunches, host_launches
from roofline.core.schema import Compilation, Profile, load

#: The hand-made step: 7 launches of the forward pass and one of the optimizer.
FORWARD, OPTIMIZER = 7.0, 1.0


def on_gpu(mechanism: str, **changes: Any) -> Profile:
    """The hand-made step as if a GPU had run it."""
    made = handmade.profile(device=Device(name="Round GPU", kind="cuda", ceilings={}), **changes)
    return replace(made, profiled=replace(made.profiled, mechanism=mechanism))


def test_a_host_that_launches_each_kernel() -> None:
    alone = HostLaunches(graphs=0.0, replayed=0.0, kernels=FORWARD + OPTIMIZER)
    assert host_launches(on_gpu("eager")) == host_launches(on_gpu("tensorflow-graph")) == alone
    assert host_launches(on_gpu("xla-thunk", options={"command_buffers": "off"})) == alone
    assert alone.all == 8


def test_a_graph_is_one_launch_of_its_kernels() -> None:
    """Two graphs of six kernels in all: of eight kernels two are launched one by one, so there are four launches."""
    recorded = {"graph_launches_per_step": 2.0, "graph_kernels_per_step": 6.0}
    found = host_launches(on_gpu("cuda-graph", conditions=recorded))
    assert found == HostLaunches(graphs=2.0, replayed=6.0, kernels=2.0)
    assert found.all == 4


@pytest.mark.parametrize(
    ("eager", "replayed"),
    [({}, 8), ({"optimizer": (1, 1e-6)}, 7), ({"forward": (2, 1e-6), "optimizer": (1, 1e-6)}, 5)],
)
def test_older_profiles_say_which_ops_ran_outside_of_compiled_graphs(
    eager: dict[str, tuple[int, float]], replayed: int
) -> None:
    """All kernels of a phase of which all ops did, and else one kernel for each op."""
    compiled = Compilation(compiler="torch.compile", graphs=1, eager=eager)
    found = host_launches(on_gpu("cuda-graph", compilation=compiled))
    assert found == HostLaunches(graphs=1.0, replayed=float(replayed), kernels=8.0 - replayed)


def test_where_nobody_knows() -> None:
    """On a CPU nothing is launched; plain steps of XLA may have command buffers that profiled ones had not."""
    assert host_launches(handmade.profile()) is None
    assert host_launches(on_gpu("xla-thunk")) is None
    assert host_launches(on_gpu("cuda-graph")) is None
    assert host_launches(replace(on_gpu("eager"), profiled=None)) is None


def test_the_profiles_of_an_h100() -> None:
    """A compiled BERT of 130 kernels is one launch, beside that of the one op that is not compiled."""
    compiled, replayed = (
        host_launches(load(shipped.paths()[f"h100/bert-torch-compile-{mode}-infer-b1-bf16"]))
        for mode in ("default", "reduce-overhead")
    )
    assert compiled == HostLaunches(graphs=0.0, replayed=0.0, kernels=129.0)
    assert replayed == HostLaunches(graphs=1.0, replayed=129.0, kernels=1.0)
