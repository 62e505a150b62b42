"""XSpace and XPlane, what XLA's profiler writes."""
