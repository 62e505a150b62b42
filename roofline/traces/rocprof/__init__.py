"""Read the JSON of AMD's rocprofv3 into the tables that traces of torch.profiler have."""
