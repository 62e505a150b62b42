"""Measuring children of every framework: other interpreters, files of the user's own, and how they end badly."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

import roofline as package
from roofline import plugins
from roofline.core.schema import load
from roofline.devices import cpu
from roofline.errors import MeasurementError, MissingError
from tests.cli.conftest import call

Run = Callable[..., Any]
OUT = ("-o", "out.json")
QUICK = ("--device", "cpu", "--threads", "1", "--steps", "3")
COUNT = ("profile", "mlp", "--size", "tiny", "--batch", "4", "--device", "cpu", "--threads", "1", "--count-only")


def needs(*modules: str) -> pytest.MarkDecorator:
    absent = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


def said(ended: Any, code: int, sentence: str) -> None:
    """A command failed with one sentence, which is all it wrote on standard error."""
    assert ended.code == code, ended.err
    assert ended.err.startswith("roofline: "), ended.err
    assert ended.err.count("\n") == 1
    assert sentence in ended.err
    assert ended.out == ""


def last(ended: Any, code: int, sentence: str) -> None:
    """A command failed while it was measuring, so that its progress stands before the sentence."""
    assert ended.code == code, ended.err
    assert ended.err.splitlines()[-1] == f"roofline: {sentence}"
    assert "Traceback" not in ended.err


def written(folder: Path) -> list[str]:
    """Files that a command left behind."""
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".py", ".sh") and path.is_file())


def shown(run: Run, *more: str) -> dict[str, Any]:
    ended = run("show", "out.json", "--format", "json", *more)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


@pytest.fixture
def measured(tmp_path: Path, variables: dict[str, str]) -> Run:
    """Runs a command in this process, whose child is a process with `more` in its environment."""
    return lambda *words, more: call(words, tmp_path, {**variables, **more})


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes an executable file."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return write


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, str]]:
    """An environment in which every Python begins with some code of the test's."""

    def write(code: str, name: str = "sitecustomize.py") -> dict[str, str]:
        folder = tmp_path_factory.mktemp("site")
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code)
        return {"PYTHONPATH": str(folder)}

    return write


# ------------------------------------------------------------------------------------------------ another interpreter


@pytest.mark.slow
@pytest.mark.thorough
@needs("torch")
def test_another_interpreter_measures(process: Run, tmp_path: Path, script: Any) -> None:
    """A script stands for it: it leaves a mark and goes on as a Python that says it is another version."""
    other = script(
        "python.sh",
        f'#!/bin/sh\ntouch "{tmp_path}/was-here"\nPYTHONPATH="{tmp_path}/site" exec "{sys.executable}" "$@"\n',
    )
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import sys\nsys.version = '3.11.99' + sys.version[sys.version.index(' '):]\n"
    )
    ended = process(*COUNT, "--backend", "torch", "--python", other, *OUT)
    assert ended.code == 0, ended.err
    assert (tmp_path / "was-here").exists()
    theirs = package.load(tmp_path / "out.json")
    assert theirs.versions["python"] == "3.11.99"

    assert process(*COUNT, "--backend", "torch", "--python", sys.executable, *OUT, "--force").code == 0
    ours = package.load(tmp_path / "out.json")
    assert ours.versions["python"] == sys.version.partition(" ")[0]
    assert (ours.signatures, ours.parameters) == (theirs.signatures, theirs.parameters)
    # Which memory is given out again, and so which buffer is which one before, is the allocator's of each process.
    assert [replace(op, reads=(), writes=()) for op in ours.ops] == [
        replace(op, reads=(), writes=()) for op in theirs.ops
    ]


