"""What the paper's experiments are, as plain data.

A :class:`Setting` is a family of random problems and what the learner is told of them: a column
of Table 1, a panel of a figure. A :class:`Cell` is one method on one of its problems, the unit of
work. Experiments that share cells share their results. Certificates and designs have units of work
of other kinds, see ``trials.py`` and ``studies.py``.

Bounds of a user's own as methods, by where they are imported from: ``package.module:Name``.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import kernelbounds as kb
from kernelbounds.arrays import brief, shortened
from kernelbounds.errors import InputError, said
from kernelbounds.paper.loads import Load, loads
from kernelbounds.paper.studies import Study, studies
from kernelbounds.paper.trials import Trial, trials


def is_own(method: str) -> bool:
    """Whether a method is a place to import a bound from, and not a name of the paper's."""
    return ":" in method


def label(method: str) -> str:
    """For tables and figures."""
    place, _, name = method.partition(":")
    return f"{name} ({place})"


def bound_of(method: str) -> kb.Bound:
    """The bound, or one made by the class without arguments."""
    bound = _imported(method)
    kb.bounds.bound.require_sequential(bound)
    return bound


def _imported(method: str) -> kb.Bound:
    place, _, name = method.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in place.split(".")):
        raise InputError(
            f"a method of your own is written package.module:Name, got {brief(method)}."
        )
    found = getattr(_module(place, method), name, None)
    if found is None:
        raise InputError(f"the module {place} has no {name}, which the method {method} names.")
    if not isinstance(found, type):
        if isinstance(found, kb.Bound):
            return found
        raise InputError(f"{method} is not a kernelbounds.Bound, but {brief(found)}.")
    if not issubclass(found, kb.Bound):
        raise InputError(f"{method} is a class that is not derived from kernelbounds.Bound.")
    try:
        return found()
    except Exception as error:
        raise InputError(
            f"{method} cannot be made without arguments ({said(error)}); name an object of the "
            "class in the module and give the name of that."
        ) from error


def fingerprint(method: str) -> str:
    """What the results of a method depend on, as far as one can tell: its class and settings.

    A change of what the class uses from elsewhere is not seen.
    """
    bound = bound_of(method)
    try:
        source = inspect.getsource(type(bound))
    except (OSError, TypeError):  # a class that was not read from a file
        source = ""
    settings = sorted((name, repr(value)) for name, value in vars(bound).items())
    return hashlib.sha256(f"{source}{settings}".encode()).hexdigest()[:16]


def _module(place: str, method: str) -> ModuleType:
    try:
        with _current_directory_first():
            return importlib.import_module(place)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if place == missing or place.startswith(f"{missing}."):
            raise InputError(
                f"there is no module {missing} for the method {method}; it must be in the current "
                "directory or be installed."
            ) from None
        raise InputError(f"the module {place} cannot be imported: {said(error)}.") from error
    except Exception as error:
        raise InputError(
            f"the module {place} cannot be imported: {type(error).__name__}: "
            f"{shortened(said(error))}."
        ) from error


@contextmanager
def _current_directory_first() -> Iterator[None]:
    """As for a script that is run there, for worker processes too."""
    here = os.getcwd()
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(here)


if TYPE_CHECKING:  # the help of the command line has to be quick
    from sklearn.gaussian_process.kernels import Kernel

ROUNDS, REPETITIONS = 1000, 10
NORM, NOISE, DELTA = 10.0, 0.1, 0.01  # the truth, and what the learner is told by default
CENTRES, ACTIONS = 20, 100

METHODS = ("CMM", "DMM", "AMM", "AY", "IGP", "Random")
# The appendix's explicit inverses, in plain NumPy, for comparing times.
RECURSIONS = ("AMM recursion", "DMM recursion")
# CMM with other radii than the paper's: of several scales, the library's default, and the limit.
RADII = ("CMM scales", "CMM default", "CMM limit")
TIGHTNESS = ("DMM", "CMM", *RADII)
TIGHTNESS_IF_LOOSE = ("DMM", "CMM", "CMM default")  # where B or sigma is too large

KERNELS = ("rbf", "matern-5/2", "matern-3/2")
LENGTH_SCALES = (0.5, 0.2)
SMOOTHNESS = {"rbf": None, "matern-5/2": 2.5, "matern-3/2": 1.5}


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
        kernel = self.kernel.replace("/", "_")
        believed = f"B{self.norm_bound:g}-s{self.noise_scale:g}"
        name = f"{kernel}-l{self.length_scale:g}-d{self.dim}-{believed}-T{self.rounds}"
        return name + ("-noiseless" if self.noiseless else "")

    def make_kernel(self) -> Kernel:
        """The scikit-learn kernel."""
        from sklearn.gaussian_process.kernels import RBF, Matern

        nu = SMOOTHNESS[self.kernel]
        if nu is None:
            return RBF(self.length_scale)
        return Matern(length_scale=self.length_scale, nu=nu)


@dataclass(frozen=True)
class Cell:
    """One method on one problem.

    The problem, its actions and its noise depend on the seed and the repetition alone, so that
    all methods play the same problems. A ``timed`` cell is run with nothing beside it. A method of
    a user's own has a ``fingerprint``, so that it is run again when it was changed.
    """

    setting: Setting
    method: str
    repetition: int
    seed: int = 0
    timed: bool = False
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """Unique among cells, and fit for a file."""
        method = self.method.replace(" ", "_").replace(":", "-")
        method += "-timed" if self.timed else ""
        return f"{self.setting.name}-seed{self.seed}-{method}-{self.repetition}"

    def as_data(self) -> dict[str, Any]:
        """For JSON. What was there before there were other families and methods has not changed."""
        data = asdict(self)
        if not self.setting.noiseless:
            del data["setting"]["noiseless"]
        if not self.fingerprint:
            del data["fingerprint"]
        return data


