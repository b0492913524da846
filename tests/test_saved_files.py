"""A file is loaded with the kernel and the bound that it was saved with, or not at all."""

from __future__ import annotations

import copy
import io
import json
import tracemalloc
import warnings
import zipfile
from functools import partial

import numpy as np
import pytest
from own_bounds import Wider
from problems import KERNELS, refused
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel, Matern, PairwiseKernel

import kernelbounds as kb
from kernelbounds.io import archive
from kernelbounds.sequence import exact_state, storage

X = np.random.default_rng(0).random((30, 2))
Y = np.sin(X.sum(axis=1))


def _saved(path, kernel, **options):
    seq = kb.ConfidenceSequence(kernel, 3.0, 0.1, **options)
    seq.update(X, Y)
    seq.save(path)
    policy = kb.KernelUCB(seq, kb.Finite(X))
    policy.save(path.with_suffix(".policy"))
    return seq


def _loads(path):
    """Both ways to load what :func:`_saved` has written."""
    policy = path.with_suffix(".policy")
    return [
        lambda **given: kb.ConfidenceSequence.load(path, **given),
        lambda **given: kb.KernelUCB.load(policy, **given).sequence,
    ]


@pytest.mark.parametrize(
    ("saved", "given", "both"),
    [
        (RBF(0.5), RBF(0.3), r"length_scale=0\.5\).*length_scale=0\.3\)"),
        (RBF(0.5), RBF(0.5000001), r"length_scale=0\.5\).*length_scale=0\.5000001\)"),
        (RBF(0.5), Matern(0.5, nu=2.5), r"RBF.*Matern"),
        (RBF([0.5, 0.4]), RBF([0.4, 0.5]), r"\[0\.5, 0\.4\].*\[0\.4, 0\.5\]"),
        (2.0 * RBF(0.5), 3.0 * RBF(0.5), r"constant_value=2.*constant_value=3"),
    ],
)
def test_a_kernel_with_other_hyperparameters_is_refused(tmp_path, saved, given, both):
    _saved(tmp_path / "x.npz", saved)
    for load in _loads(tmp_path / "x.npz"):
        refused(partial(load, kernel=given), both)


def test_a_kernel_is_refused_also_without_data(tmp_path):
    kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1).save(tmp_path / "x.npz")
    with pytest.raises(kb.InputError, match="same one"):
        kb.ConfidenceSequence.load(tmp_path / "x.npz", kernel=RBF(0.4))


@pytest.mark.parametrize("name", KERNELS)
def test_the_same_kernel_is_taken(tmp_path, name):
    seq = _saved(tmp_path / "x.npz", KERNELS[name])
    for load in _loads(tmp_path / "x.npz"):
        for given in (None, KERNELS[name]):
            np.testing.assert_array_equal(load(kernel=given).bounds(X[:3]), seq.bounds(X[:3]))


def test_how_the_same_kernel_is_written_does_not_matter(tmp_path):
    _saved(tmp_path / "x.npz", RBF([1.0, 2.0]))
    for given in (RBF([1, 2]), RBF(np.array([1, 2])), RBF((1, 2), length_scale_bounds="fixed")):
        assert len(kb.ConfidenceSequence.load(tmp_path / "x.npz", kernel=given)) == len(X)
    own = PairwiseKernel(metric="rbf", gamma=2.0, pairwise_kernels_kwargs={})
    _saved(tmp_path / "y.npz", own)
    assert len(kb.ConfidenceSequence.load(tmp_path / "y.npz", kernel=own)) == len(X)


class Own(Kernel):
    """A kernel that does not show what its scale is."""

    def __init__(self, scale=0.5):
        self.scale = scale

    def __call__(self, X, Y=None, eval_gradient=False):
        return RBF(self.scale)(X, X if Y is None else Y)

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return True

    def __repr__(self):
        return "<Own object at 0x7f00>"


class Other(Own):
    pass


def test_kernels_of_ones_own(tmp_path):
    seq = _saved(tmp_path / "x.npz", Own(0.5))
    for load in _loads(tmp_path / "x.npz"):
        np.testing.assert_array_equal(load(kernel=Own(0.5)).bounds(X[:3]), seq.bounds(X[:3]))
        refused(load, "pass it as load")
        refused(partial(load, kernel=Other(0.5)), "Own.*Other")
        refused(partial(load, kernel=RBF(0.5)), "Own.*RBF")
        for scale in (0.4, 0.5 + 1e-9):
            refused(partial(load, kernel=Own(scale)), "saved with another kernel")


@pytest.mark.parametrize("block", [1, 100, 2**20])
@pytest.mark.parametrize("at", [0, 1, 17, 464])
def test_a_matrix_that_is_not_the_kernels_is_damage(tmp_path, monkeypatch, at, block):
    monkeypatch.setattr(exact_state, "ENTRIES_AT_ONCE", block)
    _saved(tmp_path / "x.npz", Matern(0.5, nu=1.5))
    with np.load(tmp_path / "x.npz") as file:
        arrays = dict(file)
    arrays["gram"][at] *= 1 + 1e-12
    np.savez(tmp_path / "y.npz", **arrays)
    for kernel in (None, Matern(0.5, nu=1.5)):
        kind = kb.StoredFileError if kernel is None else kb.InputError
        with pytest.raises(kind, match=r"its kernel matrix has .* gives"):
            kb.ConfidenceSequence.load(tmp_path / "y.npz", kernel=kernel)


