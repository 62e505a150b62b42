"""The models in native PyTorch, read by the torch, torch-compile and torchscript backends.

A model is a file that offers two functions:

    network(dims) -> nn.Module      the model alone, with the dimensions of `roofline.models.dimensions`
    build(workload) -> Step         weights, inputs, loss and optimizer, ready to run once per iteration

`build` seeds PyTorch's generator and may set its float32 switches (`--precision fp32|tf32`); a caller that is
not alone in its process wraps building and running in `_step.user_state_kept()`.
A step always calls `step.model(...)`, so a backend may replace the model's forward in place, as
`step.model.compile()` does. Its own parts run under `scope("input")`, `scope("loss")` and
`scope("optimizer")`; the scopes of modules are their names in the module tree.
"""
