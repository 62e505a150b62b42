"""What the steps of all frameworks say about themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from roofline.core.step import Step, Workload
from roofline.models import geometry


def described(
    workload: Workload,
    dims: Mapping[str, Any],
    framework: str,
    *,
    run: Callable[[], object],
    forward: Callable[[], object],
    model: Any,
    parameters: int,
    trainable: int,
    switches: Mapping[str, str],
    batches: Any = None,
) -> Step:
    """The step with how much it works on and the blocks of its scopes.

    framework: whose rows of the model's geometry map scopes to blocks ("torch").
    parameters, trainable: numbers of elements.
    switches: all of them.
    batches: see `Step`.
    """
    batch, seq = dims.get("batch"), dims.get("seq")
    length = dims["new_tokens"] if workload.mode == "generate" else seq
    return Step(
        run=run,
        mode=workload.mode,
        model=model,
        forward=forward,
        parameters=parameters,
        trainable=trainable,
        samples=batch,
        tokens=None if batch is None or length is None else batch * length,
        new_tokens=dims.get("new_tokens"),
        blocks=geometry(workload.model).blocks[framework],
        batch=batch,
        seq=seq,
        switches=dict(switches),
        batches=batches,
    )


def transformer_switches(
    workload: Workload,
    dims: Mapping[str, Any],
    *,
    attention: str,
    mask: str = "all ones",
    kv_cache: str | None = None,
    loss: str = "cross entropy",
) -> dict[str, str]:
    """What a transformer decides, under the names that all frameworks use.

    attention: the form that runs. kv_cache: for a decoder. loss: while training.
    """
    rate = str(dims.get("dropout", "off"))  # some models have none
    if "head_dropout" in dims:
        rate = f"{rate}, {dims['head_dropout']} in the head"
    return {
        "attention": attention,
        "attention mask": mask,
        **({} if kv_cache is None else {"kv cache": kv_cache}),
        **({"gelu": dims["gelu"]} if "gelu" in dims else {}),
        "dropout": rate if workload.mode == "train" else "off",
        **lora_switch(workload, dims),
        **loss_switch(workload, loss),
    }


def generation_switches(*, kv_cache: str, passes: int) -> dict[str, str]:
    """How text is generated. kv_cache: "grows", or "static" where it has all of its length from the beginning.

    passes: of decode; the prompt's pass may give the first token or not.
    """
    return {"kv cache": kv_cache, "sampling": "greedy", "decode passes": str(passes)}


def lora_switch(workload: Workload, dims: Mapping[str, Any]) -> dict[str, str]:
    """What a training step learns instead of the weights, where it does; nothing in inference."""
    if workload.mode != "train" or "lora_rank" not in dims:
        return {}
    return {"lora": f"rank {dims['lora_rank']}, alpha {dims['lora_alpha']}, query and value"}


def loss_switch(workload: Workload, loss: str) -> dict[str, str]:
    """What a training step minimises; nothing in inference."""
    return {"loss": loss} if workload.mode == "train" else {}
