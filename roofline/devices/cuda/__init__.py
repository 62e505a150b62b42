"""Measure the ceilings of a GPU through torch: one file per family of ceilings.

`probes` lists them all. `card` describes the GPU, `timer` times work on it, and `nvrtc` compiles kernels of our own.
"""
