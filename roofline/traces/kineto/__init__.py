"""Read what `torch.profiler` writes: ops, launches, kernels, steps, and how they hang together."""
