"""One builder per model for Keras 3 and Keras 2, which differ in little that a model sees.

A model is a file that offers two functions, both of which take the Keras to build it in:

    network(version, dims) -> a Keras model    the model alone, with the dimensions of `roofline.models.dimensions`
    build(version, workload) -> Step           weights, inputs, loss and optimizer, ready to run once per iteration

`version` is `roofline.models.keras._step` or `roofline.models.keras2._step`: the module of Keras, its library of
transformers, and what only that version does (`version.Version`). `models/keras/<model>.py` and
`models/keras2/<model>.py` name it, in one line per function, and say in which the published classes differ.

A step is Keras's own one-step call, `predict_on_batch` or `train_on_batch`. The optimizer is called "optimizer" and
the loss "loss", so that the names that Keras gives to ops are the same for every model: `optimizer/...` and
`compile_loss/...`.
"""
