"""A sampler with confidence bounds that hold at all times; see README.md."""

from kernelbounds.integrations.optuna import KernelBoundsSampler, problem_of

__all__ = ["KernelBoundsSampler", "problem_of"]
