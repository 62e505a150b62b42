"""Steps traced by `torch.jit` and run by its executor."""
