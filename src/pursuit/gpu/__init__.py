"""Torch tensors on a CUDA device: `tensors` (sparse codes there), `omp` (orthogonal matching pursuit) and its Triton
`kernels`, which are imported where a CUDA tensor is coded."""
