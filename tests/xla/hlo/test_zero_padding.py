"""Convolutions of images that another instruction filled up with zeros, as JAX hands them to XLA.

Asked for is what a convolution that pads by itself asks for, in the forward pass and in both gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

from roofline.xla import model_flops
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.proto import HloModuleProto

IMAGE, KERNEL = np.ones((2, 6, 6, 3), np.float32), np.ones((3, 3, 3, 5), np.float32)
CHANNELS = 2 * 2 * 3 * 5  # FLOPs of a pair: batch 2, 3 channels to 5
EDGES = {"around": (1, 1), "behind": (0, 1), "twice": (2, 2)}


def convolved(image: Any, kernel: Any, stride: int, edges: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(image, kernel, (stride, stride), (edges, edges), dimension_numbers=numbers)


def asked(function: Callable[..., Any], *arguments: Any) -> list[float]:
    """Sorted FLOPs of what a program asks for, before it is optimised."""
    proto = jax.jit(function).lower(*arguments).compiler_ir("hlo").as_serialized_hlo_module_proto()
    return sorted(model_flops.asked(hlo.read(proto)).fixed.values())


def training(convolution: Callable[..., Any]) -> Callable[..., Any]:
    def step(image: Any, kernel: Any) -> Any:
        return jax.value_and_grad(lambda *given: jnp.sum(convolution(*given) ** 2), argnums=(0, 1))(image, kernel)

    return step


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("where", EDGES)
def test_a_pad_before_a_convolution_is_one_of_it(where: str, stride: int) -> None:
    edges = EDGES[where]

    def apart(image: Any, kernel: Any) -> Any:
        return convolved(jnp.pad(image, ((0, 0), edges, edges, (0, 0))), kernel, stride, (0, 0))

    together = partial(convolved, stride=stride, edges=edges)
    found = asked(training(apart), IMAGE, KERNEL)
    assert found == asked(training(together), IMAGE, KERNEL)
    assert found == [found[0], 2 * found[0]], "two gradients, of one name, pair the elements of the forward pass"


def test_by_hand() -> None:
    """6 outputs of 3 taps, two of which are outside, in either direction."""
    padded = asked(
        lambda image, kernel: convolved(jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))), kernel, 1, (0, 0)),
        IMAGE,
        KERNEL,
    )
    assert padded == [CHANNELS * (3 * 6 - 2) ** 2]


@pytest.mark.parametrize(
    "prepare",
    [
        lambda image: jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1.0),
        lambda image: jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))) + 1,
        lambda image: jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge"),
    ],
    ids=["ones", "a sum", "the edge"],
)
def test_what_is_not_known_to_be_zero_is_asked_for(prepare: Callable[[Any], Any]) -> None:
    assert asked(lambda image, kernel: convolved(prepare(image), kernel, 1, (0, 0)), IMAGE, KERNEL) == [
        CHANNELS * 18**2
    ]


def sequence(image: Any, kernel: Any) -> Any:
    return convolved(jnp.pad(image, ((0, 0), (1, 1), (0, 0)))[:, None], kernel, 1, (0, 0))


def every_second(image: Any, kernel: Any) -> Any:
    return convolved(jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))[:, ::2, ::2], kernel, 1, (0, 0))


def updated(image: Any, kernel: Any) -> Any:
    whole = jax.lax.dynamic_update_slice(jnp.zeros((2, 8, 8, 3)), image, (0, 1, 1, 0))
    return convolved(whole, kernel, 1, (0, 0))


def cut(image: Any, kernel: Any) -> Any:
    return jnp.tanh(convolved(image, kernel, 1, (2, 2))[:, 1:-1, 1:-1])


def cut_behind_a_bias(image: Any, kernel: Any) -> Any:
    bias = jnp.arange(5.0)
    return jnp.tanh((bias + convolved(image, kernel, 1, (2, 2)))[:, 1:-1, 1:-1])


def cut_behind_a_sum(image: Any, kernel: Any) -> Any:
    results = convolved(image, kernel, 1, (2, 2))
    return jnp.tanh((results + jnp.arange(2.0 * 8 * 8 * 5).reshape(results.shape))[:, 1:-1, 1:-1])


HANDED_ON = {
    # One row of 6 places and 3 taps.
    "sequence": (sequence, (2, 6, 3), (1, 3, 3, 5), CHANNELS * 16),
    # 8 places with the zeros, of which 0, 2, 4 and 6 are taken, the first of them a zero: 3 meet the one tap.
    "every second": (every_second, (2, 6, 6, 3), (1, 1, 3, 5), CHANNELS * 3**2),
    "written into zeros": (updated, (2, 6, 6, 3), (3, 3, 3, 5), CHANNELS * 16**2),
    # Of 8 results the outermost are cut off, which are there for the second zero: as one zero on either side.
    "cut off": (cut, (2, 6, 6, 3), (3, 3, 3, 5), CHANNELS * 16**2),
    "cut off behind a bias": (cut_behind_a_bias, (2, 6, 6, 3), (3, 3, 3, 5), CHANNELS * 16**2),
    # Of 8 results each tap has 6; a sum takes all of them.
    "cut off behind a sum": (cut_behind_a_sum, (2, 6, 6, 3), (3, 3, 3, 5), CHANNELS * 18**2),
}


@pytest.mark.parametrize(("function", "image", "kernel", "flops"), HANDED_ON.values(), ids=HANDED_ON)
def test_zeros_are_followed_to_the_convolution_and_from_it(function, image, kernel, flops) -> None:
    found = asked(function, np.ones(image, np.float32), np.ones(kernel, np.float32))
    assert found == [flops]


def test_each_image_with_a_kernel_of_its_own_has_its_zeros() -> None:
    """4 images of 6 x 6, 3 channels to 5: `vmap` joins images and channels, for which it turns and reshapes both."""

    def apart(image: Any, kernel: Any) -> Any:
        return convolved(jnp.pad(image, ((1, 1), (1, 1), (0, 0)))[None], kernel, 1, (0, 0))

    one = 2 * 3 * 5 * 16**2
    images, kernels = np.ones((4, 6, 6, 3), np.float32), np.ones((4, 3, 3, 3, 5), np.float32)
    assert asked(jax.vmap(apart), images, kernels) == [4 * one]
    assert asked(training(jax.vmap(apart)), images, kernels) == [4 * one, 8 * one]


def test_zeros_that_a_loop_is_given_are_zeros_in_each_trip() -> None:
    """3 trips of a 3 x 3 convolution of 2 images of 6 x 6, 5 channels to 5, and both of its gradients.

    The trips are checkpoints; JAX hands the loops the zero of the pad.
    """

    def trip(image: Any, kernel: Any) -> Any:
        return jnp.tanh(convolved(jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))), kernel, 1, (0, 0))), None

    def scanned(image: Any, kernels: Any) -> Any:
        return (jax.lax.scan(jax.checkpoint(trip), image, kernels)[0] ** 2).sum()

    flops = 3 * 2 * 2 * 5 * 5 * 16**2
    given = np.ones((2, 6, 6, 5), np.float32), np.ones((3, 3, 3, 5, 5), np.float32)
    assert sum(asked(jax.grad(scanned, (0, 1)), *given)) == 3 * flops


def test_a_part_of_the_results_is_asked_for_as_the_whole() -> None:
    """Of 6 results of 3 taps, the outermost of which lack one, 2 are taken: more is cut off than a zero added."""

    def part(image: Any, kernel: Any) -> Any:
        return jnp.tanh(convolved(image, kernel, 1, (1, 1))[:, 2:-2, 2:-2])

    assert asked(part, IMAGE, KERNEL) == [CHANNELS * 16**2]


def row(image: Any, kernel: Any, edges: tuple[int, int] = (0, 0)) -> Any:
    return jax.lax.conv_general_dilated(image, kernel, (1,), (edges,))


def around(image: Any) -> Any:
    return jnp.pad(image, ((0, 0), (0, 0), (1, 1)))


def halves(image: Any, kernel: Any, edges: tuple[int, int] = (1, 1)) -> Any:
    return row(jnp.concatenate([image, jnp.ones((2, 3, 5), np.float32)], 2), kernel, edges)


#: Convolutions of rows, the places of the image, and pairs of a result with a tap.
ROWS = {
    # 5 of 8 results are taken, which no zero is there for: all 8.
    "a part": (lambda x, w: row(x, w)[..., :5], 10, 8 * 3),
    # 10 results, the outermost of which are cut off, and are there for the zeros.
    "undone": (lambda x, w: row(x, w, (1, 1))[..., 1:-1], 10, 8 * 3),
    "undone behind a bias": (lambda x, w: (row(x, w, (1, 1)) + jnp.ones((5, 1)))[..., 1:-1], 10, 8 * 3),
    "undone behind a pad": (lambda x, w: row(around(x), w)[..., 1:-1], 10, 8 * 3),
    # The first of them, and of the last ones more than a zero was added for.
    "undone in front": (lambda x, w: row(around(x), w)[..., 1:-2], 10, 9 * 3 - 1),
    # 10 results of two halves, of one of which the gradient is taken; two taps are outside.
    "one half": (halves, 5, 10 * 3 - 2),
}


@pytest.mark.parametrize("again", [False, True], ids=["kept", "made again"])
@pytest.mark.parametrize("case", ROWS)
def test_both_gradients_ask_for_the_pairs_of_the_forward_pass(case: str, again: bool) -> None:
    """Each of them, also where only a part of the results, or of the image, hands a gradient on."""
    function, places, pairs = ROWS[case]
    function = jax.checkpoint(function) if again else function
    image, kernel = np.ones((2, 3, places), np.float32), np.ones((5, 3, 3), np.float32)
    assert asked(training(function), image, kernel) == [CHANNELS * pairs, 2 * CHANNELS * pairs]


@pytest.mark.parametrize("again", [False, True], ids=["kept", "made again"])
def test_an_image_is_known_by_the_kernel_and_not_by_its_size_alone(again: bool) -> None:
    """28 pairs with an image of two halves, 22 with a padded one of 8 places: with its zeros each has 10."""

    convolutions = [halves, lambda image, kernel: row(around(image), kernel)]
    first, second = map(jax.checkpoint, convolutions) if again else convolutions

    def step(half: Any, image: Any, kernel: Any, other: Any) -> Any:
        return jnp.sum(first(half, kernel) ** 2) + jnp.sum(second(image, other) ** 2)

    images, kernel = (np.ones((2, 3, places), np.float32) for places in (5, 8)), np.ones((5, 3, 3), np.float32)
    found = asked(jax.value_and_grad(step, argnums=(0, 1, 2, 3)), *images, kernel, kernel + 1)
    assert sum(found) == CHANNELS * 3 * (28 + 22)


def test_the_gradient_of_a_padded_image_alone_asks_for_what_is_inside_it() -> None:
    """28 pairs of 10 results; a sum needs no forward pass, so that none is left to tell of the zeros."""
    image, kernel = np.ones((2, 3, 10), np.float32), np.ones((5, 3, 3), np.float32)
    assert asked(jax.grad(lambda x, w: jnp.sum(row(around(x), w))), image, kernel) == [CHANNELS * 28]


@pytest.mark.parametrize(
    ("part", "rows"),
    [(np.s_[0], 16), (np.s_[:, :, :, :3], 16), (np.s_[0, 1:-1], 12)],
    ids=["batch", "channels", "batch and rows"],
)
def test_zeros_of_an_image_of_whose_results_samples_or_channels_are_taken(part: Any, rows: int) -> None:
    """All samples and channels are asked for: 16 pairs of 6 results and 3 taps; the outermost results are for the zeros
    and have 2 pairs each.
    """

    def taken(image: Any, kernel: Any) -> Any:
        around = jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
        return jnp.tanh(convolved(around, kernel, 1, (0, 0))[part])

    assert asked(taken, IMAGE, KERNEL) == [CHANNELS * rows * 16]


def turned(image: Any, kernel: Any) -> Any:
    """Cut the results of an image that is filled up and transposed, next to other ones."""
    around = jnp.transpose(jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))), (0, 2, 1, 3))
    return jnp.tanh(jnp.concatenate([convolved(around, kernel, 1, (0, 0)), jnp.ones((2, 1, 6, 5))], 1)[:, :, 1:])


def no_edges(pad: Any) -> None:
    pad.padding_config.ClearField("dimensions")


def another_dimension(instruction: Any) -> None:
    instruction.dimensions[0] = 9


@pytest.mark.parametrize(
    ("opcode", "damage"),
    [("pad", no_edges), ("transpose", another_dimension), ("concatenate", another_dimension)],
    ids=["pad", "transpose", "concatenate"],
)
def test_beside_a_damaged_instruction_a_convolution_is_asked_for_as_it_runs(opcode: str, damage: Any) -> None:
    """3 taps at each of 6 x 6 results, of an image of 8 x 8 with its zeros."""
    lowered = jax.jit(turned).lower(IMAGE, KERNEL).compiler_ir("hlo")
    proto = HloModuleProto.FromString(lowered.as_serialized_hlo_module_proto())
    for computation in proto.computations:
        for instruction in computation.instructions:
            if instruction.opcode == opcode:
                damage(instruction)
    assert list(model_flops.asked(hlo.read(proto.SerializeToString())).fixed.values()) == [CHANNELS * 18**2]
