"""`verify` of what XLA compiles, and of TensorFlow's graphs by XLA: it checks, and a wrong count does not pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roofline.core.step import Step
from roofline.recording.recording import Check
from roofline.xla import verify

jax = pytest.importorskip("jax")
jnp = jax.numpy


def by_name(checks: list[Check]) -> list[Check]:
    return [check for check in checks if check.reference_name == "XLA"]


def product() -> Callable[[], Any]:
    x, w = jnp.ones((32, 64)), jnp.ones((64, 128))
    step = jax.jit(lambda x: jnp.tanh(x @ w))
    return lambda: step(x)


def looped() -> Callable[[], Any]:
    """A loop of a number of trips that XLA does not know, and so does not unroll."""
    x = jnp.ones((64, 64))
    step = jax.jit(lambda x, trips: jax.lax.fori_loop(0, trips, lambda _, y: jnp.sin(y @ x), x))
    return lambda: step(x, 5)


def padded() -> Callable[[], Any]:
    x, w = jnp.ones((2, 8, 16, 16)), jnp.ones((8, 8, 3, 3))
    step = jax.jit(lambda x: jax.lax.conv(x, w, (1, 1), "SAME"))
    return lambda: step(x)


@pytest.mark.parametrize(
    ("build", "flops"),
    [
        (product, 2 * 32 * 64 * 128),
        (looped, 2 * 64**3),  # the product in the loop once, not its 5 trips
        # 16 + 2 * 15 = 46 pairs of a position and a tap that lies inside, each way
        (padded, 2 * 2 * 8 * 8 * 46**2),
    ],
)
def test_jax(build: Callable[[], Callable[[], Any]], flops: float) -> None:
    from roofline.backends.jax import BACKEND

    (check,) = by_name(BACKEND.recorder.verify(Step(run=build())))
    assert (check.ours, check.reference, check.verdict) == (flops, flops, "agrees")


def test_a_wrong_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from roofline.backends.jax import BACKEND

    real = verify._products
    monkeypatch.setattr(verify, "_products", lambda *where: [(one, 1.01 * flops) for one, flops in real(*where)])
    (check,) = by_name(BACKEND.recorder.verify(Step(run=product())))
    assert check.verdict == "differs"


def test_without_jaxlib_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from roofline.backends.jax import BACKEND

    monkeypatch.setattr(verify, "_analysis", lambda: None)
    (check,) = by_name(BACKEND.recorder.verify(Step(run=product())))
    assert (check.reference, check.verdict, "jaxlib" in check.note) == (None, "not checked", True)


# ------------------------------------------------------------------------------------------------ TensorFlow's graphs


def graph(function: Callable[..., Any]) -> list[Check]:
    tf = pytest.importorskip("tensorflow")
    from roofline.backends.tensorflow import BACKEND

    return by_name(BACKEND.recorder.verify(Step(run=tf.function(function))))


@pytest.mark.slow
def test_a_graph_is_compiled_by_xla_to_be_checked() -> None:
    tf = pytest.importorskip("tensorflow")
    x, w, image, taps = tf.ones((32, 64)), tf.ones((64, 128)), tf.ones((2, 16, 16, 8)), tf.ones((3, 3, 8, 8))
    inner = tf.function(lambda x: x @ w)

    def step() -> Any:
        return inner(x), tf.tanh(inner(x + 1.0)), tf.nn.conv2d(image, taps, 1, "SAME")

    (check,) = graph(step)
    # A function that is called twice counts twice.
    flops = 2 * (2 * 32 * 64 * 128) + 2 * 2 * 8 * 8 * 46**2
    assert (check.ours, check.reference, check.verdict) == (flops, flops, "agrees")


@pytest.mark.slow
def test_a_gradient_that_nobody_takes_is_not_asked_for() -> None:
    """TensorFlow makes it where it differentiates a convolution, and grappler takes it out."""
    tf = pytest.importorskip("tensorflow")
    image, taps = tf.ones((2, 16, 16, 8)), tf.Variable(tf.ones((3, 3, 8, 8)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.sin(tf.nn.conv2d(image, taps, 1, "SAME")))
        return tape.gradient(value, taps)

    (check,) = graph(step)
    flops = 2 * (2 * 2 * 8 * 8 * 46**2)  # forward and of the taps; none of the image
    assert (check.ours, check.reference, check.verdict) == (flops, flops, "agrees")


def test_how_often_a_computation_runs() -> None:
    from roofline.xla.hlo import module as hlo
    from roofline.xla.hlo.live import live

    inner = jax.jit(lambda x: x @ x)
    middle = jax.jit(lambda x: inner(inner(x)))

    def whole(x: Any, trips: Any) -> Any:
        return jax.lax.fori_loop(0, trips, lambda _, y: jnp.sin(y) @ x, middle(middle(inner(x))))

    lowered = jax.jit(whole).lower(jnp.ones((4, 4)), 3).compiler_ir("hlo")
    module = hlo.read(lowered.as_serialized_hlo_module_proto())
    times = verify._times(module, live(module))
    found = [times[each] for each in module.computations for one in each.instructions if one.opcode == "dot"]
    # The loop's depends on its data; the others are one of inner and two in each of the two of middle.
    assert found.count(None) == 1
    assert sum(number for number in found if number is not None) == 5


def test_a_wrong_count_of_a_graph_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tf = pytest.importorskip("tensorflow")
    x = tf.ones((32, 32))
    real = verify._lowered
    monkeypatch.setattr(verify, "_lowered", lambda step, ours: real(step, ours + 2.0))
    (check,) = graph(lambda: x @ x)
    assert (check.ours, check.reference, check.verdict) == (2 * 32**3 + 2, 2 * 32**3, "differs")


def test_solving_is_no_product_of_a_graph() -> None:
    """XLA is handed the solution of 8 equations with a product of 8 x 8 x 3 in it; 3 x 8 x 5 is one of the step."""
    tf = pytest.importorskip("tensorflow")
    a, b, w = 3 * tf.eye(8), tf.ones((8, 3)), tf.ones((8, 5))
    (check,) = graph(lambda: tf.matmul(tf.linalg.solve(a, b), w, transpose_a=True))
    assert (check.ours, check.reference, check.verdict) == (2 * 3 * 8 * 5, 2 * 3 * 8 * 5, "agrees")


def test_rows_that_only_a_run_knows_are_counted() -> None:
    """3 of 4 rows are positive: 3 x 8 x 5."""
    tf = pytest.importorskip("tensorflow")
    x, w = tf.constant([[1.0] * 8, [-1.0] * 8, [2.0] * 8, [3.0] * 8]), tf.ones((8, 5))
    (check,) = graph(lambda: tf.boolean_mask(x, x[:, 0] > 0) @ w)
    assert (check.ours, check.verdict) == (2 * 3 * 8 * 5, "not checked")


def test_what_cannot_be_checked_in_a_graph_is_said() -> None:
    tf = pytest.importorskip("tensorflow")
    from roofline.backends.tensorflow import BACKEND

    x = tf.ones((32, 32))

    def loop() -> Any:
        y = x
        for _ in tf.range(3):
            y = tf.sin(y @ x)
        return y

    (check,) = graph(loop)
    assert (check.verdict, "in a loop" in check.note) == ("not checked", True)
    (check,) = graph(lambda: (x @ x, tf.strings.as_string(x)))
    assert (check.verdict, "XLA cannot compile the function" in check.note) == ("not checked", True)
    compiled = tf.function(lambda: x @ x)
    (check,) = by_name(BACKEND.recorder.verify(Step(run=lambda: compiled())))
    assert (check.verdict, "no tf.function" in check.note) == ("not checked", True)
