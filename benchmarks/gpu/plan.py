"""What `make gpu` measures: pieces of under ten minutes, each a list of items in the order of their importance.

Expected seconds are what an H100 with 16 cores took, rounded up; of what was not run yet, guesses. Precision is always
said: JAX's default for float32 products is TF32, PyTorch's is not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import published.rows
from item import Item, Setting

ROOT = Path(__file__).resolve().parents[2]
#: Single figures, of publications that have no preset.
PUBLISHED = Path(__file__).with_name("published") / "single.toml"

#: The limit of an item whose time nobody knows well [s].
LONGEST = 290
#: Its profiles are what the reports and predictions call a row.
Pieces = Mapping[str, tuple[Item, ...]]


def profile(
    setting: Setting,
    backend: str,
    mode: str,
    batch: int,
    precision: str,
    *,
    model: str = "bert",
    seq: int = 128,
    more: tuple[str, ...] = (),
    seconds: float = 25,
    limit: float = 150,
) -> Item:
    """One `roofline profile`; the name says all that distinguishes it."""
    name = row(backend, mode, batch, precision, model=model, seq=seq)
    words = ("roofline", "profile", model, "--backend", setting.backend(backend), "--mode", mode)
    words += ("--batch", str(setting.batch(batch)), "--seq", str(setting.seq(seq)))
    words += ("--precision", setting.precision(precision), "--size", setting.size, "--device", setting.device)
    words += (*more, *(("--steps", "3") if setting.rehearsal else ()), "-o", f"{{out}}/{name}.json", "--force")
    return Item(name=name, command=words, seconds=seconds, limit=limit, outputs=(f"{name}.json",))


def row(backend: str, mode: str, batch: int, precision: str, *, model: str = "bert", seq: int = 128) -> str:
    """The name of a row: `bert-torch-compile-default-train-b32-tf32`."""
    words = backend.replace("command_buffers=", "buffers=").replace("mode=", "")
    words = "".join(letter if letter.isalnum() else "-" for letter in words)
    length = "" if seq == 128 else f"-s{seq}"
    return f"{model}-{words}-{mode}-b{batch}{length}-{precision}"


def environment(setting: Setting) -> Item:
    """What the machine is, and the clocks that it keeps; first in every piece."""
    return Item(
        name="environment",
        command=("script", "environment.py", "--device", setting.device),
        seconds=12,
        limit=60,
        stdout="environment.json",
        each=True,
    )


def ceilings(setting: Setting) -> Item:
    """This machine's ceilings, before a profile needs them; kept ones are not measured again."""
    words = ("roofline", "calibrate", "--device", setting.device, "--format", "json")
    return Item(name="ceilings", command=words, seconds=30, limit=150, stdout="ceilings.json", each=True)


def calibration(setting: Setting) -> tuple[Item, ...]:
    """Short twice and full once, beside an independent measurement; each by itself, in a cache of its own."""

    def calibrate(name: str, more: tuple[str, ...], seconds: float, limit: float) -> Item:
        words = ("roofline", "calibrate", "--device", setting.device, "--again", "--format", "json", *more)
        own_cache = {"ROOFLINE_CACHE": f"cache-{name}"}  # in the scratch folder that it runs in
        return Item(name=name, command=words, seconds=seconds, limit=limit, stdout=f"{name}.json", variables=own_cache)

    independent = Item(
        name="independent",
        command=("script", "ceilings.py", "--calibration", "{out}/short-1.json"),
        seconds=40,
        limit=150,
        stdout="independent.json",
        needs=("short-1",),
        machine=("gpu",),
    )
    return (
        calibrate("short-1", (), 30, 150),
        independent,
        calibrate("short-2", (), 30, 150),
        calibrate("full", ("--full",), 100, 300),
    )


