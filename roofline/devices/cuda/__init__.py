"""The ceilings of a GPU, measured through torch: one file per family, and what they share.

`probes` lists them all. `card` says what the GPU is, `timer` how work on it is timed, and `nvrtc` compiles kernels of
our own.
"""
