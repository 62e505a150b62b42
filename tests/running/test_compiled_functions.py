"""Where steps end in JAX, TensorFlow and Keras: what each boundary reports while a real loop runs."""

from __future__ import annotations

import functools
import gc
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from roofline.running.boundaries import ORDER
from roofline.running.boundary import EMPTY
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement, Wanted
from roofline.running.run import boundaries
from roofline.running.steps import Steps, StepWatcher


class _Watcher(StepWatcher):
    """Keep what a boundary reports: (name of its file, label, results), and of a profiler (name of its file, which).

    details: what differs between unlike calls, of the last one of each name. sources: what tells callers apart, of all.
    """

    details: ClassVar[dict[tuple[str, str], object]] = {}
    sources: ClassVar[list[Any]] = []

    def __init__(self, steps: Steps, rank: int, name: str, seen: list[tuple[str, str, tuple[object, ...]]]) -> None:
        super().__init__(steps, rank)
        self._name, self._seen = name, seen
        self.ended: Any = self._note

    def _note(
        self,
        source: object,
        label: str,
        results: tuple[object, ...] = (),
        model: object = None,
        detail: object = None,
        sizes: Mapping[str, int] = EMPTY,
    ) -> None:
        self._seen.append((self._name, label, results))
        self.details[self._name, label] = detail
        self.sources.append(source)

    def met(self, label: str) -> None:
        self._seen.append((self._name, label, ()))

    def blocked(self, by: str | None) -> None:
        self._seen.append((self._name, str(by), ()))


@pytest.fixture
def seen() -> Iterator[list[tuple[str, str, tuple[object, ...]]]]:
    """What all boundaries report, in order; their hooks are taken away at the end."""
    reports: list[tuple[str, str, tuple[object, ...]]] = []
    kinds, imports = boundaries(), AfterImport(print)
    steps = Steps(kinds, Measurement(Wanted(), "loop", lambda text: None), imports)
    for rank, (name, kind) in enumerate(zip(ORDER, kinds, strict=False)):
        if not kind.module.startswith("t") or kind.module == "tensorflow":
            imports.call(kind.module or "sys", functools.partial(kind.watch, _Watcher(steps, rank, name, reports)))
    imports.install()
    yield reports
    imports.remove()
    steps.remove_hooks()


def names(reports: list[tuple[str, str, tuple[object, ...]]]) -> list[tuple[str, str]]:
    return [(name, label) for name, label, _ in reports]


def test_no_hook_stays_of_two_around_one_function() -> None:
    class Owner:
        def method(self) -> int:
            return 1

    original = Owner.method
    steps = Steps(boundaries(), Measurement(Wanted(), "loop", lambda text: None), AfterImport(print))
    for rank in range(2):
        steps.watcher(rank).wrap(Owner, "method", lambda method: lambda self: method(self) + 1)
    assert Owner().method() == 3
    steps.remove_hooks()
    assert Owner.method is original


def jax_program() -> tuple[Any, Callable[..., Any], Callable[..., Any]]:
    import jax

    @functools.partial(jax.jit, donate_argnums=0)
    def train(weights: Any, x: Any) -> Any:
        return weights - 0.1 * jax.grad(lambda w: (infer(w, x) ** 2).sum())(weights)

    @jax.jit
    def infer(weights: Any, x: Any) -> Any:
        """Multiply."""
        return x @ weights

    return jax, train, infer


def test_jitted_functions_report_when_they_are_the_outermost_ones(seen: list[Any]) -> None:
    """`infer` is part of `train`, and reported where it is called by itself."""
    jax, train, infer = jax_program()
    seen.clear()
    weights, x = jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4))
    for _ in range(2):
        weights = train(weights, x)
        infer(weights, x)
    assert names(seen) == 2 * [("jax_update", "train()"), ("jax_call", "infer()")]
    assert seen[2][2][0] is weights, "what is returned is awaited"


def test_a_jitted_function_that_is_only_traced_reports_nothing(seen: list[Any]) -> None:
    """Of a scan by itself one call would be reported, of its body; one inside of `vmap` does run."""
    jax, _, infer = jax_program()
    weights, x = jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4))
    seen.clear()
    jax.make_jaxpr(infer)(weights, x)
    jax.eval_shape(infer, weights, x)
    jax.lax.scan(lambda carry, _: (carry + infer(weights, x), None), jax.numpy.zeros((3, 2)), length=2)
    assert seen == []
    jax.vmap(lambda w: infer(w, x))(weights[None])
    assert names(seen) == [("jax_call", "infer()")]


