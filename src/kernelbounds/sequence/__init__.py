"""The confidence sequence: how data get in, what they tell, and how all of it is saved."""

from kernelbounds.sequence.sequence import ConfidenceSequence

__all__ = ["ConfidenceSequence"]