def test_an_interpreter_that_cannot_be_used(roofline: Run, tmp_path: Path, script: Any) -> None:
    words = (*COUNT, "--backend", "jax", *OUT, "--python")
    (tmp_path / "notes.txt").write_text("no program")
    for path in ("/no/such/python", str(tmp_path), "notes.txt"):
        said(roofline(*words, path), 2, f"There is no Python at {path}: give the path of an interpreter with --python.")
    for name, text in {
        "nothing.sh": "#!/bin/sh\n",
        "talks.sh": "#!/bin/sh\necho roofline 1.2.3\n",
        "fails.sh": "#!/bin/sh\nexit 2\n",
        "noise.sh": "#!/bin/sh\nprintf '\\377\\376'\n",
        "no-program": "\0\1\2",
    }.items():
        path = script(name, text)
        said(roofline(*words, path), 2, f"{path} does not run as Python 3.11 or later: give the path of an interpreter")
    other = script("other.sh", "#!/bin/sh\necho a greeting; echo roofline: 0.0.1\n")
    sentence = f"{other} has roofline 0.0.1 and this is {package.__version__}: install the same version in both."
    said(roofline(*words, other), 2, sentence)
    said(roofline("verify", "mlp", "--backend", "jax", "--device", "cpu", "--python", other), 2, sentence)
    assert written(tmp_path) == ["no-program", "notes.txt"]


@pytest.mark.slow
def test_an_interpreter_without_roofline(roofline: Run, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=300)
    python = str(tmp_path / "venv" / "bin" / "python")
    sentence = f"{python} cannot import roofline: run `{python} -m pip install roofline` first."
    said(roofline(*COUNT, "--backend", "jax", "--python", python, *OUT), 3, sentence)
    assert written(tmp_path) == []


