r"""The small problems on the active set, solved exactly.

.. math:: \min_w \tfrac12 w^\top G w - c^\top w, \quad w_i \ge 0 \text{ for non-negative weights}, \quad
          \sum_{i \in b} w_i = s_b \text{ for blocks } b \text{ with a total}.

Free weights without a total are the span, non-negative ones the cone, non-negative ones with total 1 the hull; sums of
domains are several blocks. `WeightProblem` solves all of them by one primal active-set method: Lawson and Hanson's
(1974), warm-started and with totals. `projected_gradient` is the paper's cheaper alternative.

The method
----------
The *passive* weights may change: all free ones, and the non-negative ones that are not held at zero. A
non-negative weight is passive at first if it is not zero at the start. Let :math:`g = G w - c` be the slope and
:math:`\lambda_b` the multipliers of the totals (zero for blocks without one).

1. *Target.* Minimise over the passive weights alone, signs left out, by their Cholesky factor; call the minimiser z.
2. *Cut.* If some non-negative :math:`z_i \le 0`, go from w towards z by
   :math:`\theta = \min w_i / (w_i - z_i)` over these i. The weights that reach zero are set to zero exactly and leave
   the passive set; go to 1.
3. *Enter.* Otherwise w = z. Of the weights held at zero with :math:`g_i + \lambda_{b(i)} < -\tau_i`, the one with the
   most negative :math:`(g_i + \lambda_{b(i)}) / \sigma_i` becomes passive, at the value 0; go to 1. The length
   :math:`\sigma_i = \sqrt{G_{ii} + \alpha_{b(i)}}` (:math:`\alpha = 0` without a total: the norm of atom i) makes the
   rule that of matching pursuit: the atom with the largest normalised correlation enters, in any scaling of the atoms.
4. *End.* If there is none, the Karush-Kuhn-Tucker conditions hold up to rounding. One step of iterative refinement
   follows.

Rounding matters in two places. The slope counts as zero within
:math:`\tau_i = 8 u\,(\sqrt{G_{ii}} \sum_j \sqrt{G_{jj}} |d_j| + |q_i| + |\lambda_{b(i)}|)`, where q is the slope at the
start, d = w - start, and u the spacing of floats at 1; a caller may ask for a larger :math:`\tau`. And an atom
that depends on the passive ones, with coefficients y, does not enter next to them: where its squared pivot is at most
:math:`(k + 2) u \max(16, \|y\|_1^2)` of its squared length, it is exchanged for the first of them that reaches zero
along :math:`e_i - y`, a direction without curvature, or stays at zero. A weight that entered and could not move is not
tried again before the objective has fallen by 1e-9 of its decrease so far, so the method does not cycle. After
10 k + 50 rounds it ends in any case, with weights that are feasible and not worse than the start.

Feasible means: no weight that must not be is negative, and sums differ from their totals by at most (k + 16) u of the
sum of the :math:`|w_i|`, whatever the lengths of the atoms and the size of G beside q. Otherwise the answer is the
start.
"""

from pursuit.weights.passive import Mask
from pursuit.weights.problem import WeightProblem, nearest_feasible, projected_gradient

__all__ = ["Mask", "WeightProblem", "nearest_feasible", "projected_gradient"]
