"""The confidence set: what is assumed, what was observed, the radius R_t, and what that implies.

Bounds look at a :class:`~.confidence_set.ConfidenceSet` and at nothing else.
"""
