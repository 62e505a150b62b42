"""The difference of two runs by class, op or kernel: for runs that do not say where in the model their ops are."""