Job = Cell | Trial | Study | Load  # a unit of work


@dataclass(frozen=True)
class Choices:
    """What a user narrows; ``methods`` may also name bounds of their own, see ``py``."""

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
        _check("method", self.methods, METHODS, self.own)
        _check("kernel", self.kernels, KERNELS)
        for method in self.own:
            bound_of(method)

    @property
    def own(self) -> list[str]:
        """The methods that are bounds of the user's own."""
        return [method for method in dict.fromkeys(self.methods) if is_own(method)]


def settings(experiment: str, choices: Choices) -> list[Setting]:
    """The settings of an experiment, in the paper's order."""
    if experiment == "theory":
        noisy = [Setting(k, 0.5, 3, choices.rounds) for k in KERNELS if k in choices.kernels]
        return noisy + [
            Setting(kernel, 0.2, 2, horizon, noise_scale=0.0, noiseless=True)
            for kernel in KERNELS
            if kernel in choices.kernels
            for horizon in horizons(choices.rounds)
        ]
    if experiment in ("figure-time", "figure-loose"):
        one = Setting("matern-5/2", 0.5, rounds=choices.rounds)
        return [one] if experiment == "figure-time" else loosened(one)
    dim = {"figure-2d": 2, "figure-4d": 4}.get(experiment, 3)
    found = [
        Setting(kernel, scale, dim, choices.rounds)
        for kernel in KERNELS
        if kernel in choices.kernels
        for scale in LENGTH_SCALES
    ]
    if experiment == "tightness":
        found += [other for s in found if s.kernel == "matern-5/2" for other in loosened(s)[1:]]
    return found


def loosened(setting: Setting) -> list[Setting]:
    """With the believed norm, noise, or both twice too large; first as it is."""
    return [
        replace(setting, norm_bound=norm, noise_scale=noise)
        for noise in (NOISE, 2 * NOISE)
        for norm in (NORM, 2 * NORM)
    ]


def is_loose(setting: Setting) -> bool:
    """Whether more is believed of the norm or the noise than is true."""
    return (setting.norm_bound, setting.noise_scale) != (NORM, NOISE)


def horizons(rounds: int) -> list[int]:
    """Without noise the ridge depends on T, so each of these is a run of its own."""
    return sorted({max(2, rounds // part) for part in (1, 2, 4, 8)})


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
}
# Those whose units of work are not cells.
OTHERS = ("figure1", "certificates", "designs", "scale")


def cells(experiment: str, choices: Choices) -> list[Cell]:
    """All cells of an experiment; none for those of ``OTHERS``."""
    if experiment in OTHERS:
        return []
    if experiment == "tightness":
        return [
            Cell(setting, method, repetition, choices.seed)
            for setting in settings(experiment, choices)
            for repetition in range(choices.repetitions)
            for method in (TIGHTNESS_IF_LOOSE if is_loose(setting) else TIGHTNESS)
        ]
    timed = experiment == "figure-time"
    methods = [*(method for method in METHODS if method in choices.methods), *choices.own]
    if experiment == "theory":
        methods = ["AMM"]
    fingerprints = {method: fingerprint(method) for method in methods if is_own(method)}
    if timed:
        methods = [method for method in (*methods, *RECURSIONS) if method != "Random"]
    return [
        Cell(setting, method, repetition, choices.seed, timed, fingerprints.get(method, ""))
        for setting in settings(experiment, choices)
        for repetition in range(choices.repetitions)
        for method in methods
    ]


def certificates(choices: Choices) -> list[Trial]:
    """All trials of ``certificates``; its methods and kernels are its own."""
    return trials(choices.rounds, choices.repetitions, choices.seed)


def designs(choices: Choices) -> list[Study]:
    """All studies of ``designs``; its methods and kernels are its own, too."""
    return studies(choices.rounds, choices.repetitions, choices.seed)


def scale(choices: Choices) -> list[Load]:
    """All loads of ``scale``, of the kernels that are both its own and chosen."""
    return loads(choices.rounds, choices.kernels, choices.seed)


def jobs(experiment: str, choices: Choices) -> list[Job]:
    """All that has to be run for an experiment."""
    if experiment == "certificates":
        return [*certificates(choices)]
    if experiment == "designs":
        return [*designs(choices)]
    if experiment == "scale":
        return [*scale(choices)]
    return [*cells(experiment, choices)]


def all_jobs(experiments: Iterable[str], choices: Choices) -> list[Job]:
    """Those of several experiments, each once."""
    return list(dict.fromkeys(job for name in experiments for job in jobs(name, choices)))


def checked_experiments(names: Sequence[str]) -> list[str]:
    """Names of experiments, with ``all`` spelt out."""
    _check("experiment", [name for name in names if name != "all"], tuple(EXPERIMENTS))
    return list(EXPERIMENTS) if "all" in names else list(dict.fromkeys(names))


def _check(noun: str, given: Sequence[str], known: Sequence[str], more: Sequence[str] = ()) -> None:
    unknown = [name for name in given if name not in known and name not in more]
    if unknown or (not given and noun != "experiment"):
        said = f"no {noun} is called {', '.join(map(repr, unknown))}" if unknown else f"no {noun}"
        others = ", and package.module:Name for a bound of your own" if noun == "method" else ""
        raise InputError(f"{said}; there are {', '.join(known)}{others}.")
