"""Triton kernels of the pursuits.

Orthogonal pursuits keep, for each signal, the coefficients M of an orthonormal basis of its active atoms: the new
direction q_t = sum_l M[t, l] a_l follows from their products alone (`basis.direction`). An atom a_j with products g_l =
<a_l, a_j> has

    w = M g,   nu^2 = |a_j|^2 - |w|^2,   M[t] = (e_t - M'w) / nu,

and the step along q_t is c / nu with c = <r, a_j>: the weights x move by c M[t] / nu.

`searches`: `search` finds the best atom of every block of columns for all signals on the tensor cores, in float16, and
`advance` takes the best of these in full precision. For a residual of norm 1 and atoms of norm at most 1, products in
float16 differ from the exact ones by at most

    e = |r - r16| + |a - a16| + (d / 16 + 16) 2^-22,

the last term for the rounding of the sums: only atoms within 2 e of the best need be compared.

`updates`: `pursue`, `match` and `descend` keep the products of all atoms with a signal, and update them by rows of the
Gram matrix in one program a signal: few launches, for few signals or few columns.

Vectors of any length are read in pieces: WIDTH entries of a signal or products of a dictionary, PART rows of M.
"""

from pursuit.gpu.kernels.basis import pack, prepare
from pursuit.gpu.kernels.searches import advance, begin, search, search_short
from pursuit.gpu.kernels.updates import descend, match, pursue

__all__ = ["advance", "begin", "descend", "match", "pack", "prepare", "pursue", "search", "search_short"]
