"""Speed against rivals, each with a target: ``python -m benchmarks [NAME...] [--json FILE]``.

A row compares the time of two sides that do the same work on the same numbers, with one thread
each, by :func:`benchmarks.timing.fastest`; or it says how far their answers are apart. The settings
below must precede the first import of NumPy.
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "RAYON"):  # RAYON: the cone solver's threads
    os.environ[f"{_name}_NUM_THREADS"] = "1"
