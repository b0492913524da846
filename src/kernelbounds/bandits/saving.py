"""Runs: ask, try and tell, round after round.

Policies on disk: the sequence, the domain, what is pending and what was known when.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from kernelbounds.arrays import Array, as_flag, as_outcome, as_scalar, as_whole, brief
from kernelbounds.assume.offset import Offset
from kernelbounds.assume.parts import Parts
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bounds import Bound
from kernelbounds.display.progress import late_progress
from kernelbounds.errors import InputError, StoredFileError, said
from kernelbounds.io import archive
from kernelbounds.mixtures import Mixture
from kernelbounds.sequence import ConfidenceSequence, storage

if TYPE_CHECKING:
    from kernelbounds.bandits.policy import Policy

P = TypeVar("P", bound="Policy")

FORMAT, VERSION = "kernelbounds.Policy", 4
NAMES = storage.NAMES | {"domain", "pending", "asked", "asked_bounds", "records"}


def save(policy: Policy, path: str | PathLike[str]) -> None:
    """Write a policy to a file, atomically."""
    archive.write(path, *_pack(policy))


def check(policy: Policy, path: str | PathLike[str]) -> None:
    """Refuse now what :func:`save` would refuse later."""
    archive.check_writable(path)
    with policy.lock:
        _pack(policy)


def _pack(policy: Policy) -> archive.Packed:
    header, arrays = policy.sequence.pack()
    domain, limits = _pack_domain(policy.domain)
    asked = [np.frombuffer(key) for key in policy.ledger.asked]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "policy": type(policy).__name__,
        "sequence": header,
        "domain": domain,
        "minimise": policy.minimise,
        "settings": _settings(policy),
    }
    arrays |= {
        "domain": limits,
        "pending": policy.pending,
        "asked": np.array(asked).reshape(len(asked), -1) if asked else np.empty((0, 0)),
        "asked_bounds": np.array(list(policy.ledger.asked.values())).reshape(-1, 3),
        "records": policy.ledger.told,
    }
    return whole, arrays


def _settings(policy: Policy) -> dict[str, Any]:
    found = policy.settings()
    try:
        json.dumps(found)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{type(policy).__name__}.settings() must return plain data for JSON: {said(error)}."
        ) from error
    return found


def load(
    cls: type[P],
    path: str | PathLike[str],
    kernel: Kernel | Parts | None,
    bound: Bound | None,
    mixture: Mixture | None,
    offset: Offset | None,
) -> P:
    """What :func:`save` wrote."""
    own = storage.UserObjects.checked(kernel, bound, mixture, offset)
    header, arrays = archive.read(path, FORMAT, VERSION, "a saved policy", NAMES)
    if header.get("policy") != cls.__name__:
        raise StoredFileError(
            f"{str(path)!r} holds a {header.get('policy')}, not a {cls.__name__}."
        )
    with archive.damage_reported(path):
        stored = dict(header["sequence"])
    sequence = ConfidenceSequence.unpack(path, (stored, arrays), own)
    with archive.damage_reported(path):
        domain = _unpack_domain(header["domain"], arrays["domain"])
        policy = cls(sequence, domain, minimise=header["minimise"])
        policy.restore(header["settings"])
        policy.ledger.pending = [point.copy() for point in arrays["pending"]]
        bounds = [(float(a), float(b), float(c)) for a, b, c in arrays["asked_bounds"]]
        keys = [np.ascontiguousarray(point).tobytes() for point in arrays["asked"]]
        policy.ledger.asked = dict(zip(keys, bounds, strict=True))
        policy.ledger.record((float(a), float(b), float(c)) for a, b, c in arrays["records"])
    return policy


def _pack_domain(domain: Domain | None) -> tuple[dict[str, Any], Array]:
    if isinstance(domain, Finite):
        return {"kind": "Finite", "once": domain.once}, domain.points
    if isinstance(domain, Box):
        return {"kind": "Box", "names": domain.names}, np.array([domain.lower, domain.upper])
    return {"kind": None}, np.empty((0, 0))


def _unpack_domain(data: dict[str, Any], limits: Array) -> Domain | None:
    if data["kind"] == "Finite":
        return Finite(limits, data["once"])
    return Box(limits[0], limits[1], data["names"]) if data["kind"] == "Box" else None


if TYPE_CHECKING:
    from kernelbounds.bandits.policy import Policy


def run(
    policy: Policy,
    experiment: Callable[[Any], float],
    rounds: int,
    *,
    batch: int,
    named: bool,
    stop_when_regret_below: float | None,
    save_to: str | PathLike[str] | None,
) -> None:
    """See :meth:`~kernelbounds.bandits.Policy.run`."""
    total, size = as_whole(rounds, "rounds", least=1), as_whole(batch, "batch", least=1)
    if not callable(experiment):
        raise InputError(f"experiment must be a function of an action, got {brief(experiment)}.")
    if as_flag(named, "named") and not (isinstance(policy.domain, Box) and policy.domain.names):
        raise InputError("named=True needs a Box with names as domain.")
    if save_to is not None:
        check(policy, save_to)
    enough = stop_when_regret_below
    if enough is not None:
        enough = as_scalar(enough, "stop_when_regret_below", above=0.0)
    if enough is not None and len(policy.sequence) and policy.is_good_enough(enough):
        if save_to is not None:  # a run that has nothing left to do leaves its file, too
            policy.save(save_to)
        return
    done = 0
    with late_progress("running", total) as report:
        while done < total:
            found = policy.ask(n=min(size, total - done))
            tried = [dict(one.named) if named else one.x.copy() for one in found]
            outcomes = [
                as_outcome(experiment(action), "the outcome of an experiment") for action in tried
            ]
            policy.tell(np.array([one.x for one in found]), outcomes)
            done += len(found)
            if save_to is not None:
                policy.save(save_to)
            report(f"round {done} of {total}", done)
            if enough is not None and policy.is_good_enough(enough):
                break
