"""Recording a step of PyTorch: its profiler, its counting run, its process."""
