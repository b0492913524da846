"""The errors that the library raises on purpose, under one root, and their wording."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable


class KernelBoundsError(Exception):
    """Root of all errors raised by kernelbounds.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> try:
    ...     kb.Box([1.0], [0.0])
    ... except kb.KernelBoundsError as error:
    ...     print(type(error).__name__)
    InputError
    """


class InputError(KernelBoundsError, ValueError):
    """An argument cannot be used; the message says what was received and what was expected.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> try:
    ...     kb.ConfidenceSequence(RBF(0.5), norm_bound=-1.0, noise_scale=0.1)
    ... except ValueError as error:  # an InputError is one
    ...     print(error)
    norm_bound must be a finite number at least 0 and at most 1e+100, got -1.
    """


class StoredFileError(KernelBoundsError, ValueError):
    """A file cannot be read as a saved confidence sequence.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> try:
    ...     kb.ConfidenceSequence.load("no-such-file.npz")
    ... except kb.StoredFileError as error:
    ...     print(type(error).__name__)
    StoredFileError
    """


class MissingExtraError(KernelBoundsError, ImportError):
    """A feature needs an optional dependency; the message names the extra to install.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> issubclass(kb.MissingExtraError, ImportError)
    True
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency: pip install 'kernelbounds[{extra}]'."
        )
        self._arguments = feature, extra

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Let other processes rebuild the error from the feature and the extra."""
        return type(self), self._arguments


class EmptyConfidenceSetError(KernelBoundsError):
    """The data refute the assumptions: no function satisfies all of them.

    With probability at least 1 - delta this does not happen when the norm bound, the noise
    scale and the kernel are right, so at least one of them is wrong (or an event of probability
    at most delta has occurred). Every query of CMM notices; AMM and DMM only where the ellipsoid at
    one of their own ridges is empty, and AY and IGP never. ``norm_lower_bound`` of a sequence
    always tells.

    Attributes
    ----------
    norm_lower_bound : float
        The smallest norm bound under which the confidence set is not empty (``inf``: none is,
        so the noise scale or the kernel must change). Where f* has parts, it is the number by which
        all their bounds must be multiplied.
    noise_lower_bound : float
        The smallest noise scale under which the set is not empty, with the norm bound as it is
        (``inf``: none is). Of other laws of noise, it is their number: the limit of bounded noise,
        or ``at_most`` of unknown noise.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=1.0, noise_scale=0.1)
    >>> seq.update([[0.1], [0.5], [0.9]], [9.0, -9.0, 9.0])
    >>> try:
    ...     seq.bounds([[0.3]])
    ... except kb.EmptyConfidenceSetError as error:
    ...     print(error.norm_lower_bound > 1.0)
    True
    """

    def __init__(
        self,
        norm_bound: float,
        noise_scale: float,
        norm_lower_bound: float,
        noise_lower_bound: float,
        has_parts: bool = False,
        noise_in_words: tuple[str, str] | None = None,
    ) -> None:
        self.norm_lower_bound = norm_lower_bound
        self.noise_lower_bound = noise_lower_bound
        with_noise, number = noise_in_words or (f"at noise_scale {noise_scale:g}", "noise_scale")
        # The noise bound is known to a few digits, and with a sparse engine up to its next scale.
        known = noise_lower_bound > 1.001 * noise_scale
        noise = f"{'at least' if known else 'above'} {noise_lower_bound:.3g}"
        if math.isinf(norm_lower_bound):
            noisier = "" if math.isinf(noise_lower_bound) else f"{number} must be {noise}, or "
            bounds = "bounds on the parts" if has_parts else "norm_bound"
            remedy = (
                f"no {bounds}, however large, can explain the data: {noisier}the kernel less "
                "smooth (a shorter length scale)"
            )
        else:
            noisier = "" if math.isinf(noise_lower_bound) else f"or else {number} {noise}, "
            larger = (
                f"the bounds on the parts must be {norm_lower_bound:.6g} times as large"
                if has_parts
                else f"norm_bound must be at least {norm_lower_bound:.6g}"
            )
            remedy = f"{larger} for these data, {noisier}or the kernel less smooth"
        functions = (
            "with these bounds on its parts"
            if has_parts
            else f"of norm at most {norm_bound:g} under this kernel"
        )
        super().__init__(
            f"The data refute the assumptions: no function {functions} is compatible with them "
            f"{with_noise}; {remedy}."
        )


class FactRefutedError(EmptyConfidenceSetError):
    """The data contradict a fact that was stated, under the other assumptions.

    Attributes
    ----------
    fact : str
        The fact; more than one where only several together are contradicted.
    places : list
        The places at which its inequality is contradicted most.
    least, most : float
        What the inequality needs there, and what the data allow at most.
    on_average : bool
        Whether these are weighted averages over several places.
    negated : bool
        Whether they are of -f*, as for an upper limit of f*.

    Examples
    --------
    >>> import kernelbounds as kb
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> low = kb.facts.Between(high=1.0, region=kb.Box([0.0], [1.0]))
    >>> seq = kb.ConfidenceSequence(RBF(0.5), norm_bound=5.0, noise_scale=0.1, facts=[low])
    >>> seq.update([[0.5]] * 3, [3.0, 3.1, 2.9])
    >>> try:
    ...     seq.bounds([[0.5]])
    ... except kb.FactRefutedError as error:
    ...     print(error.fact)
    Between(-inf, 1)
    """

    def __init__(
        self,
        fact: str,
        places: list[list[float]],
        least: float,
        most: float,
        on_average: bool = False,
        negated: bool = False,
    ) -> None:
        self.fact, self.places, self.least, self.most = fact, places, least, most
        self.on_average, self.negated = on_average, negated
        self.norm_lower_bound = self.noise_lower_bound = math.nan
        where = " and ".join(str([float(f"{c:.4g}") for c in place]) for place in places[:3])
        where = f"on average around {where}" if on_average else f"at {where}"
        they_say = f"they allow {most:.4g} at most, where it says {least:.4g} at least"
        if negated:
            they_say = f"they allow {-most:.4g} at least, where it says {-least:.4g} at most"
        KernelBoundsError.__init__(
            self,
            f"The data contradict {fact}, if the norm bound, the noise scale and the kernel are "
            f"right: {where} {they_say}.",
        )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Let other processes rebuild the error."""
        range_ = self.least, self.most
        return type(self), (self.fact, self.places, *range_, self.on_average, self.negated)


def said(error: Exception) -> str:
    """The message of another library's error, to be part of a sentence."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `` (did you mean 'RBF'?)`` where one of the names is close in any case, or nothing."""
    lowered = {one.casefold(): one for one in names if len(one) <= 60}  # longer ones fill a message
    close = difflib.get_close_matches(name[:60].casefold(), lowered, n=1)
    return f" (did you mean {lowered[close[0]]!r}?)" if close else ""
