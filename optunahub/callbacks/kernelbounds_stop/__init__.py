"""A callback that stops a study once its best parameters are certified; see README.md."""

from kernelbounds.integrations.optuna import StopWhenCertified, problem_of

__all__ = ["StopWhenCertified", "problem_of"]
