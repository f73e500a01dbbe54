"""pursuit: smooth convex functions over the hull, cone or span of a set of atoms, with a certificate.

Matching pursuit and Frank-Wolfe are one loop here, `minimize(f, domain, update)`. The modules, in the order data flows:

| module | content |
|---|---|
| `linalg` | linear algebra that several modules share |
| `objectives`, `stochastic` | the functions to minimise |
| `atoms` | the sets of atoms |
| `active`, `weights` | the active set, and the small problems in its weights |
| `domains` | `conv`, `cone`, `lin`, `penalty`, their sums and products |
| `oracles` | the search for the next atom: exact, approximate, lazy, random |
| `steps`, `updates` | step lengths; the change of the weights |
| `refine` | the change of the atoms themselves |
| `certificates` | lower bounds on the minimum |
| `run` | what one run needs: method, first atoms, checks, states, stopping rules, results, files |
| `solve` | the loop, `minimize` |
| `paths` | `path`: one problem at several radii or sizes |
| `subsets` | `best`: the best few atoms, proved against all others |
| `derivatives` | `differentiate`: how a solution changes with its problem |
| `coding` | `encode`: many signals at once; `encode_to`: from and to files |
| `cluster` | columns, samples and signals spread over the workers of a dask cluster |
| `dictionaries` | `learn`: dictionaries on which given signals have sparse codes |
| `geometry`, `rates`, `promises` | the theory, as functions |
| `estimators` | scikit-learn's estimators; needs scikit-learn, so import it by name |
| `models` | `load`: saved estimators |
| `plots`, `report` | figures; pages about results and models, in one HTML file each |
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
