"""The executable paper: every theorem, corollary and lemma is tested on problems, with exact and adversarial oracles.

The paper is F. Locatello, R. Khanna, M. Tschannen, M. Jaggi: A Unified Optimization View on Generalized Matching
Pursuit and Frank-Wolfe, AISTATS 2017; theorems, definitions, corollaries and lemmas share one counter there. The
promised numbers come from `pursuit.rates` and `pursuit.geometry`, the measured ones from runs of `pursuit.iterate`.

| module | what |
|---|---|
| `claims` | cases, claims, rows and their verdicts |
| `problems` | what is minimised, over which atoms |
| `sublinear`, `linear` | rates |
| `sets` | coherence, curvature, strong convexity, lemmas |
| `later` | rates of methods that are later than the paper |
| `equivalence` | Frank-Wolfe tends to matching pursuit; affine invariance |
| `document` | the table and the page |
| `experiments` | the experiment of the appendix, and its figures |
"""

from pursuit.paper import equivalence, experiments, later, linear, sets, sublinear
from pursuit.paper.claims import Case, Claim, Plan, Row
from pursuit.paper.experiments import experiment

ORDER = """
theorem_1 theorem_2 theorem_2_sharp equation_rho corollary_4 theorem_7 theorem_8 theorem_8_sharp corollary_9 theorem_10
sparse_targets theorem_11 theorem_12 theorem_13 affine_invariance theorem_14 oracle_qualities lemma_15 lemma_16 lemma_17
lemma_18 appendix other_norms additive_errors cone_pursuit away_steps pairwise_steps lazy_oracle
backtracking random_pursuit atomic_norm acceleration
"""
"""The order of the paper, then later methods."""

_FOUND = {
    name: value
    for module in (equivalence, experiments, later, linear, sets, sublinear)
    for name, value in vars(module).items()
    if isinstance(value, Claim)
}
CLAIMS: tuple[Claim, ...] = tuple(_FOUND[name] for name in ORDER.split())

__all__ = ["CLAIMS", "Case", "Claim", "Plan", "Row", "experiment"]
