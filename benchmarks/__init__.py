"""Speed against rivals, each with a target: ``python -m benchmarks [NAME...] [--json FILE]``.

Both sides get one thread. The settings must precede the first import of NumPy.
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "RAYON"):  # RAYON: the cone solver's threads
    os.environ[f"{_name}_NUM_THREADS"] = "1"
