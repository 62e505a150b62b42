"""The models in Keras 3, on whichever backend KERAS_BACKEND names before Keras is imported.

One package serves the keras-torch, keras-jax and keras-tensorflow backends. BERT, DistilBERT and GPT-2 are the
published classes of keras_hub; where those differ from the models in PyTorch, the model's docstring says so. A
model is a file that offers two functions:

    network(dims) -> keras.Model    the model alone, with the dimensions of `roofline.models.dimensions`
    build(workload) -> Step         weights, inputs, loss and optimizer, ready to run once per iteration

A step is Keras's own one-step call, `predict_on_batch` or `train_on_batch`. Both wait for the result: the first
copies its output to the host as a numpy array, the second its loss as a number.
With `--input device` they are given tensors of the backend that already lie on the device, which no backend
copies again (TensorFlow and JAX pass them through, PyTorch as well); with `--input host` numpy arrays, which all
three copy to the device in every step.

The optimizer is called "optimizer" and the loss "loss", so that the names that Keras gives to ops are the same
for every model: `optimizer/...` and `compile_loss/...`. `_step.user_state_kept()` is for a caller that is not
alone in its process.
"""
