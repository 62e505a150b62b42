"""Handle Keras on every engine: its environment, its optimizers, its layers' names, the memory of its models."""
