"""Steps that generate text: the same tokens in PyTorch and JAX, phases, and FLOPs against closed forms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
jax = pytest.importorskip("jax")
pytest.importorskip("flax")

from roofline import plugins
from roofline.core.step import Step, Workload
from roofline.errors import InputError
from roofline.models import dimensions
from roofline.models.torch._step import user_state_kept
from roofline.recording.backend import load
from roofline.recording.recording import Plan, Recording
from tests.models import weights_jax

SEQ, NEW, BATCH = 8, 5, 2
MODELS = ("gpt2", "gemma", "mistral")
#: Of Gemma and Mistral, which are written alike, `make test` takes Gemma.
every = pytest.mark.parametrize(
    ("model", "framework"),
    [
        pytest.param(model, framework, marks=pytest.mark.thorough if model == "mistral" else ())
        for model in MODELS
        for framework in ("torch", "jax")
    ],
)


def workload(model: str, layers: int) -> Workload:
    return Workload(model=model, mode="generate", size="tiny", batch=BATCH, seq=SEQ, new_tokens=NEW, layers=layers)


def built(model: str, framework: str, layers: int) -> Step:
    with user_state_kept():
        module = plugins.load(f"roofline.models.{framework}", model, "model", sorted_by_kind=True)
        step: Step = module.build(workload(model, layers))
    return step


@cache
def counted(model: str, framework: str) -> Recording:
    """The work of one step of one layer."""
    plan = Plan(device="cpu", threads=1, steps=1, count_only=True)
    return load(framework).recorder.record(built(model, framework, 1), plan, lambda text: None)


@pytest.mark.parametrize("model", MODELS)
def test_both_generate_the_same_tokens(model: str) -> None:
    theirs, ours = (built(model, framework, 2) for framework in ("torch", "jax"))
    with torch.no_grad():  # larger weights: the tokens are others in each place
        for parameter in theirs.model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    weights_jax.set_weights(ours, {name: value.numpy() for name, value in theirs.model.state_dict().items()})
    # By the older of XLA's ways to join instructions: as right, in half the time.
    lowered = ours.model.function.lower(*ours.model.arguments())
    ours.model.function = lowered.compile({"xla_cpu_use_fusion_emitters": False})
    prompt = np.asarray(ours.model.inputs["input_ids"])
    inputs = {"input_ids": torch.tensor(prompt.astype(np.int64)), "attention_mask": torch.ones((BATCH, SEQ)).long()}
    expected = theirs.model.generate(
        **inputs, max_new_tokens=NEW, do_sample=False, eos_token_id=None, pad_token_id=0, use_cache=True
    )
    assert len(np.unique(expected[:, SEQ:])) > BATCH
    assert np.asarray(ours.run()).tolist() == expected[:, SEQ:].tolist()
    assert theirs.run().shape == (BATCH, SEQ + NEW)


def products(recording: Recording, phase: str) -> float:
    """Model FLOPs of the products of a phase."""
    costs = (
        recording.signatures[op.signature].cost.model_flops or 0.0
        for op in recording.ops
        if recording.phases[op.phase] == phase
    )
    return sum(costs)


class Work:
    """FLOPs of a model: 2 for each multiply-add, of all layers, for each of BATCH samples."""

    def __init__(self, model: str) -> None:
        d = dimensions(workload(model, 1))
        self.every, hidden = d["layers"] * 2 * BATCH, d["hidden"]
        # The heads of queries are as wide as the hidden states in GPT-2; keys and values may have fewer of them.
        self.queries = d["heads"] * d["head"] if "head" in d else hidden
        keys = d["kv_heads"] * d["head"] if "head" in d else hidden
        self.projections = self.every * (2 * hidden * self.queries + 2 * hidden * keys)
        self.ffn = self.every * (3 if "kv_heads" in d else 2) * hidden * d["ffn"]  # a gate is one product more
        self.head = 2 * BATCH * hidden * d["vocabulary"]

    def attention(self, queries: int, keys: int) -> int:
        """QK^T and PV."""
        return self.every * 2 * queries * keys * self.queries

    def rest(self, tokens: int) -> int:
        """Of each of the tokens projections and FFN, and the head of the last one."""
        return tokens * (self.projections + self.ffn) + self.head


@every
def test_prefill_reads_the_prompt_and_decode_a_token_at_a_time(model: str, framework: str) -> None:
    recording, work = counted(model, framework), Work(model)
    assert {recording.phases[op.phase] for op in recording.ops} == {"prefill", "decode"}
    assert products(recording, "prefill") == work.rest(SEQ) + work.attention(SEQ, SEQ)
    # A cache that grows has the tokens so far, one with all of its room from the beginning all of them in every pass.
    keys = {"torch": range(SEQ + 1, SEQ + NEW), "jax": [SEQ + NEW] * (NEW - 1)}[framework]
    assert products(recording, "decode") == (NEW - 1) * work.rest(1) + sum(work.attention(1, each) for each in keys)


@every
def test_every_op_is_known_and_in_a_block_of_the_model(model: str, framework: str) -> None:
    recording, work = counted(model, framework), Work(model)
    assert recording.notes == ()
    assert "other" not in {recording.blocks[op.block] for op in recording.ops}
    scopes = {recording.scopes[op.scope] for op in recording.ops}
    assert not any("prefill" in scope or "decode" in scope for scope in scopes)
    by_block: dict[str, float] = {}
    for op in recording.ops:
        cost = recording.signatures[op.signature].cost
        block = recording.blocks[op.block]
        by_block[block] = by_block.get(block, 0.0) + (cost.flops or 0.0)
    tokens = SEQ + NEW - 1
    assert by_block["FFN"] == tokens * work.ffn
    assert by_block["attention projections"] == tokens * work.projections
    assert by_block["head"] == NEW * work.head


@every
def test_a_step_says_what_it_generates(model: str, framework: str) -> None:
    recording = counted(model, framework)
    assert (recording.samples, recording.tokens, recording.new_tokens, recording.seq) == (BATCH, BATCH * NEW, NEW, SEQ)
    assert recording.switches["decode passes"] == str(NEW - 1)
    assert recording.switches["sampling"] == "greedy"
    assert recording.switches["kv cache"] == {"torch": "grows", "jax": "static"}[framework]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"seq": 1020}, "gpt2 has positions for 1024 tokens: use --seq 1019 or less before 5 new ones, not 1020."),
        ({"new_tokens": 1024}, "gpt2 has positions for 1024 tokens: use fewer --new-tokens than 1024."),
        ({"new_tokens": 0}, "--new-tokens 0 is not possible: give at least 1."),
        ({"model": "bert"}, "bert has no mode 'generate' yet: use --mode with one of infer, train."),
    ],
)
def test_what_cannot_be_generated(asked: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"model": "gpt2", "mode": "generate", "size": "tiny", "seq": 8, "new_tokens": 5}
    with pytest.raises(InputError) as raised:
        dimensions(Workload(**{**usual, **asked}))
    assert str(raised.value) == message
