"""The studies that are open in the studio, and results about them, kept until they change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kernelbounds.errors import InputError, KernelBoundsError
from kernelbounds.study import Study
from kernelbounds.study.revision import GOALS

# Bounds from more outcomes than this take minutes and gigabytes, so they are not computed unless
# somebody asks for them.
MANY_OUTCOMES = 3000
# This many results are kept of each study: mostly pictures at places that were looked at lately.
MOST_RESULTS = 64
SUFFIX = ".db"

T = TypeVar("T")


class OpenStudy:
    """An open study, with results about it that are kept until the study changes."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.study = Study(path)
        self._lock = threading.RLock()
        self._stamp, self._results = "", dict[Hashable, Any]()
        self._asked_for_bounds = False

    @property
    def computes(self) -> bool:
        """Whether bounds are computed: with very many outcomes only when somebody asks for them."""
        return self._asked_for_bounds or len(self.study) <= MANY_OUTCOMES

    def compute(self) -> None:
        """Compute bounds from now on, however many outcomes there are."""
        self._asked_for_bounds = True

    def has(self, key: Hashable) -> bool:
        """Tell whether something was computed for the present state of the study."""
        return self._stamp == self.study.stamp and key in self._results

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` returns; it is called once for each key and state of the study."""
        with self._lock:
            if (now := self.study.stamp) != self._stamp:
                self._stamp, self._results = now, {}
            if key not in self._results:
                if len(self._results) >= MOST_RESULTS:
                    self._results.pop(next(iter(self._results)))
                self._results[key] = make()
            found: T = self._results[key]
            return found


class Desk:
    """The studies of some files and folders, each opened when it is first looked at."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [path for path in paths if not path.is_dir()]
        self._folders = [path for path in paths if path.is_dir()]
        self._open: dict[Path, OpenStudy] = {}
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """Where a new study is made: the first folder, or that of the first file."""
        return self._folders[0] if self._folders else self._files[0].parent

    def paths(self) -> dict[str, Path]:
        """Return the files by their names on the page; a name that is taken gets a number."""
        found: dict[str, Path] = {}
        inside = [one for folder in self._folders for one in sorted(folder.glob(f"*{SUFFIX}"))]
        for path in dict.fromkeys([*self._files, *inside]):
            name, number = path.stem, 2
            while name in found:
                name, number = f"{path.stem}-{number}", number + 1
            found[name] = path
        return found

    def study(self, name: str) -> OpenStudy:
        """Open a study by its name, or return it if it is open."""
        path = self.paths().get(name)
        if path is None:
            raise InputError(f"there is no study {name!r} here.")
        with self._lock:
            if path not in self._open:
                self._open[path] = OpenStudy(name, path)
            return self._open[path]

    def add(self, path: Path) -> str:
        """Show one more file, and return its name."""
        if path.parent not in self._folders:
            self._files.append(path)
        return next(name for name, one in self.paths().items() if one == path)

    def listed(self) -> list[dict[str, Any]]:
        """Return a line about each study, which says why if the study cannot be opened."""
        lines: list[dict[str, Any]] = []
        for name, path in self.paths().items():
            try:
                study = self.study(name).study
                problem, goal = study.problem, GOALS[study.minimise]
                about = f"{goal} {problem.output.name} over {', '.join(problem.inputs.names)}"
                lines.append({"name": name, "about": about, "count": len(study)})
            except KernelBoundsError as error:
                lines.append({"name": name, "problem": str(error), "path": path})
        return lines

    def close(self) -> None:
        """Close all files."""
        for one in self._open.values():
            one.study.close()
