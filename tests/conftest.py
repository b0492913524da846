import os

# Two test processes share the cores; more threads than that only get in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Pictures are drawn without a screen.
os.environ.setdefault("MPLBACKEND", "Agg")