def tests(setting: Setting) -> tuple[Item, ...]:
    """The tests that need a GPU, PyTorch's and JAX's in processes of their own: each wants the memory for itself."""
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if _needs_gpu(path)]
    groups: dict[str, list[Path]] = {"torch": [], "jax": []}
    for path in files:
        groups["jax" if _of_jax(path) else "torch"].append(path)
    return tuple(
        Item(
            name=name,
            command=(
                *("pytest", "-c", "{root}/pyproject.toml", "--rootdir", "{root}", "-p", "no:cacheprovider"),
                # Another version of a framework may warn of what the pinned one does not.
                *("-W", "default", "-v", "-m", "gpu", "--timeout", "150", f"--junitxml={{out}}/{name}.xml"),
                *(f"{{root}}/{path.relative_to(ROOT)}" for path in paths),
            ),
            seconds=100,
            limit=280,
            outputs=(f"{name}.xml",),
            # The flags with which the other tests compile fast are not what a GPU is measured with.
            variables={"XLA_FLAGS": "", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        )
        for name, paths in groups.items()
    )


def _needs_gpu(path: Path) -> bool:
    """Marked, or with the marks of `on_gpu`; the tests of this plan speak of both and have none."""
    text = path.read_text(encoding="utf-8")
    return path.parent.name != "benchmarks" and ("mark.gpu" in text or "on_gpu.live" in text)


def _of_jax(path: Path) -> bool:
    place = path.relative_to(ROOT / "tests")
    return "jax" in path.name or place.parts[0] == "xla" or "xspace" in path.name


def torch(setting: Setting) -> tuple[Item, ...]:
    """Eager PyTorch in three precisions, and TorchScript."""
    eager = [
        profile(setting, "torch", mode, batch, precision)
        for precision in ("tf32", "bf16", "fp32")
        for mode in ("infer", "train")
        for batch in (32, 1)
    ]
    scripted = [profile(setting, "torchscript", "infer", batch, "tf32", seconds=30) for batch in (32, 1)]
    return (ceilings(setting), *eager, *scripted)


def compiled(setting: Setting) -> tuple[Item, ...]:
    """torch.compile without and with CUDA graphs; batch 64 has Inductor's mix-order reductions."""

    def one(how: str, mode: str, batch: int, precision: str, seconds: float) -> Item:
        return profile(setting, f"torch-compile:mode={how}", mode, batch, precision, seconds=seconds, limit=280)

    return (
        ceilings(setting),
        one("default", "infer", 32, "bf16", 35),
        one("default", "train", 32, "bf16", 60),
        one("reduce-overhead", "infer", 1, "bf16", 40),
        one("reduce-overhead", "train", 32, "bf16", 75),
        one("default", "train", 64, "bf16", 60),
        one("default", "infer", 32, "tf32", 35),
        one("reduce-overhead", "infer", 32, "bf16", 40),
        one("default", "infer", 1, "bf16", 35),
        one("default", "train", 32, "tf32", 60),
        one("default", "train", 1, "bf16", 60),
        one("reduce-overhead", "train", 1, "bf16", 75),
    )


def xla(setting: Setting) -> tuple[Item, ...]:
    """JAX with and without command buffers, Keras on JAX and, beside it, Keras on PyTorch."""

    def one(backend: str, mode: str, batch: int, precision: str, seconds: float) -> Item:
        return profile(setting, backend, mode, batch, precision, seconds=seconds, limit=280)

    on, off = "jax:command_buffers=on", "jax:command_buffers=off"
    return (
        ceilings(setting),
        one(on, "infer", 32, "tf32", 45),
        one(off, "infer", 32, "tf32", 45),
        one(on, "train", 32, "tf32", 105),
        one("keras-jax", "infer", 32, "tf32", 55),
        one("keras-torch", "infer", 32, "tf32", 35),
        one("keras-jax", "train", 32, "tf32", 120),
        one("keras-torch", "train", 32, "tf32", 40),
        one(off, "train", 32, "tf32", 105),
        one(on, "infer", 1, "tf32", 45),
        one(on, "train", 32, "bf16", 105),
        one(on, "infer", 32, "bf16", 45),
    )


def counters(setting: Setting) -> tuple[Item, ...]:
    """Bytes by hardware counters of one step, beside the profile of the same step, on PyTorch and on JAX.

    JAX runs without command buffers, whose kernels XLA launches as one graph, and with caches as a step leaves them.
    """
    of_torch = [
        item
        for mode, seconds in (("infer", 30.0), ("train", 45.0))
        for item in _counted(profile(setting, "torch", mode, 32, "tf32"), f"ncu-{mode}", ("none", "all"), seconds)
    ]
    of_jax = [
        item
        for mode, seconds, profiling in (("infer", 60.0, 45.0), ("train", 120.0, 105.0))
        for item in _counted(
            profile(setting, "jax:command_buffers=off", mode, 32, "tf32", seconds=profiling, limit=280),
            f"ncu-jax-{mode}",
            ("none",),
            seconds,
        )
    ]
    return (ceilings(setting), *of_torch, *of_jax)


def _counted(profiled: Item, name: str, controls: Sequence[str], seconds: float) -> Iterator[Item]:
    """A profile, and its step under counters with each control of caches; ncu's own tables stay beside the sums."""
    yield profiled
    for control in controls:
        run = f"{name}-{control}"
        words = ("script", "counters.py", "--profile", f"{{out}}/{profiled.name}.json", "--cache-control", control)
        yield Item(
            name=run,
            command=(*words, "--rows", f"{{out}}/{run}.csv", "--table", f"{{out}}/{run}.raw.csv"),
            seconds=seconds,
            limit=290,
            stdout=f"{run}.json",
            outputs=(f"{run}.csv", f"{run}.raw.csv"),
            needs=(profiled.name,),
            machine=("gpu", "ncu"),
        )


def published_rows(setting: Setting) -> tuple[Item, ...]:
    """Rows of presets as the benchmarks ran them, and what others published for the same step of one layer."""
    entries = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["row"]
    single = [
        profile(
            setting,
            one["backend"],
            one["mode"],
            one["batch"],
            one["precision"],
            model=one["model"],
            seq=one["seq"],
            more=(*one.get("arguments", ()), *(() if setting.rehearsal else ("--steps", "30"))),
            seconds=one["seconds"],
            limit=250,
        )
        for one in entries
    ]
    return (ceilings(setting), *(preset_row(setting, row) for row in published.rows.rows()), *single)


def preset_row(setting: Setting, row: published.rows.Row) -> Item:
    """One `roofline profile --preset`: what is not given is what the benchmark asked for."""
    words = ("roofline", *row.words(), "--batch", str(setting.batch(row.batch)), "--device", setting.device)
    if row.seq is not None and (row.largest or setting.rehearsal):
        words += ("--seq", str(setting.seq(row.seq)))
    if setting.rehearsal:
        words += ("--size", setting.size, "--steps", "3", *(("--new-tokens", "3") if row.mode == "generate" else ()))
    elif row.steps is not None:
        words += ("--steps", str(row.steps))
    return Item(
        name=row.name,
        command=(*words, "-o", f"{{out}}/{row.name}.json", "--force"),
        seconds=row.seconds,
        limit=LONGEST,
        outputs=(f"{row.name}.json",),
        machine=tuple(f"module:{name}" for name in row.needs),
    )


def traces(setting: Setting) -> tuple[Item, ...]:
    """Raw traces of a few steps of the tiny BERT, each with the profile that the same run made of it."""
    steps = [
        (backend, mode)
        for mode in ("infer", "train")
        for backend in (
            *("torch", "torch-compile:mode=default", "torch-compile:mode=reduce-overhead"),
            *("jax:command_buffers=on", "jax:command_buffers=off"),
        )
    ]
    items = []
    for backend, mode in steps:
        name = row(backend, mode, 2, "tf32", model="tiny")
        words = (
            "script",
            "keep_trace.py",
            "--backend",
            setting.backend(backend),
            "--mode",
            mode,
            "--device",
            setting.device,
        )
        words += ("--precision", setting.precision("tf32"), "--out", f"{{out}}/{name}")
        limit, seconds = (200, 45) if "compile" in backend else (150, 30)
        outputs = (f"{name}.profile.json.gz", f"{name}.kept.json")
        items.append(Item(name=name, command=words, seconds=seconds, limit=limit, outputs=outputs))
    return tuple(items)


PIECES: Mapping[str, Callable[[Setting], tuple[Item, ...]]] = {
    "calibration": calibration,
    "tests": tests,
    "torch": torch,
    "compile": compiled,
    "xla": xla,
    "counters": counters,
    "traces": traces,
    "published": published_rows,
}


def pieces(setting: Setting) -> Pieces:
    """All pieces, in the order in which they are worth running."""
    return {name: (environment(setting), *make(setting)) for name, make in PIECES.items()}
