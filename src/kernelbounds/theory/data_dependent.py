"""A bound on the regret computed from the run itself: how uncertain the points played were.

=================  ==========================  =============================================
code               paper                       meaning
=================  ==========================  =============================================
``ridge``          alpha                       sigma^2/c, or the ridge of AMM
``radii``          R~_alpha,t-1                before each round, (T,)
``potentials``     rho^2_alpha,t-1(x_t)/alpha  of each round, (T,)
``value_bound``    C                           |f*(x)| <= C; sqrt(kappa) B always does
``terms``          bound on r_t                min(2 C, 2 R~ rho/sqrt(alpha)), (T,)
=================  ==========================  =============================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelbounds import kernels
from kernelbounds.arrays import Array, as_scalar, as_whole, brief
from kernelbounds.bandits import Finite, History, KernelUCB
from kernelbounds.confidence.diagnosis import noise_lower_bound, norm_lower_bound
from kernelbounds.engine.ridge_fit import along_run
from kernelbounds.errors import EmptyConfidenceSetError, InputError
from kernelbounds.sequence import ConfidenceSequence
from kernelbounds.theory.regret_bounds import checked_assumptions, largest_value, log_level


@dataclass(frozen=True)
class RunBound:
    """Bounds on the regret of each round of a run; arrays of shape (T,).

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.1, bound=kb.AMM())
    >>> ucb = kb.KernelUCB(seq, domain=kb.Finite([[0.1], [0.5], [0.9]]))
    >>> for _ in range(6):
    ...     x = ucb.ask().x
    ...     ucb.tell(x, 1 - x[0])
    >>> bound = theory.run_bound(ucb)
    >>> bound.gains.round(2), bound.counts
    (array([1.67, 3.25, 4.82, 5.15, 5.35, 5.49]), array([1., 2., 3., 3., 3., 3.]))
    """

    terms: Array
    potentials: Array
    radii: Array
    ridge: float
    value_bound: float

    @property
    def cumulative(self) -> Array:
        """Running sums of ``terms``: with probability 1 - delta, above the regret at all times."""
        return np.cumsum(self.terms)

    @property
    def gains(self) -> Array:
        """The information gain (1/2) ln det(I + K_t/alpha) of the run, for t = 1 .. T."""
        return np.cumsum(np.log1p(self.potentials)) / 2

    @property
    def counts(self) -> Array:
        """The elliptical potential count tau_t(alpha) of the run, for t = 1 .. T."""
        return np.cumsum(self.potentials >= 1).astype(np.float64)


def run_bound(
    run: ConfidenceSequence | KernelUCB,
    ridge: float | None = None,
    value_bound: float | None = None,
    skip: int = 0,
) -> RunBound:
    """Sum min(2 C, 2 R~_alpha,t-1 rho_alpha,t-1(x_t)/sqrt(alpha)) over the rounds t played.

    This is Lemma D.12 with |f*| <= C, summed: with probability at least 1 - delta it is above the
    cumulative regret of KernelUCB with CMM, with DMM on a grid that contains the ridge, or with
    AMM at that ridge, at all times at once. It may be computed while the run goes on.

    The lemma is about points that maximise the upper bound made from *all* outcomes before them:
    asked for one at a time, from a finite set or with a maximiser that certifies. Of a KernelUCB
    this is checked, and a run with batches, points of your own or :class:`Ascent` is refused where
    its record does not confirm the lemma; ``history.cumulative_regret_bound`` is valid there.
    What a certifying maximiser has left open in a round is added to the term of that round.

    Parameters
    ----------
    run : KernelUCB or ConfidenceSequence
        A sequence does not know how its points were chosen: pass one only if its observations are
        in the order in which they were made, each at a maximiser of the upper bound.
    ridge : float, optional
        None: that of AMM, otherwise sigma^2/c. CMM without noise needs one.
    value_bound : float, optional
        C. None: sqrt(kappa) B, where kappa is known for stationary kernels and on a finite domain.
    skip : int
        The number of observations at the start that the policy did not play; they count as data.

    Notes
    -----
    The lemma is about one kernel and one noise scale: runs with parts, an unknown level among them,
    or with noise scales of their own are refused.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from kernelbounds import theory
    >>> seq = kb.ConfidenceSequence(RBF(0.3), norm_bound=3.0, noise_scale=0.1, bound=kb.AMM())
    >>> ucb = kb.KernelUCB(seq, domain=kb.Finite([[0.1], [0.5], [0.9]]))
    >>> for _ in range(6):
    ...     x = ucb.ask().x
    ...     ucb.tell(x, 1 - x[0])
    >>> bound = theory.run_bound(ucb)
    >>> bound.cumulative.round(2)
    array([ 6.  , 12.  , 18.  , 19.45, 20.5 , 21.36])
    """
    sequence = run.sequence if isinstance(run, KernelUCB) else run
    if not isinstance(sequence, ConfidenceSequence):
        raise InputError(f"run must be a ConfidenceSequence or a KernelUCB, got {brief(run)}.")
    first = as_whole(skip, "skip", least=0)
    if len(sequence) <= first:
        raise InputError(f"there are no rounds: {len(sequence)} observations, skip = {first}.")
    known = sequence.known
    if known.evidence.parts is not None or not known.data.whitening.is_identity:
        raise InputError(
            "the lemma is about one kernel and one noise scale, and not about parts, an unknown "
            "level or noise scales of single observations."
        )
    a = checked_assumptions(sequence.assumptions)
    alpha = _ridge(sequence, ridge)
    reference = alpha if a.noise_scale == 0 else a.noise_scale**2 / a.mixture_scale
    bound = _value_bound(run, sequence, value_bound)

    points, outcomes = sequence.points, known.outcomes
    gram = kernels.cross(sequence.kernel, points, points)
    np.fill_diagonal(gram, kernels.diagonal(sequence.kernel, points))
    here = along_run(gram, alpha, outcomes)
    there = here if reference == alpha else along_run(gram, reference, outcomes)
    # R~^2 = (E_{sigma^2/c} - E_alpha) + sigma^2 (l_{sigma^2/c} + 2 ln(1/delta)) + alpha B^2, and
    # without noise R~^2 = alpha B^2 - E_alpha.
    squared = -here.energies
    if a.noise_scale > 0:
        squared += there.energies
        squared += a.noise_scale**2 * (there.log_dets + log_level(a))
    squared = (squared + alpha * a.norm_bound**2)[:-1]
    if np.any(squared < -1e-9 * (alpha * a.norm_bound**2 + here.energies[:-1])):
        # The policy that played these rounds would have raised the same error.
        raise EmptyConfidenceSetError(
            a.norm_bound, a.noise_scale, norm_lower_bound(known), noise_lower_bound(known)
        )
    radii = np.sqrt(np.maximum(squared, 0.0))
    potentials = here.variances / alpha
    widths = (2 * radii * np.sqrt(potentials))[first:]
    if isinstance(run, KernelUCB):
        widths = np.maximum(widths, _recorded_bounds(run.history, widths, first, bound))
    terms = np.minimum(2 * bound, widths)
    return RunBound(terms, potentials[first:], radii[first:], alpha, bound)


def _recorded_bounds(history: History, widths: Array, first: int, value_bound: float) -> Array:
    """Return the regret bounds in a policy's record, or refuse one that the lemma does not fit.

    The record has the bounds from which each action was chosen. An action that was chosen from all
    outcomes before its own was no more uncertain than the lemma says. Its recorded regret bound is
    that uncertainty and what the maximiser had left open.
    """
    count = len(widths)
    if len(history) < count:
        raise InputError(
            f"the policy has played {len(history)} of the {first + count} observations; pass "
            f"skip={first + count - len(history)} for those that it was given at the start."
        )
    found, recorded = history.regret_bound[-count:], history.width[-count:]
    confirmed = np.isfinite(found) & (recorded <= widths * (1 + 1e-6) + 1e-6 * value_bound)
    if not confirmed.all():
        raise InputError(
            "Lemma D.12 is about points that maximise the bound from all outcomes before them, "
            f"which round {int(np.argmin(confirmed)) + 1} does not confirm (a batch, pending "
            "trials, a point of your own, or a maximiser that certifies nothing, such as Ascent); "
            "history.cumulative_regret_bound of the policy is valid for all runs."
        )
    return found


def _ridge(sequence: ConfidenceSequence, ridge: float | None) -> float:
    """Choose or check a ridge for which Lemma D.12 holds with the sequence's bound."""
    bound, a = sequence.bound, sequence.assumptions
    reference = a.noise_scale**2 / a.mixture_scale
    allowed = bound.below_amm_at(reference)
    if allowed == ():
        raise InputError(f"the lemma is about CMM, DMM and AMM; the sequence's bound is {bound}.")
    chosen = allowed[0] if allowed is not None and len(allowed) == 1 else reference
    if ridge is not None:
        chosen = as_scalar(ridge, "ridge", above=0.0)
    if chosen <= 0:
        raise InputError("without noise there is no default ridge: pass ridge=.")
    if allowed is not None and not any(math.isclose(chosen, one, rel_tol=1e-9) for one in allowed):
        listed = ", ".join(f"{one:g}" for one in allowed)
        raise InputError(f"ridge must be one that {bound} uses ({listed}), got {chosen:g}.")
    return chosen


def _value_bound(
    run: ConfidenceSequence | KernelUCB, sequence: ConfidenceSequence, value_bound: float | None
) -> float:
    """Return the bound C on |f*| that was given, or sqrt(kappa) B where kappa is known."""
    if value_bound is not None:
        return as_scalar(value_bound, "value_bound", least=0.0)
    if sequence.offset.constant is None:
        raise InputError(
            "with a mean function as offset, pass value_bound=, a bound on |f*|, the mean included."
        )
    domain = run.domain if isinstance(run, KernelUCB) else None
    if isinstance(domain, Finite):
        points = np.concatenate([domain.points, sequence.points])
    elif sequence.kernel.is_stationary():
        points = sequence.points[:1]
    else:
        raise InputError(
            f"sup k(x, x) is not known for {sequence.kernel}: pass value_bound=, a bound on |f*|; "
            "norm_bound times sqrt(sup k(x, x)) is one."
        )
    kappa = float(kernels.diagonal(sequence.kernel, points).max())
    return largest_value(sequence.assumptions.norm_bound, kappa)