def test_a_jitted_function_is_like_itself(seen: list[Any]) -> None:
    jax, _, infer = jax_program()

    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def double(self, x: Any) -> Any:
            return 2 * x

        @jax.jit(static_argnums=0)
        def triple(self, x: Any) -> Any:
            return 3 * x

    x = jax.numpy.ones(3)
    assert Model().double(x).tolist() == [2, 2, 2]
    assert Model().triple(x).tolist() == [3, 3, 3]
    jitted = infer
    assert isinstance(jitted, jax.stages.Wrapped)
    assert (jitted.__name__, jitted.__doc__, jitted.__module__) == ("infer", "Multiply.", __name__)
    assert jitted.__wrapped__(jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4))).shape == (3, 2)
    assert weakref.ref(jitted)() is jitted
    assert {jitted: 1}[jitted] == 1
    jitted.note = "mine"
    assert jitted.note == "mine"
    assert jax.vmap(jitted, in_axes=(None, 0))(jax.numpy.ones((4, 2)), jax.numpy.ones((5, 3, 4))).shape == (5, 3, 2)
    assert jax.jit(jitted)(jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4))).shape == (3, 2)
    lowered = jitted.lower(jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4)))
    assert "dot_general" in lowered.as_text()
    seen.clear()
    lowered.compile()(jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4)))
    assert names(seen) == [("jax_call", "compiled function()")]
    assert type(jitted.__reduce__()[1][0]).__name__ == "PjitFunction", "what is pickled needs nothing of ours"


def test_gradients_that_are_taken_outside_of_compiled_functions_train(seen: list[Any]) -> None:
    """What they call is part of them; inside of a jitted function they are part of that."""
    import jax

    @jax.jit
    def loss(weight: Any) -> Any:
        return (weight**2).sum()

    gradients = jax.value_and_grad(loss)
    weight = jax.numpy.ones(3)
    seen.clear()
    assert gradients(weight)[1].tolist() == [2, 2, 2]
    assert jax.grad(fun=loss)(weight).tolist() == [2, 2, 2]
    assert names(seen) == [("jax_update", "jax.value_and_grad(loss)()"), ("jax_update", "jax.grad(loss)()")]
    seen.clear()
    jax.jit(gradients)(weight)
    assert names(seen) == [("jax_update", "loss()")]
    assert list(inspect.signature(gradients).parameters) == ["weight"]
    assert gradients.__reduce__()[1][0] is not gradients, "what is pickled needs nothing of ours"


def told_apart(calls: list[Callable[[], object]]) -> int:
    """Make calls twice, each of which reports once, and count what tells them apart; it is the same in both rounds."""
    rounds = []
    for _ in range(2):
        _Watcher.sources.clear()
        for call in calls:
            call()
        assert len(_Watcher.sources) == len(calls)
        rounds.append(list(_Watcher.sources))
    assert rounds[0] == rounds[1]
    return len(set(rounds[0]))


class Layer:
    """A model whose methods are compiled."""

    def apply(self, x: Any) -> Any:
        return x + 1

    def infer(self, x: Any) -> Any:
        return x * 2

    def __call__(self, x: Any) -> Any:
        return x - 1


def test_jitted_functions_are_told_apart_by_what_they_are_made_of(seen: list[Any]) -> None:
    """By the function inside of a transformation, or of a partial one, and by the model whose method it is.

    One that a loop makes anew is the same; a model is, when the one before is gone.
    """
    import jax

    def single(x: Any, times: int = 1) -> Any:
        return (times * x).sum()

    def double(x: Any) -> Any:
        return (2 * x).sum()

    x = jax.numpy.ones(3)
    first, second = Layer(), Layer()
    of_one = [single, jax.grad(single), functools.partial(single, times=3), first.apply, first.infer, first]
    of_another = [double, jax.grad(double), functools.partial(double), second.apply, second.infer, second]
    jitted = [jax.jit(function) for function in (*of_one, *of_another)]

    class Compiled:
        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return x + 1

    methods = [Compiled().apply, Compiled().apply]
    assert told_apart([functools.partial(function, x) for function in (*jitted, *methods)]) == 14
    again = [lambda: jax.jit(lambda y: y + 1)(x), lambda: jax.jit(Layer().apply)(x)]
    for call in again:
        assert told_apart([call]) == 1


def test_functions_of_tensorflow_are_told_apart_by_what_they_are_made_of(seen: list[Any]) -> None:
    import tensorflow as tf

    class Compiled(Layer):
        apply = tf.function(Layer.apply)
        infer = tf.function(Layer.infer)

    first, second, x = Compiled(), Compiled(), tf.ones(3)
    concrete = [tf.function(model.apply).get_concrete_function(tf.TensorSpec(3)) for model in (first, second)]
    functions = [first.apply, first.infer, second.apply, second.infer, *concrete]
    assert told_apart([functools.partial(function, x) for function in functions]) == 6


