"""Bandits on confidence bounds: domains, maximisers, policies, certificates, simulation."""

from kernelbounds.bandits.answers import Certificate, Suggestion
from kernelbounds.bandits.batched_elimination import BatchedElimination
from kernelbounds.bandits.branch_and_bound import BranchAndBound, Grid
from kernelbounds.bandits.domains import Box, Finite
from kernelbounds.bandits.kernel_lucb import KernelLUCB
from kernelbounds.bandits.kernel_ucb import KernelUCB
from kernelbounds.bandits.maximisers import Ascent, Maximum
from kernelbounds.bandits.partitioned_ucb import PartitionedUCB
from kernelbounds.bandits.policy import Policy
from kernelbounds.bandits.records import History
from kernelbounds.bandits.safe_ucb import SafeUCB
from kernelbounds.bandits.simulation import RandomPolicy, SyntheticProblem, Trace, simulate
from kernelbounds.bandits.variance_reduction import VarianceReduction

__all__ = [
    "Ascent",
    "BatchedElimination",
    "Box",
    "BranchAndBound",
    "Certificate",
    "Finite",
    "Grid",
    "History",
    "KernelLUCB",
    "KernelUCB",
    "Maximum",
    "PartitionedUCB",
    "Policy",
    "RandomPolicy",
    "SafeUCB",
    "Suggestion",
    "SyntheticProblem",
    "Trace",
    "VarianceReduction",
    "simulate",
]