@needs("torch")
def test_an_interpreter_is_looked_at_before_anything_is_measured(
    roofline: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roofline.devices import calibration

    def measure(*_: object, **__: object) -> None:
        raise AssertionError("ceilings were asked for")

    monkeypatch.setattr(calibration, "calibrate", measure)
    words = ("profile", "mlp", "--size", "tiny", "--backend", "jax", "--device", "cpu", "--python", "/no/such/python")
    said(roofline(*words), 2, "There is no Python at /no/such/python")


# ------------------------------------------------------------------------------------------------ a user's own file

JAX_FILE = """
import os, signal, threading
import jax, jax.numpy as jnp
import roofline

def make_step(batch):
    w = jnp.ones((8, 16))
    x = jnp.ones((batch, 8))

    @jax.jit
    def step(x):
        with roofline.scope("product"):
            y = x @ w
        with roofline.scope("rest"):
            return jnp.tanh(y)

    return lambda: step(x)

def make_whole():
    w = jnp.ones((8, 4))
    step = jax.jit(lambda x: (x @ w).sum())
    x = jnp.ones((2, 8))
    return roofline.Step(run=lambda: step(x), parameters=32, samples=2, batch=2, blocks=(("*", "my block"),))

def too_much():
    return lambda: jnp.zeros((1 << 42,)) + 1

def crashes():
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)

def killed():
    return lambda: os.kill(os.getpid(), signal.SIGKILL)

def hangs():
    return lambda: threading.Event().wait()

def leaves():
    return lambda: (print("I am leaving"), os._exit(7))
"""

TENSORFLOW_FILE = """
import tensorflow as tf

def make_step(batch):
    w, x = tf.ones((8, 16)), tf.Variable(tf.ones((batch, 8)))

    @tf.function
    def step():
        return tf.tanh(x @ w)

    return step

def too_much():
    return tf.function(lambda: tf.sort(tf.random.uniform([1 << 42])))
"""

FORKING_FILE = """
import os, subprocess, threading, time
import jax, jax.numpy as jnp

def leaves():
    threading.Thread(target=time.sleep, args=(600,)).start()
    copy = os.fork()
    if not copy:
        time.sleep(600)
    command = "setsid sleep 600 > /dev/null 2>&1 & echo $!"
    daemon = subprocess.run(["sh", "-c", command], capture_output=True, check=True)
    open("processes", "w").write(f"{copy} {int(daemon.stdout)}")
    x = jnp.ones((8, 8))
    step = jax.jit(lambda x: x @ x)
    return lambda: step(x)
"""

KERAS_FILE = """
import keras, numpy

def make_step(batch, mode):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(16, name="wide"), keras.layers.Dense(4, name="out")]
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile(optimizer="sgd", loss="mse")
    x, y = numpy.ones((batch, 8), "float32"), numpy.ones((batch, 4), "float32")
    return lambda: model.train_on_batch(x, y)
"""


@pytest.fixture
def mine(tmp_path: Path) -> None:
    (tmp_path / "mine_jax.py").write_text(JAX_FILE)
    (tmp_path / "mine_tensorflow.py").write_text(TENSORFLOW_FILE)
    (tmp_path / "mine_keras.py").write_text(KERAS_FILE)
    (tmp_path / "mine_forking.py").write_text(FORKING_FILE)


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@needs("jax")
def test_a_jitted_function(measured: Run, roofline: Run, brief: dict[str, str]) -> None:
    ended = measured("profile", "mine_jax.py:make_step", "--backend", "jax", "--batch", "5", *QUICK, *OUT, more=brief)
    assert ended.code == 0, ended.err
    document = shown(roofline)
    assert (document["model"], document["batch"], document["samples"]) == ("mine_jax:make_step", 5, 5)
    assert document["parameters"] is None
    # 2 * 5 * 8 * 16 in the product; a hyperbolic tangent of each of its 5 * 16 results
    assert {name: row["flops"] for name, row in document["blocks"].items() if row["flops"]} == {"product": 1280}
    assert document["phases"]["forward"]["model_flops"] == 1280
    assert document["classes"]["pointwise"]["transcendentals"] == {"tanh": 80}
    assert "optimised-only" not in document["flags"]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.usefixtures("mine")
@needs("jax")
def test_a_step_of_a_jitted_function(measured: Run, roofline: Run, brief: dict[str, str]) -> None:
    ended = measured("profile", "mine_jax.py:make_whole", "--backend", "jax", *QUICK, *OUT, more=brief)
    assert ended.code == 0, ended.err
    document = shown(roofline)
    assert (document["batch"], document["samples"], document["parameters"]) == (2, 2, 32)
    assert "my block" in document["blocks"]
    # 2 * 2 * 8 * 4, however XLA wrote so small a product
    assert sum(row["model_flops"] or 0 for row in document["blocks"].values()) == 128


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@needs("tensorflow")
def test_a_tf_function(process: Run, roofline: Run, brief: dict[str, str]) -> None:
    words = ("profile", "mine_tensorflow.py:make_step", "--backend", "tensorflow", "--batch", "5")
    ended = process(*words, *QUICK, *OUT, more=brief)
    assert ended.code == 0, ended.err
    document = shown(roofline)
    assert document["classes"]["contraction"]["model_flops"] == 2 * 5 * 8 * 16
    assert document["classes"]["pointwise"]["transcendentals"] == {"tanh": 80}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.usefixtures("mine")
@needs("keras", "jax")
def test_a_compiled_model(process: Run, roofline: Run, brief: dict[str, str]) -> None:
    words = ("profile", "mine_keras.py:make_step", "--backend", "keras-jax", "--mode", "train", "--batch", "5")
    ended = process(*words, *QUICK, *OUT, more=brief)
    assert ended.code == 0, ended.err
    document = shown(roofline)
    asked = {name: row["model_flops"] for name, row in document["phases"].items() if row["model_flops"]}
    # Forward 2 * 5 * (8 * 16 + 16 * 4). Backward both weights' gradients, and the input's of the second layer alone.
    assert asked == {"forward": 2 * 5 * (128 + 64), "backward": 2 * 5 * (128 + 64 + 64)}
    assert {"wide", "out"} <= set(document["blocks"])


@pytest.mark.slow
@needs("jax", "torch")
@pytest.mark.parametrize("threads", [1, cpu.detect().cores])
def test_jax_in_this_process(cache: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    import jax
    import jax.numpy as jnp

    from roofline.recording import record

    monkeypatch.setenv("ROOFLINE_CACHE", str(cache))
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})
    monkeypatch.setenv("NPROC", str(threads))
    x, w = jnp.ones((4, 8)), jnp.ones((8, 16))
    step = jax.jit(lambda x: jnp.tanh(x @ w))
    profile = package.profile(lambda: step(x), backend="jax", steps=3, device="cpu", name="mine")

    # Nothing told XLA, when it was loaded, to keep programs as they were before it optimised them.
    assert {"in_process", "optimised-only"} <= set(profile.flags)
    assert (profile.model, profile.backend, profile.mode) == ("mine", "jax", "infer")
    assert profile.environment["threads"] == str(threads)
    analysis = package.analyze(profile)
    assert analysis.wall == pytest.approx(analysis.busy + analysis.gap)
    assert sum(total.flops or 0 for total in analysis.by("class").values()) == 2 * 4 * 8 * 16

    class Mine(Exception):
        pass

    def raises() -> None:
        raise Mine("mine")

    with pytest.raises(Mine):
        package.profile(raises, backend="jax", steps=3, device="cpu")
    with pytest.raises(
        MeasurementError, match="ran no program of JAX: it must call a jitted function, or functions of"
    ):
        package.profile(lambda: sum(range(10)), backend="jax", steps=3, device="cpu")


