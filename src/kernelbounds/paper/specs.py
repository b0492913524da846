"""What the experiments of ``kernelbounds reproduce`` are, as plain data.

A :class:`Job` is a unit of work: it is run by itself, and its result is one file. There are six
kinds of jobs:

==========================  ======================================================================
:class:`Cell`               one method on one random problem, for the paper's tables and figures
:class:`CertificateRun`     one policy on one known function, for ``certificates``
:class:`DesignRuns`         some data sets of one way of collecting, for ``designs``
:class:`Load`               one engine with a number of observations, for ``scale``
:class:`RivalRun`           one bound of the literature, or of ours, on one problem, for ``rivals``
:class:`OptimiserRun`       one optimiser on one function, for ``optimisers``
==========================  ======================================================================

A :class:`Setting` is a family of random problems and what the learner is told of them: a column of
Table 1, a panel of a figure. Experiments that share cells share their results.

The help of the command line imports this file, so it imports scikit-learn only to make a kernel.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import kernelbounds as kb
from kernelbounds.errors import InputError

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

ROUNDS, REPETITIONS = 1000, 10
NORM, NOISE, DELTA = 10.0, 0.1, 0.01  # the truth, and what the learner is told by default
CENTRES, ACTIONS = 20, 100

METHODS = ("CMM", "DMM", "AMM", "AY", "IGP", "Random")
# The appendix's explicit inverses, in plain NumPy, for comparing times.
RECURSIONS = ("AMM recursion", "DMM recursion")
# CMM with radii other than the paper's: of several scales, the library's default, and the limit.
RADII = ("CMM scales", "CMM default", "CMM limit")
TIGHTNESS = ("DMM", "CMM", *RADII)
TIGHTNESS_IF_LOOSE = ("DMM", "CMM", "CMM default")  # where B or sigma is too large

SMOOTHNESS = {"rbf": None, "matern-5/2": 2.5, "matern-3/2": 1.5}
KERNELS = tuple(SMOOTHNESS)
KERNEL_TITLES = {"rbf": "RBF", "matern-5/2": "Matérn-5/2", "matern-3/2": "Matérn-3/2"}
LENGTH_SCALES = (0.5, 0.2)

EXPERIMENTS = {
    "figure1": "the bands of all bounds on one function (Figure 1)",
    "table1": "cumulative regret after T rounds, d = 3 (Table 1)",
    "figure2": "cumulative regret, d = 3 (Figure 2)",
    "figure-time": "time per step, Matern-5/2, length scale 0.5",
    "figure-2d": "cumulative regret, d = 2",
    "figure-4d": "cumulative regret, d = 4",
    "figure-loose": "loose bounds on the norm and the noise, d = 3",
    "theory": "regret of AMM under its proved bounds, with noise and without",
    "tightness": "regret with the default radius, beside the paper's and the limit",
    "certificates": "rounds until a small regret is certified, on four functions",
    "designs": "bounds on data with fixed points, and where the points depend on outcomes",
    "scale": "width, time and memory with up to a million observations",
    "rivals": "every bound of the literature beside ours: width, regret, certified regret, time",
    "optimisers": "Optuna, BoTorch and others beside ours: regret, what is certified, time",
}
WITHOUT_CELLS = ("figure1", "certificates", "designs", "scale", "rivals", "optimisers")

# --- certificates
CERTIFICATE_ROUNDS, CERTIFICATE_REPETITIONS = 400, 3  # at most
CERTIFICATE_NOISE, CERTIFICATE_DELTA = 0.01, 0.05  # sigma is relative to the function's range
NORM_SLACK = 1.5  # B over the function's norm
REGRET_LEVELS = (0.2, 0.1, 0.05)  # to which the regret is certified, over the function's range
CERTIFICATE_BOUNDS = ("CMM", "DMM")
CERTIFICATE_MIXTURES = ("default", "paper")
# By function: nu and the length scale of two Matern kernels; inputs are in the unit cube.
CERTIFICATE_KERNELS = {
    "wiggly": ((2.5, 0.25), (3.5, 0.5)),
    "branin": ((2.5, 0.5), (3.5, 1.0)),
    "reactor": ((2.5, 1.0), (3.5, 1.0)),
    "hartmann": ((2.5, 0.5), (3.5, 1.0)),
}

# --- designs
DESIGN_DELTA, DESIGN_LENGTH_SCALE = 0.1, 0.5
DESIGN_DIMS = {"matern-5/2": 3, "rbf": 3, "matern-3/2": 1}  # by kernel
# All have standard deviation sigma, and are sub-Gaussian with scale sigma: +-sigma, and uniform on
# +-sqrt(3) sigma, for which E exp(s e/sigma) = sum 3^k s^2k/(2k+1)! and (2k+1)! >= 3^k 2^k k!.
NOISE_LAWS = ("Gaussian", "Rademacher", "uniform")
# How the points come about, with the data sets in a repetition; ``designs.py`` has the rules. Only
# with the first of them are the points fixed before the outcomes.
DESIGNS = {"fixed": 20, "policy": 10, "looks": 20, "hoped": 20, "striking": 20}
DESIGN_TIMES = (30, 100, 300)  # numbers of observations after which bounds are computed
LATE_TIME = 1000  # observations after which the widths of a single data set are computed
POLICY_ROUNDS, LOOK_ROUNDS, SITES = 100, 300, 80  # at most

# --- rivals
RIVAL_ROUNDS, RIVAL_REPETITIONS = 200, 4  # at most: some take a new eigenbasis in every round
RIVAL_TIMES = (10, 30, 100)  # numbers of observations after which widths are measured, and the last
RIVAL_OURS = ("CMM default", "CMM", "CMM limit")

# --- optimisers
OPTIMISER_TRIALS, OPTIMISER_REPETITIONS, OPTIMISER_DIM = 30, 5, 3  # the first two at most
OPTIMISER_TIMES = (10, 20)  # trials after which ours are certified, and the last
# Random functions of the paper, by kernel and length scale, and known functions.
OPTIMISER_SETTINGS = {
    "rbf": ("rbf", 0.5), "matern-5_2": ("matern-5/2", 0.5), "matern-3_2": ("matern-3/2", 0.5),
}  # fmt: skip
OPTIMISER_FUNCTIONS = ("branin", "hartmann", "camel")

# --- scale
SCALE_LENGTH_SCALE, SCALE_DIM = 0.5, 3
SCALE_QUERIES = 1000  # points at which bounds are computed
REPEATED_SITES = 200  # different points, where observations are repeated
SCALE_COUNTS = (250, 1000, 4000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000, 10_000_000)
# The number of inducing points that are given: with these, bounds are at most a few percent wider.
INDUCING = {"rbf": 512, "matern-5/2": 1024}
ENGINES = ("exact", "sparse", "grown", "merged")
EXACT_COUNT = 4000  # most observations: the kernel matrix has the square of this many entries
UNGIVEN_COUNT = 1_000_000  # most observations where no inducing points are given
# The share of the largest number of observations that each kernel goes up to: rough kernels take
# ten times the time, for more inducing points and for what those do not see.
COUNT_SHARE = {"rbf": 1.0, "matern-5/2": 1 / 15}


def kernel_named(name: str, length_scale: float) -> Kernel:
    """Make one of ``KERNELS`` as a scikit-learn kernel."""
    from sklearn.gaussian_process.kernels import RBF, Matern

    nu = SMOOTHNESS[name]
    return RBF(length_scale) if nu is None else Matern(length_scale=length_scale, nu=nu)


@dataclass(frozen=True)
class Setting:
    """A family of problems in [0, 1]^dim, and the norm bound and noise scale that are believed.

    A ``noiseless`` family has no noise, whatever is believed.
    """

    kernel: str
    length_scale: float
    dim: int = 3
    rounds: int = ROUNDS
    norm_bound: float = NORM
    noise_scale: float = NOISE
    noiseless: bool = False

    @property
    def name(self) -> str:
        """A short name that is also fit for a file."""
        believed = f"B{self.norm_bound:g}-s{self.noise_scale:g}"
        kernel = f"{_for_file(self.kernel)}-l{self.length_scale:g}-d{self.dim}"
        return f"{kernel}-{believed}-T{self.rounds}{'-noiseless' if self.noiseless else ''}"

    @property
    def title(self) -> str:
        """The kernel and its length scale, for the head of a column or a panel."""
        return f"{KERNEL_TITLES[self.kernel]}, ℓ = {self.length_scale:g}"

    @property
    def believed(self) -> str:
        """What is believed of the noise and the norm, for the head of a panel."""
        return f"believed σ = {self.noise_scale:g}, B = {self.norm_bound:g}"

    @property
    def is_loose(self) -> bool:
        """Whether the norm or the noise is believed to be larger than it is."""
        return (self.norm_bound, self.noise_scale) != (NORM, NOISE)

    def make_kernel(self) -> Kernel:
        """Make the scikit-learn kernel."""
        return kernel_named(self.kernel, self.length_scale)


@dataclass(frozen=True)
class Job(ABC):
    """A unit of work; what is random in it depends on its seed, its repetition and its problem."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A name that is unique among jobs, and fit for a file."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the cost of the job depends on."""

    @property
    def timed(self) -> bool:
        """Whether the job is run with nothing beside it."""
        return False

    @property
    def packages(self) -> tuple[str, ...]:
        """The optional packages that the numbers depend on."""
        return ()

    def as_data(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Cell(Job):
    """One method on one problem.

    The problem, its actions and its noise depend on the seed and the repetition alone, so that
    all methods play the same problems. A bound of a user's own has a ``fingerprint``, so that it
    is run again when it was changed.
    """

    setting: Setting
    method: str
    repetition: int
    seed: int = 0
    timed: bool = False
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """The setting, the seed, the method and the repetition."""
        method = self.method.replace(" ", "_").replace(":", "-")
        timed = "-timed" if self.timed else ""
        return f"{self.setting.name}-seed{self.seed}-{method}{timed}-{self.repetition}"

    @property
    def kind(self) -> str:
        """The method."""
        return self.method

    def as_data(self) -> dict[str, Any]:
        """Return the fields, without those that only some cells have."""
        data = asdict(self)
        if not self.setting.noiseless:
            del data["setting"]["noiseless"]
        if not self.fingerprint:
            del data["fingerprint"]
        return data


@dataclass(frozen=True)
class CertificateRun(Job):
    """KernelUCB on one known function; the noise depends on the seed and the repetition alone."""

    function: str
    nu: float
    length_scale: float
    bound: str
    mixture: str
    repetition: int
    rounds: int = CERTIFICATE_ROUNDS
    seed: int = 0

    @property
    def name(self) -> str:
        """The function, the kernel, the policy and the repetition."""
        kernel = f"nu{self.nu:g}-l{self.length_scale:g}"
        run = f"T{self.rounds}-seed{self.seed}-{self.repetition}"
        return f"certificate-{self.function}-{kernel}-{self.bound}-{self.mixture}-{run}"

    @property
    def kind(self) -> str:
        """The bound."""
        return self.bound


@dataclass(frozen=True)
class DesignRuns(Job):
    """Some data sets of one way of collecting, and the bounds on them.

    Functions depend on the kernel, the seed, the repetition and the number of the data set alone.
    """

    kernel: str
    design: str
    law: str
    repetition: int
    rounds: int = ROUNDS
    seed: int = 0

    @property
    def name(self) -> str:
        """The design, the kernel, the law of the noise and the repetition."""
        run = f"T{self.rounds}-seed{self.seed}-{self.repetition}"
        return f"design-{self.design}-{_for_file(self.kernel)}-{self.law}-{run}"

    @property
    def kind(self) -> str:
        """The design."""
        return self.design

    @property
    def dim(self) -> int:
        """The number of inputs, which are in the unit cube."""
        return DESIGN_DIMS[self.kernel]

    @property
    def runs(self) -> int:
        """The number of data sets, in proportion to the rounds."""
        return max(2, DESIGNS[self.design] * min(self.rounds, ROUNDS) // ROUNDS)

    @property
    def times(self) -> list[int]:
        """After how many observations bounds are computed, where that is fixed beforehand."""
        most = min(self.rounds, POLICY_ROUNDS if self.design == "policy" else max(DESIGN_TIMES))
        return [t for t in DESIGN_TIMES if t <= most] or [most]


@dataclass(frozen=True)
class Load(Job):
    """A number of observations of one function, which depends on the kernel and the seed alone.

    A load is run in a process of its own, so that its memory is its own.
    """

    kernel: str
    engine: str
    count: int
    seed: int = 0
    repetition: int = 0
    timed = True

    @property
    def name(self) -> str:
        """The kernel, the engine, the number of observations and the seed."""
        run = f"n{self.count}-seed{self.seed}-{self.repetition}"
        return f"scale-{_for_file(self.kernel)}-{self.engine}-{run}"

    @property
    def kind(self) -> str:
        """The engine."""
        return self.engine


@dataclass(frozen=True)
class RivalRun(Job):
    """One bound on one problem of Table 1, which depends on the seed and the repetition alone."""

    setting: Setting
    method: str
    repetition: int
    seed: int = 0
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """The setting, the seed, the method and the repetition."""
        method = self.method.replace(" ", "_").replace(":", "-")
        return f"rivals-{self.setting.name}-seed{self.seed}-{method}-{self.repetition}"

    @property
    def kind(self) -> str:
        """The method."""
        return self.method


@dataclass(frozen=True)
class OptimiserRun(Job):
    """One optimiser on one function; the noise depends on the seed and the repetition alone."""

    function: str
    method: str
    trials: int
    repetition: int
    seed: int = 0

    @property
    def name(self) -> str:
        """The function, the method, the number of trials, the seed and the repetition."""
        method = re.sub(r"\W+", "_", self.method)
        run = f"T{self.trials}-seed{self.seed}-{self.repetition}"
        return f"optimisers-{self.function}-{method}-{run}"

    @property
    def kind(self) -> str:
        """The method."""
        return self.method

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that the method needs."""
        from kernelbounds.paper.contenders import CONTENDERS

        return CONTENDERS[self.method].packages


