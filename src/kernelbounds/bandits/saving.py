"""Policies on disk: the sequence, the domain, the actions under way, and the history."""

from __future__ import annotations

import json
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kernelbounds.arrays import Array
from kernelbounds.bandits.domains import Box, Domain, Finite
from kernelbounds.bandits.records import SAVED
from kernelbounds.categories import Categories
from kernelbounds.errors import InputError, StoredFileError, said
from kernelbounds.io import archive
from kernelbounds.sequence import ConfidenceSequence, storage

if TYPE_CHECKING:
    from kernelbounds.bandits.policy import Policy

P = TypeVar("P", bound="Policy")

# A policy's file holds a sequence, of the same version as a file of its own would.
FORMAT, VERSION = "kernelbounds.Policy", storage.VERSION
NAMES = storage.NAMES | {"domain", *SAVED}


def pack(policy: Policy) -> archive.Packed:
    """Return the contents of a policy's file: plain data, and arrays by name."""
    settings = policy.settings()
    try:
        json.dumps(settings)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{type(policy).__name__}.settings() must return plain data for JSON: {said(error)}."
        ) from error
    header, arrays = policy.sequence.pack()
    domain, limits = _pack_domain(policy.domain)
    whole: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "policy": type(policy).__name__,
        "sequence": header,
        "domain": domain,
        "minimise": policy.minimise,
        "settings": settings,
        "others": [],
    }
    for number, one in enumerate(policy.others):
        header, own = one.pack()
        whole["others"].append(header)
        arrays |= {f"{number}.{name}": array for name, array in own.items()}
    return whole, arrays | {"domain": limits} | policy._ledger.pack(policy.dim or 0)


def load(cls: type[P], path: str | PathLike[str], own: storage.UserObjects) -> P:
    """Read a saved policy, with the objects of a user's own that :meth:`Policy.load` was passed."""
    header, _ = archive.read(path, FORMAT, VERSION, "a saved policy", ())
    with archive.damage_reported(path):
        others = [(f"{at}.", dict(one)) for at, one in enumerate(header.get("others", ()))]
    names = NAMES | {f"{prefix}{name}" for prefix, _ in others for name in storage.NAMES}
    header, arrays = archive.read(path, FORMAT, VERSION, "a saved policy", names)
    if header.get("policy") != cls.__name__:
        raise StoredFileError(
            f"{str(path)!r} holds a {header.get('policy')}, not a {cls.__name__}."
        )
    with archive.damage_reported(path):
        stored = dict(header["sequence"])
    sequence = ConfidenceSequence.unpack(path, (stored, arrays), own)
    beside = [
        ConfidenceSequence.unpack(path, (one, _of_prefix(arrays, prefix)), storage.UserObjects())
        for prefix, one in others
    ]
    with archive.damage_reported(path):
        domain = _unpack_domain(header["domain"], arrays["domain"])
        minimise, settings = header["minimise"], header["settings"]
        policy = cls.from_saved(sequence, domain, minimise, settings, beside)
        policy._ledger.restore(arrays)
    return policy


def _of_prefix(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin like this, by the rest of their names."""
    return {
        name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)
    }


def _pack_domain(domain: Domain | None) -> tuple[dict[str, Any], Array]:
    if isinstance(domain, Finite):
        return {"kind": "Finite", "once": domain.once}, domain.points
    if isinstance(domain, Box):
        categories = {at: one.names for at, one in domain.categories.items()}
        data = {"kind": "Box", "names": domain.names, "categories": categories}
        return data, np.array([domain.lower, domain.upper])
    return {"kind": None}, np.empty((0, 0))


def _unpack_domain(data: dict[str, Any], limits: Array) -> Domain | None:
    if data["kind"] == "Finite":
        return Finite(limits, data["once"])
    if data["kind"] != "Box":
        return None
    listed = data.get("categories", {}).items()  # JSON has texts for numbers
    categories = {int(at): Categories(*names) for at, names in listed}
    return Box(limits[0], limits[1], data["names"], categories)
