"""Adam and AdamW as torch computes them, in TensorFlow's operations."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from roofline.models._adam import Adam


class Optimizer(tf.Module):
    """The state of Adam for some variables: two moments each, and the number of steps taken."""

    def __init__(self, adam: Adam, variables: Sequence[tf.Variable]) -> None:
        super().__init__()
        self.adam = adam
        self.learned = tuple(variables)
        self.steps = tf.Variable(0, dtype=tf.int64, name="optimizer/steps")
        self.means = [self._moment(variable, "mean") for variable in variables]
        self.squares = [self._moment(variable, "square") for variable in variables]

    @staticmethod
    def _moment(variable: tf.Variable, kind: str) -> tf.Variable:
        return tf.Variable(tf.zeros_like(variable), name=f"optimizer/{variable.name.removesuffix(':0')}/{kind}")

    def apply(self, gradients: Sequence[tf.Tensor]) -> None:
        """One update of all variables, in place, by their dense gradients."""
        adam = self.adam
        with tf.name_scope("optimizer/"):
            step = tf.cast(self.steps.assign_add(1), tf.float32)
            powers = tuple(tf.pow(beta, step) for beta in adam.betas)
            for variable, mean, square, gradient in zip(self.learned, self.means, self.squares, gradients, strict=True):
                if adam.weight_decay:
                    variable.assign_sub(tf.cast(adam.lr * adam.weight_decay, variable.dtype) * variable)
                # A moment in bfloat16 has no 0.999, so the kernel, which computes in the variable's dtype, cannot help.
                update = self._fused if variable.dtype == tf.float32 else self._written_out
                update(variable, mean, square, gradient, powers)

    def _fused(
        self,
        variable: tf.Variable,
        mean: tf.Variable,
        square: tf.Variable,
        gradient: tf.Tensor,
        powers: tuple[tf.Tensor, tf.Tensor],
    ) -> None:
        """One kernel. It adds epsilon before torch corrects the second moment's bias; scaled, that is the same."""
        adam = self.adam
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=mean.handle,
            v=square.handle,
            beta1_power=powers[0],
            beta2_power=powers[1],
            lr=adam.lr,
            beta1=adam.betas[0],
            beta2=adam.betas[1],
            epsilon=adam.eps * tf.sqrt(1.0 - powers[1]),
            grad=gradient,
        )

    def _written_out(
        self,
        variable: tf.Variable,
        mean: tf.Variable,
        square: tf.Variable,
        gradient: tf.Tensor,
        powers: tuple[tf.Tensor, tf.Tensor],
    ) -> None:
        """The same in float32, rounded to the variable's dtype where it is kept."""
        adam, (first, second) = self.adam, self.adam.betas
        wide = tf.cast(gradient, tf.float32)
        new_mean = first * tf.cast(mean, tf.float32) + (1.0 - first) * wide
        new_square = second * tf.cast(square, tf.float32) + (1.0 - second) * tf.square(wide)
        root = tf.sqrt(new_square / (1.0 - powers[1])) + adam.eps
        change = adam.lr / (1.0 - powers[0]) * new_mean / root
        mean.assign(tf.cast(new_mean, mean.dtype))
        square.assign(tf.cast(new_square, square.dtype))
        variable.assign_sub(tf.cast(change, variable.dtype))