def test_layers_and_optimizers_of_keras_are_told_apart(seen: list[Any]) -> None:
    """One made anew is the same once that before is gone, which takes a collection of garbage."""
    import keras

    _Watcher.sources.clear()
    for width in (4, 5, 4):
        keras.layers.Dense(width)(np.ones((2, 3), np.float32))
        gc.collect()
    layers = [keras.layers.Dense(4) for _ in range(2)]
    for layer in layers:
        layer(np.ones((2, 3), np.float32))
    narrow, wide = (("Dense", 3 * width + width) for width in (4, 5))
    assert _Watcher.sources == [(narrow, 0), (wide, 0), (narrow, 0), (narrow, 0), (narrow, 1)]
    _Watcher.sources.clear()
    for layer in layers:
        weights = layer.trainable_variables
        keras.optimizers.SGD(0.1).apply([keras.ops.ones_like(weight) for weight in weights], weights)
    assert [source[0][0] for source in _Watcher.sources] == ["SGD", "SGD"]


def test_an_annotation_of_jax_ends_a_step_with_what_ran_last(seen: list[Any]) -> None:
    jax, _, infer = jax_program()
    with jax.profiler.StepTraceAnnotation("train", step_num=1):
        result = infer(jax.numpy.ones((4, 2)), jax.numpy.ones((3, 4)))
    assert seen[-1] == ("jax_annotation", "jax.profiler.StepTraceAnnotation", (result,))


def test_functions_of_tensorflow_report(seen: list[Any]) -> None:
    import tensorflow as tf

    weights = tf.Variable(tf.ones((4, 2)))

    @tf.function
    def infer(x: Any) -> Any:
        return x @ weights

    @tf.function
    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(infer(x) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    seen.clear()
    for _ in range(2):
        train(tf.ones((3, 4)))
        infer(tf.ones((3, 4)))
    assert names(seen) == 2 * [("tensorflow_update", "train()"), ("tensorflow_call", "infer()")]
    seen.clear()
    train.get_concrete_function(tf.ones((2, 4)))
    assert names(seen) == []
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(weights)
    tape.gradient(loss, weights)
    assert names(seen) == [("tensorflow_gradient", "GradientTape.gradient()")]
    seen.clear()
    with tf.profiler.experimental.Trace("train", step_num=1):
        infer(tf.ones((3, 4)))
    with tf.profiler.experimental.Trace("something else"):
        pass
    assert names(seen)[1:] == [("tensorflow_trace", "tf.profiler.experimental.Trace('train')")]


def test_profilers_of_the_program_report_their_begin_and_end(seen: list[Any], tmp_path: Path) -> None:
    """By both names that JAX has for them, and both that TensorFlow has."""
    import jax
    import tensorflow as tf
    from tensorflow.python.profiler import profiler_v2

    seen.clear()
    with jax.profiler.trace(str(tmp_path / "a")):
        pass
    jax.profiler.start_trace(str(tmp_path / "b"))
    jax.profiler.stop_trace()
    assert names(seen) == 2 * [("jax_annotation", "jax.profiler"), ("jax_annotation", "None")]
    seen.clear()
    for profiler in (tf.profiler.experimental, profiler_v2):
        profiler.start(str(tmp_path / "c"))
        profiler.stop(save=False)
    assert names(seen) == 2 * [("tensorflow_trace", "tf.profiler.experimental"), ("tensorflow_trace", "None")]


def test_loops_and_updates_of_keras_report(seen: list[Any]) -> None:
    """Three batches of fit and predict, the last ones smaller, one of validation; an update and a call by themselves.

    The batches of this `fit` train a weight of 3 x 2 and a bias.
    """
    import keras

    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = np.ones((5, 3), np.float32), np.ones((5, 2), np.float32)
    model.fit(x, y, batch_size=2, verbose=0, validation_data=(x[:2], y[:2]))
    model.predict(x, batch_size=2, verbose=0)
    loops = [name for name in names(seen) if name[0] in ("keras_fit", "keras_predict")]
    assert loops == [
        ("keras_fit", "a new pass over the data"),
        *2 * [("keras_fit", "a batch of fit")],
        ("keras_fit", "a smaller last batch"),
        ("keras_fit", "a batch of fit"),
        ("keras_predict", "a batch of evaluate"),
        *2 * [("keras_predict", "a batch of predict")],
        ("keras_fit", "a smaller last batch"),
        ("keras_predict", "a batch of predict"),
    ]
    assert _Watcher.details["keras_fit", "a batch of fit"] == ((3, 2), (2,))
    seen.clear()
    model(x)
    model.optimizer.apply([keras.ops.ones_like(weight) for weight in model.trainable_variables])
    assert names(seen) == [("keras_call", "Sequential"), ("keras_optimizer", "SGD")]
    assert _Watcher.details["keras_call", "Sequential"] == ((5, 3),)
