"""Torch tensors on a CUDA device: `tensors` (sparse codes there), `pursuits` of many signals and their Triton
`kernels`, which are imported where a CUDA tensor is coded."""
