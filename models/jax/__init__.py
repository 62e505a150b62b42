"""The models in native JAX (flax nnx, optax), read by the jax backend.

A model is a file that offers two functions:

    network(dims, make) -> nnx.Module       the model alone; `make` (`_layers.Make`) knows dtypes and initial values
    build(workload, changes=None) -> Step   weights, inputs, loss and optimizer, ready to run once per iteration

`build` may set JAX's default matmul precision (`--precision fp32|tf32`); a caller that is not alone in its process
wraps building and running in `_step.user_state_kept()`. `step.run()` enqueues one jitted function and returns its
outputs, which may not be there yet: the logits (infer), the loss (train), loss and gradients (`--no-optimizer`).
`step.model` is a `_program.Program`: the jitted function, its arguments, the present parameters.

Layers, their attributes and their scopes are named as in the PyTorch models (`bert/encoder/layer.3/attention`), so that
blocks and weights of the two can be laid side by side. Matrices are stored (in, out), images are (height, width,
channels).
"""
