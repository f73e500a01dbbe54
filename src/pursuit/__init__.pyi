# The public names: read by type checkers, and by __init__.py, which imports a module when one of its names is used.
# A star stands for the names in `__all__` of a room.
from . import geometry as geometry
from . import plots as plots
from . import rates as rates
from . import refine as refine
from .active import ActiveSet as ActiveSet
from .arrays import Space as Space
from .atoms import *
from .checks import check_atoms as check_atoms
from .checks import check_objective as check_objective
from .citing import citation as citation
from .cluster.sharded import Sharded as Sharded
from .cluster.sums import ShardedSum as ShardedSum
from .coding import encode as encode
from .coding.files import StoredCodes as StoredCodes
from .coding.files import encode_to as encode_to
from .coding.prepared import Coder as Coder
from .derivatives import differentiate as differentiate
from .dictionaries import Learned as Learned
from .dictionaries import LearnedTemplates as LearnedTemplates
from .dictionaries import learn as learn
from .domains import Answer as Answer
from .domains import Domain as Domain
from .domains import cone as cone
from .domains import conv as conv
from .domains import lin as lin
from .domains import penalty as penalty
from .domains import product as product
from .line_search import UnboundedError as UnboundedError
from .models import load as load
from .objectives import *
from .oracles import Approximate as Approximate
from .oracles import Exact as Exact
from .oracles import Lazy as Lazy
from .oracles import Oracle as Oracle
from .oracles import RandomAtom as RandomAtom
from .paths import Path as Path
from .paths import path as path
from .refine import Refine as Refine
from .run.result import Result as Result
from .run.result import State as State
from .run.stop import Status as Status
from .run.stop import Stop as Stop
from .run.trace import Trace as Trace
from .solve import iterate as iterate
from .solve import minimize as minimize
from .state import Stateful as Stateful
from .steps import *
from .stochastic import Homotopy as Homotopy
from .stochastic import Stochastic as Stochastic
from .subsets import BestSubset as BestSubset
from .subsets import best as best
from .updates import *

__version__: str
__all__: list[str]