@dataclass(frozen=True)
class Choices:
    """What a user narrows; ``methods`` may name bounds of their own, see :func:`bound_of`."""

    rounds: int = ROUNDS
    repetitions: int = REPETITIONS
    seed: int = 0
    methods: Sequence[str] = METHODS
    kernels: Sequence[str] = KERNELS

    def __post_init__(self) -> None:
        for name, least in (("rounds", 2), ("repetitions", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number of at least {least}, got {value}.")
        refuse_unknown("method", self.methods, METHODS, self.users_own)
        refuse_unknown("kernel", self.kernels, KERNELS)
        for method in self.users_own:
            bound_of(method)

    @property
    def users_own(self) -> list[str]:
        """The methods that are bounds of the user's own."""
        return [method for method in dict.fromkeys(self.methods) if is_users_own(method)]


def settings(experiment: str, choices: Choices) -> list[Setting]:
    """Return the settings of an experiment, in the paper's order."""
    kernels = [kernel for kernel in KERNELS if kernel in choices.kernels]
    if experiment == "theory":
        return [Setting(kernel, 0.5, 3, choices.rounds) for kernel in kernels] + [
            Setting(kernel, 0.2, 2, horizon, noise_scale=0.0, noiseless=True)
            for kernel in kernels
            for horizon in horizons(choices.rounds)
        ]
    if experiment in ("figure-time", "figure-loose"):
        one = Setting("matern-5/2", 0.5, rounds=choices.rounds)
        return [one] if experiment == "figure-time" else loosened(one)
    dim = {"figure-2d": 2, "figure-4d": 4}.get(experiment, 3)
    found = [Setting(k, scale, dim, choices.rounds) for k in kernels for scale in LENGTH_SCALES]
    if experiment == "tightness":
        found += [other for s in found if s.kernel == "matern-5/2" for other in loosened(s)[1:]]
    return found


def loosened(setting: Setting) -> list[Setting]:
    """Return the setting, and those with the believed norm, noise or both twice too large."""
    return [
        replace(setting, norm_bound=norm, noise_scale=noise)
        for noise in (NOISE, 2 * NOISE)
        for norm in (NORM, 2 * NORM)
    ]


def horizons(rounds: int) -> list[int]:
    """Return the T of runs without noise, whose ridge depends on T: each is a run of its own."""
    return sorted({max(2, rounds // part) for part in (1, 2, 4, 8)})


def cells(experiment: str, choices: Choices) -> list[Cell]:
    """Return all cells of an experiment; none for those of ``WITHOUT_CELLS``."""
    if experiment in WITHOUT_CELLS:
        return []
    methods = [*(method for method in METHODS if method in choices.methods), *choices.users_own]
    timed = experiment == "figure-time"
    if timed:
        methods = [method for method in (*methods, *RECURSIONS) if method != "Random"]
    elif experiment == "theory":
        methods = ["AMM"]
    elif experiment == "tightness":
        methods = [*TIGHTNESS]
    fingerprints = {
        method: fingerprint(bound_of(method)) for method in methods if is_users_own(method)
    }
    return [
        Cell(setting, method, repetition, choices.seed, timed, fingerprints.get(method, ""))
        for setting in settings(experiment, choices)
        for repetition in range(choices.repetitions)
        for method in methods
        if experiment != "tightness" or not setting.is_loose or method in TIGHTNESS_IF_LOOSE
    ]


def certificate_runs(choices: Choices) -> list[CertificateRun]:
    """Return all runs of ``certificates``, whose methods and kernels are its own."""
    rounds = min(choices.rounds, CERTIFICATE_ROUNDS)
    return [
        CertificateRun(function, *kernel, bound, mixture, repetition, rounds, choices.seed)
        for function, kernels in CERTIFICATE_KERNELS.items()
        for kernel in kernels
        for bound in CERTIFICATE_BOUNDS
        for mixture in CERTIFICATE_MIXTURES
        for repetition in range(min(choices.repetitions, CERTIFICATE_REPETITIONS))
    ]


def design_runs(choices: Choices) -> list[DesignRuns]:
    """Return all runs of ``designs``, whose methods and kernels are its own.

    Rules that look at outcomes meet all laws of noise with the first kernel only. Looking again at
    a single point has nothing to do with the kernel.
    """
    first = next(iter(DESIGN_DIMS))
    return [
        DesignRuns(kernel, design, law, repetition, choices.rounds, choices.seed)
        for design in DESIGNS
        for kernel in DESIGN_DIMS
        for law in NOISE_LAWS
        if design == "fixed" or kernel == first or (law == "Gaussian" and design != "looks")
        for repetition in range(choices.repetitions)
    ]


def loads(choices: Choices) -> list[Load]:
    """Return all loads of ``scale``, with up to the square of the rounds: 1000 for a million."""
    most = {"exact": EXACT_COUNT, "sparse": max(SCALE_COUNTS)}
    return [
        Load(kernel, engine, count, choices.seed)
        for kernel in INDUCING
        if kernel in choices.kernels
        for engine in ENGINES
        for count in SCALE_COUNTS
        if count <= max(choices.rounds**2 * COUNT_SHARE[kernel], SCALE_COUNTS[0])
        and count <= most.get(engine, UNGIVEN_COUNT)
    ]


def rival_runs(choices: Choices) -> list[RivalRun]:
    """Return all runs of ``rivals``, whose methods are its own and the user's own."""
    from kernelbounds.bounds import RIVALS

    smaller = replace(choices, rounds=min(choices.rounds, RIVAL_ROUNDS))
    fingerprints = {method: fingerprint(bound_of(method)) for method in choices.users_own}
    return [
        RivalRun(setting, method, repetition, choices.seed, fingerprints.get(method, ""))
        for setting in settings("rivals", smaller)
        for repetition in range(min(choices.repetitions, RIVAL_REPETITIONS))
        for method in (*RIVAL_OURS, *RIVALS, *choices.users_own)
    ]


def optimiser_runs(choices: Choices) -> list[OptimiserRun]:
    """Return all runs of ``optimisers``, whose methods are its own and those that are installed."""
    from kernelbounds.paper.contenders import CONTENDERS

    random = [name for name, (one, _) in OPTIMISER_SETTINGS.items() if one in choices.kernels]
    trials = min(choices.rounds, OPTIMISER_TRIALS)
    return [
        OptimiserRun(function, method, trials, repetition, choices.seed)
        for repetition in range(min(choices.repetitions, OPTIMISER_REPETITIONS))
        for function in (*random, *OPTIMISER_FUNCTIONS)
        for method, one in CONTENDERS.items()
        if one.installed
    ]


def jobs(experiment: str, choices: Choices) -> list[Job]:
    """Return all that has to be run for an experiment."""
    match experiment:
        case "certificates":
            return [*certificate_runs(choices)]
        case "designs":
            return [*design_runs(choices)]
        case "scale":
            return [*loads(choices)]
        case "rivals":
            return [*rival_runs(choices)]
        case "optimisers":
            return [*optimiser_runs(choices)]
    return [*cells(experiment, choices)]


def all_jobs(experiments: Iterable[str], choices: Choices) -> list[Job]:
    """Return the jobs of several experiments, each once."""
    return list(dict.fromkeys(job for name in experiments for job in jobs(name, choices)))


def checked_experiments(names: Sequence[str]) -> list[str]:
    """Check names of experiments, and spell out ``all``."""
    refuse_unknown("experiment", [name for name in names if name != "all"], tuple(EXPERIMENTS))
    return list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))


def refuse_unknown(
    noun: str, given: Sequence[str], known: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Refuse names that are neither known nor among ``more``, and an empty list of names."""
    unknown = [name for name in given if name not in known and name not in more]
    if unknown or (not given and noun != "experiment"):
        what = f"no {noun} is called {', '.join(map(repr, unknown))}" if unknown else f"no {noun}"
        others = ", and package.module:Name for a bound of your own" if noun == "method" else ""
        raise InputError(f"{what}; there are {', '.join(known)}{others}.")


def _for_file(kernel: str) -> str:
    return kernel.replace("/", "_")


# --- bounds of a user's own, named by where they are imported from: ``package.module:Name``


def is_users_own(method: str) -> bool:
    """Whether a method is a place to import a bound from, and not a name of the paper's."""
    return ":" in method


def bound_of(method: str) -> kb.Bound:
    """Import a bound that policies can use, or make one by a class without arguments."""
    from kernelbounds.bounds.by_name import imported_bound

    bound = imported_bound(method)
    kb.bounds.bound.require_sequential(bound)
    return bound


def fingerprint(bound: kb.Bound) -> str:
    """Hash what the results of a bound depend on, as far as one can tell: its class and settings.

    A change of what the class uses from elsewhere is not seen.
    """
    try:
        source = inspect.getsource(type(bound))
    except (OSError, TypeError):  # a class that was not read from a file
        source = ""
    values = sorted((name, repr(value)) for name, value in vars(bound).items())
    return hashlib.sha256(f"{source}{values}".encode()).hexdigest()[:16]
