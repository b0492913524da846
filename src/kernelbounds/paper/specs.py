"""What all experiments of ``kernelbounds reproduce`` share: settings, jobs and their interface.

An :class:`Experiment` says which jobs it runs, what is gathered from their results, and which
tables and pictures are made of that. A :class:`Job` is run by itself, and its result is one file
(``results.py``). ``experiments.py`` lists all experiments.

The help of the command line imports this file, so it imports scikit-learn only to make a kernel.
"""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import kernelbounds as kb
from kernelbounds.errors import InputError

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from kernelbounds.arrays import Array
    from kernelbounds.paper.figures import CurvePanels
    from kernelbounds.paper.results import ResultStore

ROUNDS, REPETITIONS = 1000, 10
NORM, NOISE, DELTA = 10.0, 0.1, 0.01  # the truth, and what the learner is told by default
CENTRES, ACTIONS = 20, 100

METHODS = ("CMM", "DMM", "AMM", "AY", "IGP", "Random")
SMOOTHNESS = {"rbf": None, "matern-5/2": 2.5, "matern-3/2": 1.5}
KERNELS = tuple(SMOOTHNESS)
KERNEL_TITLES = {"rbf": "RBF", "matern-5/2": "Matérn-5/2", "matern-3/2": "Matérn-3/2"}
LENGTH_SCALES = (0.5, 0.2)

