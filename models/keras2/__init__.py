"""The models in Keras 2 (tf_keras, on TensorFlow), read by the keras2 backend.

A model is a file that offers two functions, both made from the builder in `models/_keras`, which Keras 3 has too:

    network(dims) -> tf_keras.Model  the model alone, with the dimensions of `roofline.models.dimensions`
    build(workload) -> Step          weights, inputs, loss and optimizer, ready to run once per iteration

BERT, DistilBERT and GPT-2 are the published classes of KerasNLP 0.8.2, the version of the published Keras benchmark;
where those differ from the models in PyTorch, the model's docstring says so. KerasNLP takes Keras 2 only where
TF_USE_LEGACY_KERAS=1 was set before TensorFlow was imported, and no other KERAS_BACKEND.

Each one-step call wraps its batch in a tf.data dataset and an iterator, runs the traced function, and copies the
result (the output as a numpy array, the loss as a number) to the host. With `--input device` the batch is TensorFlow's
tensors. The dataset lies on the host, so on a GPU these travel to it and back in every step; with `--input host` numpy
arrays travel one way.
"""
