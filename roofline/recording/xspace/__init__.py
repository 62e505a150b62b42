"""Recording steps of frameworks that profile themselves into XSpace bytes: JAX, TensorFlow and Keras on them."""
