"""Kernels as JSON: class names and hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.errors import InputError
from kernelbounds.kernels.checks import is_known
from kernelbounds.kernels.on_inputs import OnInputs


def to_data(kernel: Kernel) -> dict[str, Any]:
    """``kernel`` as JSON-ready data: class name and parameters, nested kernels included."""
    if not is_known(type(kernel)):
        return {"class": type(kernel).__qualname__, "own": True, "repr": str(kernel)}
    params = {
        name: to_data(value) if isinstance(value, Kernel) else _plain(value)
        for name, value in kernel.get_params(deep=False).items()
    }
    return {"class": type(kernel).__name__, "params": params}


def from_data(data: dict[str, Any]) -> Kernel:
    """The kernel that :func:`to_data` described; classes of the user's own cannot be rebuilt."""
    if data.get("own"):
        raise InputError(
            f"the file was saved with a kernel class of your own ({data['class']}); "
            "pass it as load(path, kernel=...)."
        )
    name = data["class"]
    cls = OnInputs if name == OnInputs.__name__ else getattr(sklearn_kernels, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Kernel) and is_known(cls)):
        raise InputError(f"the file names an unknown kernel class {name!r}.")
    params = {
        key: from_data(value) if isinstance(value, dict) else _unplain(value)
        for key, value in data["params"].items()
    }
    return cls(**params)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _unplain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_unplain(item) for item in value)
    return value
