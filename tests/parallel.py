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
    "running/test_torch_steps.py",
    "running/test_run.py",
    "running/test_program.py",
    "benchmarks/test_forms.py",
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
LONG = ("cli/test_bad_input.py", "comparison/account/test_planted.py")

#: Beginnings of tests that `make test` leaves to `make test-all`, beside those that are marked where they stand: each
#: takes a second or more, and the same code runs in a test that stays. Models are left out that others stand for: of
#: the transformers BERT, of images LeNet5.
LEFT_OUT = (
    "benchmarks/test_forms.py::",
    "cli/test_stable_diffusion.py::",
    "models/test_transformer_xl.py::",
    "backends/test_without_data.py::test_the_same_ops_of_tiny_models[keras-",
    "backends/test_without_data.py::test_the_same_ops_of_tiny_models[torch]",
    *(
        f"models/test_jax_models.py::test_{name}"
        for name in (
            "without_optimizer_the_parameters_stay_and_gradients_come_out[lenet5]",
            "inference[dlrm]",
            "inference[gemma]",
            "inference[lenet5]",
            "training_moves_the_parameters_and_takes_over_their_memory[gemma]",
            "training_moves_the_parameters_and_takes_over_their_memory[dlrm]",
            "training_moves_the_parameters_and_takes_over_their_memory[lenet5]",
            "ops_are_in_the_block_of_their_meaning[distilbert]",
            "pure_casts_reach_weights_and_inputs[fp16]",
            "published_sizes[gemma",
            "published_sizes[gpt2",
            "switches_have_the_names_that_the_models_in_pytorch_give_them[segment-anything",
            "masked_tokens_are_left_out_as_in_pytorch[gpt2]",
            "one_training_step_equals_pytorchs[dlrm]",
            "the_users_precision_comes_back[None]",
            "frozen_weights_stay_where_they_are[mistral]",
            "mixed_precision_computes_low_and_keeps_the_weights[bert]",
        )
    ),
    *(
        f"models/test_tensorflow_models.py::test_{name}"
        for name in (
            "one_training_step_as_in_torch[distilbert",
            "one_training_step_as_in_torch[gpt2",
            "nodes_are_in_the_block_of_their_meaning[distilbert",
            "nodes_are_in_the_block_of_their_meaning[gpt2",
            "published_sizes[gpt2",
            "training_in_bf16_moves_all_but_the_norms",
        )
    ),
    *(
        f"backends/test_models.py::test_every_op_is_joined_counted_and_placed[{case}]"
        for case in (
            "bert-layer-train",
            "gpt2-train",
            "gpt2-infer",
            "lenet5-train",
            "matmul-train",
            "mlp-train",
        )
    ),
    *(
        f"backends/test_models.py::test_hardly_an_op_is_outside_of_every_layer[{case}]"
        for case in (
            "bert-layer-train",
            "gpt2-train",
            "gpt2-infer",
            "matmul-train",
            "mlp-train",
        )
    ),
    *(
        f"backends/test_models.py::test_every_layer_has_all_its_parts_in_both_directions[{name}"
        for name in (
            "roberta",
            "ctrl",
            "openai-gpt",
            "distilbert",
            "mistral",
        )
    ),
    *(
        f"backends/test_models.py::test_attention_is_fused_where_the_library_can[{name}"
        for name in (
            "transformer-xl",
            "mistral",
            "xlm",
            "ctrl",
            "distilbert",
            "openai-gpt",
            "roberta",
        )
    ),
    *(
        f"backends/test_verify.py::test_no_count_differs[{name}"
        for name in (
            "bert-layer",
            "segment-anything",
            "transformer-xl",
            "xlnet",
            "xlm",
            "ctrl",
            "distilbert",
            "openai-gpt",
        )
    ),
    *(
        f"models/test_generate.py::test_{name}"
        for name in (
            "prefill_reads_the_prompt_and_decode_a_token_at_a_time[gpt2",
            "prefill_reads_the_prompt_and_decode_a_token_at_a_time[mistral",
            "both_generate_the_same_tokens[mistral",
        )
    ),
    *(
        f"models/test_torch_models.py::test_{name}[stable-diffusion"
        for name in (
            "training_moves_the_parameters",
            "images_come_out_the_same_whatever_computes_their_attention",
        )
    ),
    *(
        f"pytorch/torchscript/test_record.py::test_{name}"
        for name in (
            "from_the_command_line",
            "a_traced_model_is_counted_as_the_eager_one[gpt2",
            "a_traced_model_is_counted_as_the_eager_one[mlp",
            "a_traced_model_is_counted_as_the_eager_one[bert-train",
            "a_traced_model_is_counted_as_the_eager_one[lenet5-train",
        )
    ),
    "models/test_keras_models.py::test_the_sizes_are_the_published_ones",
    "models/test_jax_models.py::test_the_same_state_gives_the_same_steps_and_dropout_differs_between_them",
    "cli/test_backends.py::test_a_training_step",
    "cli/test_children.py::test_jax_in_this_process[1_1]",
    "benchmarks/test_truth.py::test_a_third_of_them_on_another_backend",
    "measuring/test_turns.py::test_real_steps_take_turns",
    "cli/test_children.py::test_a_tf_function",
    "cli/test_children.py::test_jax_in_this_process[2]",
    "measuring/test_experiments.py::test_a_file_of_the_user_s_is_run_where_the_caller_asked_for_it",
    "api/test_callbacks.py::test_a_trainer_of_hugging_face",
    "benchmarks/test_ranges.py",
    "content/test_names.py::test_no_two_kernels_of_real_traces_are_alike",
    *(
        f"renderers/test_figure_layout.py::test_texts_stand_clear[{kind}]"
        for kind in ("breakdown", "timeline", "devices", "waterfall")
    ),
    "xla/test_carriers.py::test_each_product_of_an_h100_is_asked_for_what_it_executes",
    "docs/test_site.py::test_axe_finds_no_serious_fault",
)


def set_variables() -> None:
    """Before a framework is loaded; what the developer set stays."""
    for name, value in (ONE_THREAD | COMPILED_FAST).items():
        os.environ.setdefault(name, value)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if "not slow" in config.getoption("markexpr") and collection_path in _paths(SLOW) else None


def mark_and_sort(items: list[pytest.Item]) -> None:
    """The longest files first; the tests of slow ones, those that read a recorded trace, and those left out, marked."""
    slow, order, here = _paths(SLOW), _paths((*SLOW, *LONG)), Path(__file__).parent
    named = (*order, *_paths(tuple({name.partition("::")[0] for name in LEFT_OUT})))
    if gone := [path.name for path in named if not path.is_file()]:
        raise pytest.UsageError(f"tests/parallel.py names files that are not there: {', '.join(gone)}.")
    for item in items:
        # A recorded trace is read in a second or two; those made by hand have the same events.
        if item.path in slow or "recorded" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if f"{item.path.relative_to(here)}::{item.name}".startswith(LEFT_OUT):
            item.add_marker("thorough")
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
