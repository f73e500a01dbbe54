"""Torch tensors on a CUDA device: `tensors` (sparse codes there), `gradients` through these, `pursuits` of many signals
and their Triton `kernels`. All but the first are imported where they are used."""
