"""The models in Keras 3, on whichever backend KERAS_BACKEND names before Keras is imported.

One package serves the keras-torch, keras-jax and keras-tensorflow backends. A model is a file that offers two
functions, both made from the builder in `models/_keras`, which Keras 2 has too:

    network(dims) -> keras.Model    the model alone, with the dimensions of `roofline.models.dimensions`
    build(workload) -> Step         weights, inputs, loss and optimizer, ready to run once per iteration

BERT, DistilBERT and GPT-2 are the published classes of keras_hub; where those differ from the models in PyTorch, the
model's docstring says so.

Both one-step calls wait for the result: `predict_on_batch` copies its output to the host as a numpy array,
`train_on_batch` its loss as a number. With `--input device` they are given tensors of the backend that already lie on
the device, which no backend copies again (TensorFlow and JAX pass them through, PyTorch as well); with `--input host`
numpy arrays, which all three copy to the device in every step.

`_step.user_state_kept()` is for a caller that is not alone in its process.
"""
