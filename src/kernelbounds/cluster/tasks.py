"""Tasks on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kernelbounds.errors import InputError, MissingExtraError, said
from kernelbounds.progress import late_progress


class Tasks:
    """A way to have functions called by the workers.

    Futures that nobody holds are forgotten when those that depend on them are done.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.threads = max(1, sum(client.nthreads().values()))
        self.wanted: list[Any] = []  # what is waited for

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future of the result, which Dask computes anew if the worker that has it dies."""
        return self._client.submit(function, *arguments, pure=False)

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Futures of delayed values."""
        return list(self._client.compute(delayed))

    def cancel(self) -> None:
        """Stop what is waited for, and all that it alone needs, once rows under way are done."""
        self._client.cancel(self.wanted)


@contextmanager
def tasks_on(client: Any) -> Iterator[Tasks]:
    """Tasks of the cluster, whose own failures become sentences of ours."""
    import dask
    from distributed import KilledWorker

    tasks = Tasks(client)
    try:
        # What is known already, m^2 numbers, is a part of the graph on purpose: so the scheduler
        # has it, whichever workers die.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            yield tasks
    except KilledWorker as error:
        raise InputError(
            "several workers died, one after the other, at the same rows, and nothing was added. "
            "Most often their memory was too small: try a smaller batch, or fewer threads a worker."
        ) from error
    except MissingExtraError:
        raise
    except ImportError as error:
        raise InputError(
            f"the workers lack a package that this machine has: {said(error)}. Install the same "
            "version of kernelbounds[dask] on all of them."
        ) from error
    finally:
        tasks.cancel()


def watch(
    tasks: Tasks,
    futures: Sequence[Any],
    doing: str,
    total: int | None,
    progress: bool | None,
    rows: Callable[[Any], int],
) -> list[Any]:
    """The results, with progress on the terminal, where each is worth so many rows.

    In order, so that of several errors the first in the source is raised.
    """
    found: list[Any] = []
    tasks.wanted += futures
    with late_progress(doing, total, progress) as report:
        done = 0
        for future in futures:
            found.append(future.result())
            done += rows(found[-1])
            report(f"{done:,} rows on {tasks.threads} threads", done)
    return found
