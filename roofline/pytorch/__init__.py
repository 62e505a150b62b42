"""PyTorch's ops: what ran, its work and its time, on a CPU and on a CUDA GPU."""
