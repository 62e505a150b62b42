"""What the models in PyTorch share: precision, placement, and the steps made of a network and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from roofline.core.step import Step, Workload, scope
from roofline.errors import InputError, MissingError
from roofline.models import dimensions
from roofline.models._precision import Dtype, precision
from roofline.models._step import described
from roofline.models.float32 import torch as float32

Inputs = Mapping[str, Tensor]
Loss = Callable[[Any, Tensor], Tensor]
MakeOptimizer = Callable[..., torch.optim.Optimizer]
Parts = tuple[Callable[[], object], Callable[[], object], dict[str, str]]  # run, forward, switches

#: What `--backend torch:optimizer=...` tells PyTorch's optimizers; not given, they decide.
_OPTIMIZER_FORMS: dict[str | None, dict[str, bool]] = {
    None: {},
    "loop": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def prepare(workload: Workload) -> dict[str, Any]:
    """The dimensions of `workload`, with PyTorch's switches and seed set as it asks.

    Raises InputError for what cannot be run, MissingError where there is no such device.
    """
    dims = dimensions(workload)
    _refuse_foreign_options(workload, dims)
    if workload.device == "cuda" and not torch.cuda.is_available():
        raise MissingError("PyTorch finds no CUDA device here: use --device cpu.")
    set_precision(workload)
    torch.manual_seed(0)
    return dims


def _refuse_foreign_options(workload: Workload, dims: Mapping[str, Any]) -> None:
    """Raises InputError for an option that means nothing for the model or the mode."""
    if "attention" in workload.options and "heads" not in dims:
        raise InputError(f"{workload.model} has no attention: leave attention= out.")
    if "optimizer" in workload.options and (workload.mode != "train" or not workload.optimizer):
        raise InputError("There is no optimizer in this step: leave optimizer= out.")


def transformers() -> ModuleType:
    """The transformers library. Raises MissingError where it is not installed."""
    try:
        import transformers as library
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise MissingError(
            "This model is built from the transformers library, which is not installed: "
            "run `pip install 'roofline[torch]'`."
        ) from error
    return library


# Precision


def set_precision(workload: Workload) -> None:
    """Sets the float32 switches of the process for `--precision fp32|tf32`; the others touch none.

    Raises InputError for a precision that is unknown or that the device does not have.
    """
    if (arithmetic := precision(workload).float32) is not None:
        float32.set_arithmetic(arithmetic)


@contextmanager
def user_state_kept() -> Iterator[None]:
    """Restores, on leaving, what building and running a step changes in the process.

    That is the float32 switches and the random state of the CPU and of the current GPU.
    """
    gpus = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with float32.kept(), torch.random.fork_rng(gpus):
        yield


def autocast_dtype(workload: Workload) -> torch.dtype | None:
    """The dtype that autocast gives contractions under `--precision mixed-*`; None without autocast."""
    return _dtype(precision(workload).mixed)


def _cast_dtype(workload: Workload) -> torch.dtype | None:
    """The dtype that weights and inputs are cast to under `--precision bf16|fp16`; None where they stay as they are."""
    return _dtype(precision(workload).cast)


def _dtype(name: Dtype | None) -> torch.dtype | None:
    return None if name is None else getattr(torch, name)


# Steps


def step(
    workload: Workload,
    dims: Mapping[str, Any],
    model: nn.Module,
    inputs: Inputs,
    *,
    targets: Tensor | Sequence[Tensor],
    loss: Loss | None = None,
    optimizer: MakeOptimizer | None = torch.optim.AdamW,
    differentiable: Sequence[str] = (),
    switches: Mapping[str, str],
    batches: Inputs | None = None,
) -> Step:
    """The step that `workload` asks for, of `model` called as `model(**inputs)`.

    inputs, targets: float32 or integer, on the host; placed and cast here.
    targets: the loss's second argument; without a loss, the gradient(s) of the output(s).
    loss: (output, targets) -> scalar.
    optimizer: made of the parameters that are not frozen and the form (foreach, fused) that was asked for, else with
        the framework's defaults unless the model says otherwise; None: the model has nothing to learn.
    differentiable: names of inputs whose gradients are computed too.
    switches: what the model decided; for training, without optimizer, which is added here.
    batches: what a Trainer of the transformers library gives the model, labels included; None for other models.
    """
    _place(workload, model)
    if workload.mode == "train":
        parts = training(workload, model, inputs, targets, loss, optimizer, differentiable)
    else:
        parts = inference(workload, model, inputs, model)
    return _described(workload, dims, model, parts, switches, batches)


def own_step(
    workload: Workload,
    dims: Mapping[str, Any],
    model: nn.Module,
    inputs: Inputs,
    called: Callable[..., object],
    *,
    switches: Mapping[str, str],
) -> Step:
    """A step without gradients that calls the model in its own way: `called(**inputs)`; the rest is as in `step`."""
    _place(workload, model)
    return _described(workload, dims, model, inference(workload, model, inputs, called), switches)


def _described(
    workload: Workload,
    dims: Mapping[str, Any],
    model: nn.Module,
    parts: Parts,
    switches: Mapping[str, str],
    batches: Inputs | None = None,
) -> Step:
    run, forward, decided = parts
    parameters = list(model.parameters())
    return described(
        workload,
        dims,
        "torch",
        run=run,
        forward=forward,
        model=model,
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        switches={**switches, "input": workload.input, **float32.switches(), **decided},
        batches=batches,
    )


def inference(workload: Workload, model: nn.Module, inputs: Inputs, called: Callable[..., object]) -> Parts:
    """One forward pass, without gradients: `called(**inputs)`, which is the model itself or calls it.

    Under `no_grad` and not `inference_mode`: it is what the Hugging Face documentation, `generate` and the
    benchmarks that we reproduce use.
    """
    model.eval()
    arrive = _arrival(workload, inputs)

    def forward() -> object:
        with torch.no_grad(), _autocast(workload):
            return called(**arrive())

    return forward, forward, {}


def training(
    workload: Workload,
    model: nn.Module,
    inputs: Inputs,
    targets: Tensor | Sequence[Tensor],
    loss: Loss | None,
    make_optimizer: MakeOptimizer | None,
    differentiable: Sequence[str] = (),
) -> Parts:
    """One training step: gradients cleared, forward, loss, backward, optimizer."""
    model.train()
    arrive = _arrival(workload, inputs, differentiable)
    optimizer = None
    if make_optimizer and workload.optimizer:
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = make_optimizer(learning, **_OPTIMIZER_FORMS[workload.options.get("optimizer")])
    elif "optimizer" in workload.options:
        raise InputError(f"{workload.model} has nothing to learn: leave optimizer= out.")
    scaled = precision(workload).scales_loss
    scaler = torch.amp.GradScaler(workload.device, enabled=scaled)
    if loss is None:
        given = [targets] if isinstance(targets, Tensor) else targets
        gradients = [_put(workload, gradient) for gradient in given]
    else:
        arrive_targets = _arrival(workload, {"targets": targets})

    def forward() -> object:
        with torch.no_grad(), _autocast(workload):
            return model(**arrive())

    clear = model.zero_grad if optimizer is None else optimizer.zero_grad  # both drop the gradients

    def run() -> object:
        clear(set_to_none=True)
        arrived = arrive()
        labels = None if loss is None else arrive_targets()["targets"]
        with _autocast(workload):
            output = model(**arrived)
            if loss is not None:
                with scope("loss"):
                    value = loss(output, labels)
        if loss is None:
            outputs = [output] if isinstance(output, Tensor) else output
            torch.autograd.backward(outputs, scaler.scale(gradients) if scaled else gradients)
        else:
            scaler.scale(value).backward()
        if optimizer is not None:
            with scope("optimizer"):
                scaler.step(optimizer)
                scaler.update()
        return output if loss is None else value

    decided = {
        **_optimizer_switches(optimizer, workload),
        "gradient scaler": "on" if scaled else "off",
    }
    return run, forward, decided


def _optimizer_switches(optimizer: torch.optim.Optimizer | None, workload: Workload) -> dict[str, str]:
    """The optimizer and its arguments as PyTorch resolves them."""
    if optimizer is None:
        return {"optimizer": "none"}
    defaults = optimizer.defaults
    # Not given, PyTorch takes foreach where all parameters lie on a GPU, else a loop; fused only when asked.
    foreach = defaults["foreach"] if defaults["foreach"] is not None else workload.device == "cuda"
    return {
        "optimizer": type(optimizer).__name__,
        **{
            f"optimizer {name}": str(defaults[name])
            for name in ("lr", "betas", "eps", "weight_decay", "amsgrad")
            if name in defaults
        },
        "optimizer foreach": str(bool(foreach and not defaults["fused"])),
        "optimizer fused": str(bool(defaults["fused"])),
    }


# Placement


def _place(workload: Workload, model: nn.Module) -> None:
    """Moves `model` to the device in the dtype of the pure casts."""
    if has_data(torch.empty(0)):
        model.to(device=workload.device, dtype=_cast_dtype(workload))
    else:
        _cast_in_place(model, _cast_dtype(workload))


def has_data(tensor: Tensor) -> bool:
    """Whether a tensor has numbers, and not a shape alone (`--count-only`)."""
    return not isinstance(tensor, FakeTensor)


def _cast_in_place(model: nn.Module, dtype: torch.dtype | None) -> None:
    """What `model.to(dtype=dtype)` does, which a model without data refuses; a shared parameter stays shared."""
    cast: dict[Tensor, Tensor] = {}
    for module in model.modules() if dtype is not None else ():
        for held in (module._parameters, module._buffers):
            for name, value in held.items():
                if value is None or not value.is_floating_point():
                    continue
                if value not in cast:
                    changed = value.detach().to(dtype)
                    learns = isinstance(value, nn.Parameter)
                    cast[value] = nn.Parameter(changed, value.requires_grad) if learns else changed
                held[name] = cast[value]


def _put(workload: Workload, value: Tensor) -> Tensor:
    """`value` on the device, its floating-point numbers in the dtype of the pure casts."""
    return _cast(workload, value).to(workload.device)


def _cast(workload: Workload, value: Tensor) -> Tensor:
    dtype = _cast_dtype(workload)
    return value.to(dtype) if dtype is not None and value.is_floating_point() else value


def _arrival(workload: Workload, inputs: Inputs, differentiable: Sequence[str] = ()) -> Callable[[], Inputs]:
    """What brings `inputs` to the model in every step: a transfer with `--input host` on a GPU, else nothing."""
    if workload.input == "host" and workload.device != "cpu":
        # Pinned, so that the copy can run beside the host's next launches, as a DataLoader's would.
        waiting = {name: _cast(workload, value).pin_memory() for name, value in inputs.items()}

        def transfer() -> Inputs:
            with scope("input"):
                arrived = {name: value.to(workload.device, non_blocking=True) for name, value in waiting.items()}
            for name in differentiable:
                arrived[name].requires_grad_()
            return arrived

        return transfer

    present = {name: _put(workload, value) for name, value in inputs.items()}
    for name in differentiable:
        present[name].requires_grad_()

    def reuse() -> Inputs:
        for name in differentiable:
            present[name].grad = None
        return present

    return reuse


def _autocast(workload: Workload) -> AbstractContextManager[object]:
    """The autocast region of `--precision mixed-*`, entered in every step as users do; else nothing."""
    dtype = autocast_dtype(workload)
    return nullcontext() if dtype is None else torch.autocast(workload.device, dtype=dtype)
