"""BibTeX entries of the works to cite for an algorithm."""

from __future__ import annotations

from typing import Any

from pursuit.domains import Cone, Domain
from pursuit.objectives import Objective
from pursuit.run.method import Given, choose
from pursuit.steps import Backtracking
from pursuit.stochastic import Stochastic
from pursuit.updates import (
    AcceleratedPursuit,
    Away,
    BlendedPairwise,
    BlendedPursuit,
    Blocks,
    DecompositionInvariant,
    FullyCorrective,
    Pairwise,
)

WORKS = {
    "locatello2017unified": """@inproceedings{locatello2017unified,
  author    = {Locatello, Francesco and Khanna, Rajiv and Tschannen, Michael and Jaggi, Martin},
  title     = {A Unified Optimization View on Generalized Matching Pursuit and {Frank-Wolfe}},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2017}
}""",
    "locatello2017greedy": """@inproceedings{locatello2017greedy,
  author    = {Locatello, Francesco and Tschannen, Michael and R{\\"a}tsch, Gunnar and Jaggi, Martin},
  title     = {Greedy Algorithms for Cone Constrained Optimization with Convergence Guarantees},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2017}
}""",
    "locatello2018matching": """@inproceedings{locatello2018matching,
  author    = {Locatello, Francesco and Raj, Anant and Karimireddy, Sai Praneeth and R{\\"a}tsch, Gunnar and
               Sch{\\"o}lkopf, Bernhard and Stich, Sebastian and Jaggi, Martin},
  title     = {On Matching Pursuit and Coordinate Descent},
  booktitle = {International Conference on Machine Learning},
  year      = {2018}
}""",
    "lacostejulien2015global": """@inproceedings{lacostejulien2015global,
  author    = {Lacoste-Julien, Simon and Jaggi, Martin},
  title     = {On the Global Linear Convergence of {Frank-Wolfe} Optimization Variants},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2015}
}""",
    "tsuji2022pairwise": """@inproceedings{tsuji2022pairwise,
  author    = {Tsuji, Kazuma and Tanaka, Ken'ichiro and Pokutta, Sebastian},
  title     = {Pairwise Conditional Gradients without Swap Steps and Sparser Kernel Herding},
  booktitle = {International Conference on Machine Learning},
  year      = {2022}
}""",
    "combettes2019blended": """@inproceedings{combettes2019blended,
  author    = {Combettes, Cyrille and Pokutta, Sebastian},
  title     = {Blended Matching Pursuit},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2019}
}""",
    "pedregosa2020linearly": """@inproceedings{pedregosa2020linearly,
  author    = {Pedregosa, Fabian and N{\\'e}giar, Geoffrey and Askari, Armin and Jaggi, Martin},
  title     = {Linearly Convergent {Frank-Wolfe} with Backtracking Line-Search},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2020}
}""",
    "garber2016linear": """@inproceedings{garber2016linear,
  author    = {Garber, Dan and Meshi, Ofer},
  title     = {Linear-Memory and Decomposition-Invariant Linearly Convergent Conditional Gradient Algorithm for
               Structured Polytopes},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2016}
}""",
    "lacostejulien2013block": """@inproceedings{lacostejulien2013block,
  author    = {Lacoste-Julien, Simon and Jaggi, Martin and Schmidt, Mark and Pletscher, Patrick},
  title     = {Block-Coordinate {Frank-Wolfe} Optimization for Structural {SVMs}},
  booktitle = {International Conference on Machine Learning},
  year      = {2013}
}""",
    "mokhtari2020stochastic": """@article{mokhtari2020stochastic,
  author  = {Mokhtari, Aryan and Hassani, Hamed and Karbasi, Amin},
  title   = {Stochastic Conditional Gradient Methods: From Convex Minimization to Submodular Maximization},
  journal = {Journal of Machine Learning Research},
  year    = {2020}
}""",
    "pati1993orthogonal": """@inproceedings{pati1993orthogonal,
  author    = {Pati, Yagyensh Chandra and Rezaiifar, Ramin and Krishnaprasad, Perinkulam Sambamurthy},
  title     = {Orthogonal Matching Pursuit: Recursive Function Approximation with Applications to Wavelet
               Decomposition},
  booktitle = {Asilomar Conference on Signals, Systems and Computers},
  year      = {1993}
}""",
}

BY_UPDATE = {
    Away: "lacostejulien2015global",
    Pairwise: "lacostejulien2015global",
    BlendedPairwise: "tsuji2022pairwise",
    BlendedPursuit: "combettes2019blended",
    AcceleratedPursuit: "locatello2018matching",
    DecompositionInvariant: "garber2016linear",
    Blocks: "lacostejulien2013block",
}


def citation(f: Objective, domain: Domain, update: Any = None) -> str:
    """BibTeX entries of the methods that `minimize(f, domain, update)` uses, the paper first.

    >>> import pursuit as ps
    >>> text = ps.citation(ps.LeastSquares([1.0]), ps.conv(ps.Simplex(1)), ps.Away())
    >>> [line.split("{")[1].strip(",") for line in text.splitlines() if line.startswith("@")]
    ['locatello2017unified', 'lacostejulien2015global']
    """
    update = choose(f, domain, Given(update, None, None)).method.update
    keys = ["locatello2017unified"]
    if any(isinstance(part, Cone) for part in domain.parts):
        keys.append("locatello2017greedy")
    if type(update) in BY_UPDATE:
        keys.append(BY_UPDATE[type(update)])
    spans = all(part.signless for part in domain.parts)
    if spans and f.quadratic and isinstance(update, FullyCorrective):
        keys.append("pati1993orthogonal")
    smoothness = getattr(update, "L", None) or getattr(getattr(update, "step", None), "L", None)
    if isinstance(smoothness, Backtracking):
        keys.append("pedregosa2020linearly")
    if isinstance(f, Stochastic):
        keys.append("mokhtari2020stochastic")
    return "\n\n".join(WORKS[key] for key in keys)
