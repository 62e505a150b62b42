"""The work of one node of a TensorFlow graph."""