def test_points_of_size_nought_and_of_any_size(tmp_path):
    """Where k(x, x) = 0 nothing may be off, and nothing is."""
    for scale in (0.0, 1e-160, 1e-20, 1e20):
        seq = kb.ConfidenceSequence(DotProduct(sigma_0=0.0), 3.0, 0.1)
        for x in X:
            seq.update(scale * x, 0.0)
        seq.save(tmp_path / "x.npz")
        assert len(kb.ConfidenceSequence.load(tmp_path / "x.npz")) == len(X)


def test_the_check_needs_little_memory(tmp_path):
    seq = kb.ConfidenceSequence(Matern(0.5, nu=2.5), 3.0, 0.1)
    points = np.random.default_rng(0).random((1500, 2))
    seq.update(points, np.zeros(1500))
    engine = seq.known.engine
    tracemalloc.start()
    try:
        assert exact_state.misfit(engine) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 8 * exact_state.ENTRIES_AT_ONCE


class OwnBound(kb.Bound):
    """A bound of a user's own that says nothing of itself."""

    def extremes(self, known, points, signs):
        return kb.CMM().extremes(known, points, signs) + 0.1


class OtherBound(OwnBound):
    pass


@pytest.mark.parametrize(
    ("bound", "others"),
    [
        (OwnBound(), [OtherBound(), kb.CMM(), Wider(0.1)]),
        (Wider(0.25), [Wider(0.5), OwnBound(), kb.DMM()]),
    ],
)
def test_bounds_of_ones_own(tmp_path, bound, others):
    seq = _saved(tmp_path / "x.npz", RBF(0.5), bound=bound)
    for load in _loads(tmp_path / "x.npz"):
        refused(load, "pass it as load\\(path, bound=")
        for other in others:
            refused(partial(load, bound=other), "saved with the bound")
        for nothing in (type(bound), "CMM", 3):
            refused(partial(load, bound=nothing), "bound must be")
        again = load(bound=type(bound)(**vars(bound)))
        assert type(again.bound) is type(bound)
        np.testing.assert_array_equal(again.bounds(X[:4] + 0.01), seq.bounds(X[:4] + 0.01))


def test_a_policy_with_a_bound_of_ones_own_goes_on(tmp_path):
    policy = kb.KernelUCB(kb.ConfidenceSequence(RBF(0.5), 3.0, 0.1, bound=Wider(0.1)), kb.Finite(X))
    policy.run(lambda x: float(np.sin(x.sum())), 4, save_to=tmp_path / "x.npz")
    again = kb.KernelUCB.load(tmp_path / "x.npz", bound=Wider(0.1))
    assert again.ask().index == policy.ask().index


def test_a_bound_given_takes_the_place_of_one_of_the_packages(tmp_path):
    _saved(tmp_path / "x.npz", RBF(0.5), bound=kb.DMM(ridges=[0.1, 2.0]))
    for load in _loads(tmp_path / "x.npz"):
        assert load().bound == kb.DMM(ridges=[0.1, 2.0])
        for bound in (kb.AMM(), Wider(0.1)):
            assert load(bound=bound).bound == bound


@pytest.mark.parametrize(
    ("kernel", "options", "bound", "why"),
    [
        (RBF(0.5), {"engine": kb.Sparse()}, kb.AY(), "sparse engine"),
        (RBF(0.5), {"facts": [kb.facts.Between(-5, 5)]}, kb.FixedDesign(), "facts"),
        (kb.AnyOf([(RBF(0.5), 3.0), (RBF(0.2), 3.0)]), {}, kb.AY(), "all classes"),
        (RBF(0.5), {"misspecification": 0.1}, kb.IGP(eta=0.1), "misspecification"),
    ],
)
def test_a_bound_given_must_hold_for_what_was_saved(tmp_path, kernel, options, bound, why):
    norm_bound = None if isinstance(kernel, kb.AnyOf) else 3.0
    seq = kb.ConfidenceSequence(kernel, norm_bound, 0.1, **options)
    seq.update(X, Y)
    seq.save(tmp_path / "x.npz")
    refused(lambda: kb.ConfidenceSequence.load(tmp_path / "x.npz", bound=bound), why)


def test_a_stored_bound_is_one_of_the_packages_or_own(tmp_path):
    _saved(tmp_path / "x.npz", RBF(0.5), bound=Wider(0.1))
    with np.load(tmp_path / "x.npz") as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays["header"]))
    for change in ({"name": "Wider"}, {"own": True}, 3, {"name": "Wider", "own": True}):
        packed = json.dumps({**header, "bound": change}).encode()
        np.savez(tmp_path / "y.npz", **{**arrays, "header": np.frombuffer(packed, dtype=np.uint8)})
        with pytest.raises(kb.StoredFileError, match="damaged"):
            kb.ConfidenceSequence.load(tmp_path / "y.npz")


