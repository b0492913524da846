"""The paper's theory as functions: information gain, potentials, regret bounds, rates, tightness.

A tutorial is in ``docs/mathematics/theory.md``.
"""

from kernelbounds.theory.count_bounds import (
    count_components,
    potential_count_bound_under,
    solve_log,
    solve_log1p,
)
from kernelbounds.theory.data_dependent import RunBound, run_bound
from kernelbounds.theory.eigendecay import ExponentialDecay, PolynomialDecay, decay_exponent
from kernelbounds.theory.gain_bounds import information_gain_bound
from kernelbounds.theory.information_gain import (
    Bracket,
    information_gain,
    information_gains,
    maximum_information_gain,
)
from kernelbounds.theory.potentials import (
    elliptical_potentials,
    potential_count_bound,
    potential_counts,
    potential_sum_bound,
    self_consistent_counts,
)
from kernelbounds.theory.rates import (
    Rate,
    exponential_rate,
    noiseless_exponential_rate,
    noiseless_polynomial_rate,
    polynomial_rate,
    regret_rate,
)
from kernelbounds.theory.regret_bounds import (
    largest_value,
    noiseless_regret_bound,
    noiseless_regret_bound_under,
    radius_bound,
    regret_bound,
    regret_bound_under,
)
from kernelbounds.theory.spectrum import (
    Spectrum,
    exponential_envelope,
    fitted_decay,
    is_above,
    nystrom_spectrum,
    polynomial_envelope,
)
from kernelbounds.theory.tightness import Comparison, Gap, Row, compare, gap_to_ay, gap_to_igp

__all__ = [
    "Bracket",
    "Comparison",
    "ExponentialDecay",
    "Gap",
    "PolynomialDecay",
    "Rate",
    "Row",
    "RunBound",
    "Spectrum",
    "compare",
    "count_components",
    "decay_exponent",
    "elliptical_potentials",
    "exponential_envelope",
    "exponential_rate",
    "fitted_decay",
    "gap_to_ay",
    "gap_to_igp",
    "information_gain",
    "information_gain_bound",
    "information_gains",
    "is_above",
    "largest_value",
    "maximum_information_gain",
    "noiseless_exponential_rate",
    "noiseless_polynomial_rate",
    "noiseless_regret_bound",
    "noiseless_regret_bound_under",
    "nystrom_spectrum",
    "polynomial_envelope",
    "polynomial_rate",
    "potential_count_bound",
    "potential_count_bound_under",
    "potential_counts",
    "potential_sum_bound",
    "radius_bound",
    "regret_bound",
    "regret_bound_under",
    "regret_rate",
    "run_bound",
    "self_consistent_counts",
    "solve_log",
    "solve_log1p",
]