# ------------------------------------------------------------------------------------------------ bad ends


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            "killed",
            "The measuring process was killed, most likely for lack of memory: use a smaller --batch, --seq or --size.",
        ),
        pytest.param(
            "crashes",
            "The measuring process died of SIGSEGV: run the step alone to see the crash.",
            marks=pytest.mark.thorough,  # what is said of a status stays: test_what_a_status_means
        ),
        ("leaves", "The measuring process ended with status 7 and no result; what it printed is above."),
        pytest.param(
            "too_much",
            "Out of memory on the CPU: use a smaller --batch, --seq or --size.",
            marks=pytest.mark.thorough,
        ),
    ],
)
@needs("jax")
def test_a_step_that_ends_badly(
    measured: Run, tmp_path: Path, brief: dict[str, str], function: str, sentence: str
) -> None:
    buffered = {"PYTHONUNBUFFERED": ""}  # as it is for most users: what is printed must get out all the same
    ended = measured("profile", f"mine_jax.py:{function}", "--backend", "jax", *QUICK, *OUT, more=brief | buffered)
    last(ended, 4, sentence)
    printed = "I am leaving\n" if function == "leaves" else ""
    assert ended.err == f"{printed}roofline: {sentence}\n", "the sentence alone"
    assert ended.out == ""
    assert written(tmp_path) == []


def test_what_a_status_means() -> None:
    from roofline.recording import launch

    assert str(launch._error_of(-11)) == "The measuring process died of SIGSEGV: run the step alone to see the crash."
    assert str(launch._error_of(0)).startswith("The step ended the measuring process, without an error ")
    for status in (130, -2):
        with pytest.raises(KeyboardInterrupt):
            launch._error_of(status)