def _as_npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0))
    return file.getvalue()


ZEROS = _as_npy(np.zeros(4_000_000))  # 32 MB, and 32 kB when they are compressed
CLAIMED = ZEROS[:128]  # the header of such an array, and nothing behind it
BOMBS = {
    "unknown name": ("more", ZEROS, zipfile.ZIP_DEFLATED, None),
    "unknown claim": ("more", CLAIMED, zipfile.ZIP_STORED, None),
    "known name": ("outcomes", ZEROS, zipfile.ZIP_DEFLATED, "larger than the file"),
    "claim": ("outcomes", CLAIMED, zipfile.ZIP_STORED, r"of shape \(4000000,\) in 128 bytes"),
    "header": ("header", ZEROS, zipfile.ZIP_DEFLATED, "larger than the file"),
    "compressed": ("header", ZEROS[:100], zipfile.ZIP_DEFLATED, "header is compressed"),
    "twice": ("gram", _as_npy(np.zeros(3)), zipfile.ZIP_STORED, "two arrays of one name"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_takes_little_memory(tmp_path, bomb):
    _saved(tmp_path / "x.npz", RBF(0.4))
    name, content, method, message = BOMBS[bomb]
    for path, load in zip((tmp_path / "x.npz", tmp_path / "x.policy"), _loads(tmp_path / "x.npz")):
        with zipfile.ZipFile(path) as archive:
            parts = {one: archive.read(one) for one in archive.namelist()}
        if bomb != "twice":
            parts.pop(f"{name}.npy", None)
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
            warnings.simplefilter("ignore")  # of a name that is there twice
            archive.writestr(f"{name}.npy", content, compress_type=method)
            for one, part in parts.items():
                archive.writestr(one, part)
        assert path.stat().st_size < 1e5
        tracemalloc.start()
        try:
            if message is None:
                assert len(load()) == len(X)
            else:
                refused(load, message, kb.StoredFileError)
            assert tracemalloc.get_traced_memory()[1] < 2e6
        finally:
            tracemalloc.stop()


def test_arrays_that_share_their_bytes_are_refused(tmp_path):
    """Several names for one place in the file."""
    _saved(tmp_path / "x.npz", RBF(0.4))
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive:
        place = archive.getinfo("gram.npy")
        for name in sorted(storage.NAMES - {"gram"}):
            archive.NameToInfo[f"{name}.npy"] = again = copy.copy(place)
            again.filename = f"{name}.npy"
        archive.filelist[:] = archive.NameToInfo.values()
        archive._didModify = True
    refused(_loads(tmp_path / "x.npz")[0], "larger than the file|[Oo]verlap", kb.StoredFileError)


def _sparse():
    """A sequence whose file has all that a file of a sparse engine may have."""
    seq = kb.ConfidenceSequence(RBF(0.4), 3.0, 0.1, engine=kb.Sparse(most=12))
    points = np.random.default_rng(1).random((1100, 2))
    seq.update(points[:-5], np.sin(points[:-5].sum(axis=1)))
    seq.bounds(X[:2])
    seq.update(points[-5:], np.sin(points[-5:].sum(axis=1)))
    return seq


def _tampered(header, arrays):
    """What a file may become: arrays of other shapes and values, numbers that are none."""
    for name, part in arrays.items():
        others = [None, part[None], part[:-1], np.concatenate([part, part[-1:]]), part.astype(str)]
        others += [-part - 1.0, np.full_like(part, 1e99), part.T[:-1].T, np.zeros_like(part)]
        for other in others:
            changed = {key: one for key, one in arrays.items() if key != name}
            yield name, header, changed if other is None else changed | {name: other}
    numbers = header["sparse"]
    places = [(None, name) for name, one in numbers.items() if not isinstance(one, dict)]
    places += [(p, name) for p, one in numbers.items() if isinstance(one, dict) for name in one]
    for part, name in places:
        for value in (-1, 0.5, 10**30, "x", None):
            changed = copy.deepcopy(header)
            (changed["sparse"] if part is None else changed["sparse"][part])[name] = value
            yield f"{part}.{name} = {value}", changed, arrays


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:with 12 inducing points")
def test_tampered_sparse_files_are_refused_or_can_be_used(tmp_path):
    """Whatever is raised after loading is one of the library's own errors."""
    path, refused, raw = tmp_path / "x.npz", 0, []
    _sparse().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays.pop("header")))
    assert any(name.startswith("sparse._basis") for name in arrays)
    for what, changed, parts in _tampered(header, arrays):
        archive.write(path, changed, parts)
        try:
            seq = kb.ConfidenceSequence.load(path)
        except kb.StoredFileError as error:
            refused += "\n" not in str(error)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                seq.bounds(X[:2])
                seq.bounds(X[:2], kb.FixedDesign())
                seq.update(X, Y)
                seq.bounds(X[:2])
            except kb.KernelBoundsError:
                pass
            except Exception as error:
                raw.append(f"{what}: {error!r}")
    assert not raw, raw[:5]
    assert refused > 250