TITLES = {  # of the experiments, by name
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
# The most rounds and repetitions of experiments that are not in the paper, whatever is chosen.
CERTIFICATE_ROUNDS, CERTIFICATE_REPETITIONS = 400, 3
RIVAL_ROUNDS, RIVAL_REPETITIONS = 200, 4  # Some bounds take a new eigenbasis in every round.
OPTIMISER_TRIALS, OPTIMISER_REPETITIONS = 30, 5
# How the points of ``designs`` come about, with the data sets in a repetition. Only with the first
# of these ways are the points fixed before the outcomes.
DESIGNS = {"fixed": 20, "policy": 10, "looks": 20, "hoped": 20, "striking": 20}
# Relative times of the methods; those of others are 1.
COST = {
    "CMM": 3.0, "DMM": 2.5, "Random": 0.4, "AMM recursion": 3.0, "DMM recursion": 12.0,
    "CMM scales": 4.0, "CMM default": 3.0, "CMM limit": 3.0,
    "OnlineToSet 2012": 8.0, "Emmenegger 2023": 8.0,
}  # fmt: skip


def kernel_named(name: str, length_scale: float) -> Kernel:
    """Make one of ``KERNELS`` as a scikit-learn kernel."""
    from sklearn.gaussian_process.kernels import RBF, Matern

    nu = SMOOTHNESS[name]
    return RBF(length_scale) if nu is None else Matern(length_scale=length_scale, nu=nu)


@dataclass(frozen=True)
class Setting:
    """A family of problems in [0, 1]^dim, and the norm bound and noise scale that are believed.

    A setting is a column of Table 1, or a panel of a figure. A ``noiseless`` family has no noise,
    whatever is believed.
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
        """A short name that is fit for a file."""
        believed = f"B{self.norm_bound:g}-s{self.noise_scale:g}"
        kernel = f"{for_file(self.kernel)}-l{self.length_scale:g}-d{self.dim}"
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

    def loosened(self) -> list[Setting]:
        """Return the setting, and those with the believed norm, noise or both twice too large."""
        return [
            replace(self, norm_bound=norm, noise_scale=noise)
            for noise in (NOISE, 2 * NOISE)
            for norm in (NORM, 2 * NORM)
        ]


@dataclass(frozen=True)
class Job(ABC):
    """A unit of work; what is random in it depends on its seed, its repetition and its problem."""

    timed = False  # Whether the job is run with nothing beside it.

    @property
    @abstractmethod
    def name(self) -> str:
        """A name that is unique among jobs, and fit for a file."""

    @abstractmethod
    def run(self) -> dict[str, Array]:
        """Compute the result."""

    @property
    def cost(self) -> float:
        """The time that the job takes, relative to others."""
        return 1.0

    @property
    def packages(self) -> tuple[str, ...]:
        """The optional packages that the numbers depend on."""
        return ()

    def as_data(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


J = TypeVar("J", bound=Job)
Found = TypeVar("Found")
Rows = Iterator[dict[str, Any]]  # of a table as CSV, each by the names of the columns


@dataclass(frozen=True)
class Picture(Generic[Found]):
    """A figure of an experiment, which is written as PNG and SVG, and which the report shows.

    Attributes
    ----------
    file : str
        The name of the file without its ending.
    draw : callable
        From what the experiment gathers, and the path of the file without its ending.
    label, alternative : str
        A name, and what is seen, for those who do not see it.
    """

    file: str
    draw: Callable[[Found, Path], None]
    label: str
    alternative: str


@dataclass(frozen=True)
class Experiment(Generic[J, Found]):
    """An experiment: its jobs, and the tables and figures that are made of their results.

    Attributes
    ----------
    jobs : callable
        From the choices of a user to all jobs.
    gather : callable
        From the jobs and the store with their results to what tables and figures are made of.
    tables : mapping
        The tables as text, by the endings of their files. The terminal shows that of "txt".
    rows : callable, optional
        The rows of the table as CSV.
    pictures : tuple of Picture
        The figures.
    curves : CurvePanels, optional
        Curves of cells, which are a figure as well; in the report its script draws them.
    note : str
        What the report says above the figures.
    """

    jobs: Callable[[Choices], Sequence[J]]
    gather: Callable[[list[J], ResultStore], Found]
    tables: Mapping[str, Callable[[Found], str]] = field(default_factory=dict)
    rows: Callable[[Found], Rows] | None = None
    pictures: tuple[Picture[Found], ...] = ()
    curves: CurvePanels | None = None
    note: str = ""

    def write(self, name: str, jobs: Sequence[J], store: ResultStore, folder: Path) -> str:
        """Write all tables and figures into a folder, and return the table for the terminal."""
        from kernelbounds.paper.results import csv_text

        found: Any = self.gather(list(jobs), store)
        texts = {ending: table(found) for ending, table in self.tables.items()}
        if self.rows:
            texts["csv"] = csv_text(self.rows(found))
        for ending, text in texts.items():
            (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")
        for picture in self.pictures:
            picture.draw(found, folder / picture.file)
        if self.curves:
            self.curves.draw(found, folder / name)
        return texts.get("txt", "")


@dataclass(frozen=True)
class Choices:
    """The choices of a user; ``methods`` may name bounds of their own, see :func:`bound_of`."""

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

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the bounds of the user's own, by method."""
        return {method: fingerprint(bound_of(method)) for method in self.users_own}

    def at_most(self, rounds: int, repetitions: int) -> Choices:
        """Return the same choices with at most these rounds and repetitions."""
        fewer = min(self.rounds, rounds), min(self.repetitions, repetitions)
        return replace(self, rounds=fewer[0], repetitions=fewer[1])

    def settings(self, dim: int = 3) -> list[Setting]:
        """Return the settings of Table 1, or the same in another dimension, in its order."""
        kernels = [kernel for kernel in KERNELS if kernel in self.kernels]
        return [Setting(k, scale, dim, self.rounds) for k in kernels for scale in LENGTH_SCALES]


def refuse_unknown(
    noun: str, given: Sequence[str], known: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Refuse names that are neither known nor among ``more``, and an empty list of names."""
    unknown = [name for name in given if name not in known and name not in more]
    if unknown or (not given and noun != "experiment"):
        what = f"no {noun} is called {', '.join(map(repr, unknown))}" if unknown else f"no {noun}"
        others = ", and package.module:Name for a bound of your own" if noun == "method" else ""
        raise InputError(f"{what}; there are {', '.join(known)}{others}.")


def for_file(name: str) -> str:
    """Return the name of a kernel or a method as part of the name of a file."""
    return name.replace("/", "_").replace(" ", "_").replace(":", "-")


# --- bounds of a user's own, named by where they are imported from: ``package.module:Name``


def is_users_own(method: str) -> bool:
    """Tell whether a method is a place to import a bound from, and not a name of the paper's."""
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