COUNTED = ("--device", "cpu", "--count-only")


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@needs("jax")
def test_nothing_of_a_step_goes_on_after_its_profile(measured: Run, tmp_path: Path, brief: dict[str, str]) -> None:
    """A thread, a forked copy and a daemon; the profile is that of a product of 8 x 8 x 8."""
    ended = measured("profile", "mine_forking.py:leaves", "--backend", "jax", *COUNTED, *OUT, more=brief)
    assert ended.code == 0, ended.err
    assert sum(signature.cost.flops for signature in load(tmp_path / "out.json").signatures) == 2 * 8**3
    processes = (tmp_path / "processes").read_text().split()
    assert len(processes) == 2
    assert not [number for number in processes if psutil.pid_exists(int(number))]


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@needs("jax")
def test_a_step_that_does_not_return(
    measured: Run, tmp_path: Path, brief: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is ended first and its output read to the end then, which waits for no process that goes on."""
    from roofline.recording import launch

    read: list[bool] = []

    class Listener(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            super().join(timeout)
            read.append(not self.is_alive())

    monkeypatch.setattr(launch.threading, "Thread", Listener)
    ended = measured("profile", "mine_jax.py:hangs", "--backend", "jax", *COUNTED, *OUT, "--timeout", "1", more=brief)
    last(
        ended,
        4,
        "The measuring process was ended after the 1 s of --timeout: give more, or measure a smaller step.",
    )
    assert read == [True]
    assert written(tmp_path) == []


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@needs("tensorflow")
def test_tensorflow_runs_out_of_memory(process: Run, tmp_path: Path) -> None:
    ended = process("profile", "mine_tensorflow.py:too_much", "--backend", "tensorflow", *QUICK, *OUT)
    said(ended, 4, "Out of memory on the CPU: use a smaller --batch, --seq or --size.")
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    "words",
    [
        "RESOURCE_EXHAUSTED: Out of memory allocating 17592186044416 bytes.",
        "INTERNAL: Error dispatching computation: Out of memory allocating 1600000000000 bytes.",
        "{{function_node __wrapped__Fill}} OOM when allocating tensor with shape[4398046511104] on CPU:0 by allocator",
        "XlaRuntimeError: INTERNAL: failed to allocate: CUDA_ERROR_OUT_OF_MEMORY",
    ],
)
def test_the_frameworks_words_for_out_of_memory(words: str) -> None:
    from roofline.recording import child

    assert any(sign in words for sign in child._OUT_OF_MEMORY)


HIDDEN = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""


def test_a_framework_that_is_not_installed(roofline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jax", "keras"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    exec(HIDDEN.format(names=("jax", "keras")), {})
    run = ("profile", "mlp", "--size", "tiny", *QUICK, *OUT, "--backend")
    sentence = "The jax backend needs jax, which is not installed here: run `pip install 'roofline[jax]'`."
    said(roofline(*run, "jax"), 3, sentence)
    sentence = (
        "The keras-jax backend needs keras and jax, which are not installed here: "
        "run `pip install 'roofline[keras,jax]'`."
    )
    said(roofline(*run, "keras-jax"), 3, sentence)
    assert written(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "names", "missing"),
    [
        ("jax", ("jax",), "jax"),  # the child alone can tell what another interpreter has
        pytest.param("jax", ("flax",), "flax", marks=needs("jax")),  # which only the models need
        pytest.param("keras-jax", ("jax",), "jax", marks=needs("keras")),  # which importing Keras asks for
    ],
)
def test_a_library_that_another_interpreter_lacks(
    roofline: Run, tmp_path: Path, script: Any, site: Any, backend: str, names: tuple[str, ...], missing: str
) -> None:
    folder = site(HIDDEN.format(names=names))["PYTHONPATH"]
    other = script("python.sh", f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    ended = roofline(*COUNT, "--backend", backend, "--python", other, *OUT)
    said(ended, 3, f"The {backend} backend needs {missing}, which is not installed here: run `pip install 'roofline[")
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "raise ImportError('libcudart.so.12: cannot open shared object file')",
            "ImportError: libcudart.so.12: cannot",
        ),
        ("raise RuntimeError('jaxlib is version 0.1,\\nbut 0.2 is required')", "RuntimeError: jaxlib is version 0.1,)"),
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
    ],
)
def test_a_framework_that_is_broken(measured: Run, tmp_path: Path, site: Any, code: str, words: str) -> None:
    broken = site(code, "jax/__init__.py")
    ended = measured(*COUNT, "--backend", "jax", *OUT, more=broken)
    said(ended, 3, f"jax is installed but cannot be imported ({words}")
    assert ended.err.endswith("): install it again.\n")
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    ("backend", "sentence"),
    [
        ("keras-jax:jit=maybe", "keras-jax:jit takes on or off, not 'maybe'."),
        ("keras-torch:jit=on", "keras-torch:jit takes off, not 'on'."),
        ("tensorflow-xla:mode=", "tensorflow-xla:mode takes compile or autocluster, not ''."),
        ("tensorflow:mode=compile", "The tensorflow backend has no option 'mode'; there are: dropout."),
        ("keras2:jit", "keras2:jit takes on or off, not ''."),
    ],
)
def test_an_option_that_there_is_not(roofline: Run, backend: str, sentence: str) -> None:
    said(roofline("profile", "bert", "--size", "tiny", "--backend", backend, *QUICK, *OUT), 2, sentence)


def test_a_library_of_models_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """But a module of our own that is not there is a bug, which keeps its traceback."""
    from roofline.backends.jax import BACKEND
    from roofline.core.step import Workload
    from roofline.recording import child
    from roofline.recording.request import Request

    def load(missing: str) -> Callable[..., Any]:
        def fail(*_: object, **__: object) -> None:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

        return fail

    request = Request(backend="jax", workload=Workload(model="mlp"))
    monkeypatch.setattr(plugins, "load", load("optax"))
    with pytest.raises(MissingError, match=r"^The jax backend needs optax, .* `pip install 'roofline\[jax\]'`\.$"):
        child._model(request, BACKEND)
    monkeypatch.setattr(plugins, "load", load("roofline.models.jax._layers"))
    with pytest.raises(ModuleNotFoundError):
        child._model(request, BACKEND)


def test_remarks_of_the_libraries_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """What says that something failed is not, nor what only resembles a remark."""
    from roofline.recording import launch

    kept = [
        "first step 1 s",
        "E0000 00:00:1795237754.404692   18282 gpu_executor.cc:52] failed to allocate",
        "I0000 is how a line of the user's may begin",
        "W1 loss",
    ]
    dropped = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795237643.921673   18111 port.cc:153] oneDNN custom operations are on.",
        "W1121 05:07:22.883056   18089 hlo_module.cc:767] Invalid stack_frame_id 84",
        "E0000 00:00:1795237754.404692   18282 cuda_platform.cc:52] failed call to cuInit: INTERNAL",
    ]
    with launch._relay_output() as (printed, _):
        os.write(printed, "\n".join([*dropped, *kept, *dropped, "no end of line"]).encode())
    assert capsys.readouterr().err == "\n".join([*kept, "no end of line"])


def test_frames_of_torchs_recorder_are_left_out_and_those_of_others_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    from roofline.recording import launch

    frames = [
        "Exception raised from sizes_custom at /torch/NestedTensorImpl.cpp:279 (most recent call first):",
        "frame #0: c10::Error::Error(c10::SourceLocation) + 0x9d (0x7f1751179b8d in libc10.so)",
        "<omitting python frames>",
        "frame #27: _start + 0x21 (0x5636f39bd081 in python)",
        "",
    ]
    told = (
        "[W1123 22:12:14.980422724 execution_trace_observer.cpp:896] Exception in execution trace observer: no sizes."
    )
    with launch._relay_output() as (printed, _):
        os.write(printed, "\n".join(["RuntimeError: 7", *frames, told, *frames, told, *frames, "step 2", ""]).encode())
    assert capsys.readouterr().err == "\n".join(["RuntimeError: 7", *frames, "step 2", ""])


def test_a_child_is_read_to_its_end_whatever_becomes_of_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from roofline.recording import launch

    many = b"a line\n" * 50_000  # more than fits into a pipe
    gone = io.StringIO()
    gone.close()
    for stderr in (None, gone):
        monkeypatch.setattr(sys, "stderr", stderr)
        with launch._relay_output() as (printed, _):
            assert os.write(printed, many) == len(many)


def test_what_a_child_says_while_it_is_ended_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    from roofline.recording import launch

    many = b"Traceback\n" * 50_000  # more than fits into a pipe: it is read all the same
    with launch._relay_output() as (printed, ends):
        ends.set()
        assert os.write(printed, many) == len(many)
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------------ lists


@pytest.mark.parametrize("verb", ["backends", "doctor"])
def test_a_list_is_aligned_and_names_all(roofline: Run, verb: str) -> None:
    ended = roofline(verb)
    assert ended.code == 0, ended.err
    names = plugins.names("roofline.backends")
    width = max(map(len, names)) + 1
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines if line.split()[0] in names and not line[0].isspace()] == list(names)
    for line in lines:
        assert line[width - 1] == " ", line
        assert line[width] != " ", line


def test_what_is_missing_is_listed_with_its_cure(roofline: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name in ("jax", "keras", "keras-nlp", "optax"):
            raise metadata.PackageNotFoundError(name)
        return "1.0" if name in ("tensorflow", "tf_keras") else real(name)

    monkeypatch.setattr(metadata, "version", version)
    for verb in ("backends", "doctor"):
        lines = [line.strip() for line in roofline(verb).out.splitlines()]
        assert any(line.endswith("jax, optax are missing: pip install 'roofline[jax]'") for line in lines)
        assert any("keras, jax are missing: pip install 'roofline[keras,jax]'" in line for line in lines)
        assert any(
            line.endswith("tensorflow 1.0, tf_keras 1.0; keras-nlp is missing: pip install 'roofline[keras2]'")
            for line in lines
        )


def test_what_a_backend_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1")
    declared = [
        "numpy>=2.0",
        'keras>=3.15; extra == "keras"',
        "keras-hub>=0.32 ; extra == 'keras'",
        'jax>=0.10; extra == "jax"',
        'flax>=0.12; extra == "jax"',
        'tf_keras>=2.21; (python_version > "3") and extra == "keras2"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: declared)
    assert list(plugins.distributions("jax", ("jax",))) == ["jax", "flax"]
    # The engine's own extra holds what native models are made of, which Keras does not need.
    assert list(plugins.distributions("keras", ("keras", "jax"))) == ["keras", "jax", "keras-hub"]
    assert list(plugins.distributions("keras2", ("tensorflow",))) == ["tensorflow", "tf_keras"]

    def uninstalled(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", uninstalled)
    assert plugins.installed(("jax",), ("jax",)) == "jax 1"


# ------------------------------------------------------------------------------------------------ verify


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "what"),
    [
        pytest.param("jax", "18 products of jit_infer ", marks=[needs("flax"), pytest.mark.thorough]),
        pytest.param("tensorflow", "all products asked for ", marks=[needs("tensorflow", "jax"), pytest.mark.thorough]),
        pytest.param(
            "tensorflow-xla",
            "18 products of a_inference_forward",
            marks=[needs("tensorflow", "jax"), pytest.mark.thorough],
        ),
    ],
)
def test_verify(process: Run, backend: str, what: str) -> None:
    ended = process("verify", "bert", "--backend", backend, "--size", "tiny", "--batch", "2", "--seq", "16", *QUICK[:2])
    assert ended.code == 0, ended.err
    assert ended.err == ""
    (line,) = [line for line in ended.out.splitlines() if what in line]
    # 2 * 2 * 16 tokens: in 2 layers 4 products with 64 x 64 and 2 with 64 x 256, and attention's 2 of 16 x 16 x 64;
    # of 2 samples the pooler's 64 x 64 and the head's 64 x 2
    flops = 2 * 32 * 2 * (4 * 64**2 + 2 * 64 * 256 + 2 * 16 * 64) + 2 * 2 * (64**2 + 64 * 2)
    assert line.split()[-1] == "agrees"
    assert line.count(f"{flops / 1e6:.3g} MFLOP") == 2
    assert ended.out.splitlines()[-1] == "1 agree, 0 differ, 1 could not be checked."
