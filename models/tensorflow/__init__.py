"""The models in native TensorFlow (tf.Module, tf.function, no Keras), for the backends tensorflow and tensorflow-xla.

A model is a file that offers two functions:

    network(dims, dtypes) -> tf.Module    the model alone, with the dimensions of `roofline.models.dimensions`
    build(workload) -> Step               weights, inputs, loss and optimizer, ready to run once per iteration

A step is one tf.function, traced at its first call. `step.run` is a `_step.Launch`: it holds the tf.function and
its arguments, for a backend that reads the graph or the compiled program. `workload.options["jit"]` says who
compiles: "off" (the graph executor, the default), "compile" (`jit_compile=True`), "autocluster" (a switch of the
process; on a CPU TensorFlow only heeds it with TF_XLA_FLAGS=--tf_xla_cpu_global_jit set before its import).

The work is that of `models/torch`: the same parameters, of the same names, attention written out. Name scopes are the
paths of torch's modules, "bert/encoder/layer.3/output/dense"; a trailing slash re-enters a scope, else TensorFlow would
number it. The gradient of an op in scope s is in "gradient_tape/s", sums of gradients are in "gradient_tape".

Building may set the process's TF32 and autoclustering switches; a caller that is not alone in its process wraps
building and running in `_step.user_state_kept()`. No global random state is touched: weights and inputs have seeds of
their own, and so has every dropout.
"""
