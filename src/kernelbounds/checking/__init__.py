"""The contract of a bound, checked, as scikit-learn checks estimators."""

from kernelbounds.checking.check import BoundReport, check_bound

__all__ = ["BoundReport", "check_bound"]
