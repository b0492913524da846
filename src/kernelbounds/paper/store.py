"""Results on disk: one file a cell, whole or not there.

A file is an npz archive of arrays with a JSON header: the cell's exact settings, the versions of
what computed it, and a checksum of the numbers. It is written under a temporary name and renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from kernelbounds.arrays import Array
from kernelbounds.errors import InputError, StoredFileError
from kernelbounds.io import archive, files
from kernelbounds.paper.specs import Choices, Job
from kernelbounds.version import __version__

FORMAT, VERSION = "kernelbounds.paper.Cell", 1


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / "cells"

    def open(self, choices: Choices) -> None:
        """Make the folder, or check that it is of the same seed and number of rounds."""
        wanted = {"seed": choices.seed, "rounds": choices.rounds}
        manifest = self.folder / "settings.json"
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            if manifest.exists():
                found = json.loads(manifest.read_text())
            else:
                found = wanted
                files.write_text(manifest, json.dumps(wanted) + "\n")
        except OSError as error:
            raise InputError(
                f"cannot write results to {str(self.folder)!r}: {error.strerror}."
            ) from error
        except json.JSONDecodeError:
            raise StoredFileError(f"{str(manifest)!r} is damaged; use another folder.") from None
        if found != wanted:
            described = ", ".join(f"{key} = {value}" for key, value in found.items())
            raise InputError(
                f"{str(self.folder)!r} holds results with {described}; use another folder, or the "
                "same settings to go on with it."
            )

    def path(self, cell: Job) -> Path:
        """The file of a cell."""
        return self._cells / f"{cell.name}.npz"

    def write(self, cell: Job, arrays: dict[str, Array]) -> None:
        """Keep the results of a cell."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "cell": cell.as_data(),
            "software": software(),
            "checksum": _checksum(cell, arrays),
        }
        archive.write(self.path(cell), header, arrays)

    def read(self, cell: Job) -> dict[str, Array]:
        """The results of a cell; :class:`StoredFileError` when missing, damaged or edited."""
        header, arrays = archive.read(self.path(cell), FORMAT, VERSION, "the result of a cell")
        if header.get("checksum") != _checksum(cell, arrays) or header["cell"] != cell.as_data():
            raise StoredFileError(f"{str(self.path(cell))!r} was edited or damaged.")
        return arrays

    def software(self, cell: Job) -> dict[str, Any]:
        """What a cell was computed with."""
        header, _ = archive.read(self.path(cell), FORMAT, VERSION, "the result of a cell")
        return dict(header["software"])

    def state(self, cell: Job) -> str:
        """``done``, ``missing`` or ``damaged``."""
        if not self.path(cell).exists():
            return "missing"
        try:
            self.read(cell)
        except StoredFileError:
            return "damaged"
        return "done"


def software() -> dict[str, str]:
    """Versions of everything that matters."""
    return {
        "kernelbounds": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
    }


def _checksum(cell: Job, arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256(json.dumps(cell.as_data(), sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
