"""TensorFlow's graph executor: what ran, its work and its time."""
