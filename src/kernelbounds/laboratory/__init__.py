"""The laboratory: how often any bound is wrong, at all times and points at once."""

from kernelbounds.laboratory.programme import Programme
