"""Steps compiled by `torch.compile`: generated kernels and what they were fused of."""
