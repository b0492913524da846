"""Rows added by a Dask cluster: a scheduler and two worker processes on this machine."""

from __future__ import annotations

import os
import signal
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import kernelbounds as kb
from kernelbounds.engine.sparse.ranges import chunk_ends
from kernelbounds.sequence import cluster as passes, cluster as tasks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

BOX = kb.Box([0, 0], [1, 1])
POINTS = BOX.filling(7)
COLUMNS = {"inputs": ["a", "b"], "output": "y"}
COUNT = 5000


def sparse(kernel=None, **options):
    options = {"engine": kb.Sparse.filling([0, 0], [1, 1], 25), **options}
    return kb.ConfidenceSequence(kernel or RBF(0.7), 4.0, 0.1, **options)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):  # fmt: skip
        yield found


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, COUNT))
    y = np.sin(2 * a) * b + 0.1 * rng.standard_normal(COUNT)
    return {"a": a, "note": np.full(COUNT, "x"), "y": y, "b": b, "sigma": 0.1 + 0.1 * a}


@pytest.fixture(scope="module")
def folder(columns, tmp_path_factory):
    """Three files, whose ends and row groups are none of the engine's."""
    found = tmp_path_factory.mktemp("parts")
    for number, rows in enumerate(np.split(np.arange(COUNT), [700, 3333])):
        some = pa.table({name: values[rows] for name, values in columns.items()})
        pq.write_table(some, found / f"part-{number}.parquet", row_group_size=419)
    return found


def as_frame(columns, npartitions=4):
    import dask.dataframe
    import pandas

    return dask.dataframe.from_pandas(pandas.DataFrame(columns), npartitions=npartitions)


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    np.testing.assert_allclose(found.bounds(POINTS), wanted.bounds(POINTS), rtol=1e-10, atol=1e-10)
    assert found.radius == pytest.approx(wanted.radius, rel=1e-12)
    assert found.approximation.floor == pytest.approx(wanted.approximation.floor, rel=1e-10)
    # And they go on in the same way.
    more = np.random.default_rng(5).random((300, 2)), np.zeros(300)
    for one in (found, wanted):
        one.update(*more)
    np.testing.assert_allclose(found.bounds(POINTS), wanted.bounds(POINTS), rtol=1e-10, atol=1e-10)


ROUGH = partial(sparse, Matern(0.5, nu=1.5))
PAPERS = partial(sparse, mixture_scale=1.0, offset=0.3)


@pytest.mark.parametrize(
    ("kind", "make", "options"),
    [
        ("files", sparse, {}),
        ("frame", sparse, {"noise_scale": "sigma"}),
        ("files", ROUGH, {"noise_scale": "sigma", "batch": 613}),
        ("frame with the current client", PAPERS, {}),
    ],
)
def test_bounds_are_those_of_one_machine(client, columns, folder, kind, make, options):
    points = np.random.default_rng(3).random((150, 2))
    first = points, np.sin(2 * points[:, 0]) * points[:, 1]
    found, wanted = make(), make()
    for one in (found, wanted):
        one.update(*first)
        one.bounds(POINTS)
    if kind == "frame with the current client":
        with client.as_current():
            assert found.update_from(as_frame(columns), **COLUMNS, **options) == COUNT
    else:
        source = folder if kind == "files" else as_frame(columns)
        assert found.update_from(source, **COLUMNS, **options, client=client) == COUNT
    assert wanted.update_from(folder, **COLUMNS, **options) == COUNT
    assert_same(found, wanted)


def test_there_are_several_ranges_that_begin_with_a_chunk():
    engine = sparse().known.radius_engine
    for count in (1, 7, 5000, 123_456, 3_000_000):
        for threads in (1, 2, 7):
            found = passes.ranges(engine, count, threads)
            starts, stops = zip(*found)
            assert starts == (0, *stops[:-1]) and stops[-1] == count
            assert set(starts[1:]) <= set(chunk_ends(engine, count))
            longest = max(np.subtract(stops, starts))
            if count > 100_000 and threads > 1:
                assert len(found) > threads and longest <= min(count // 2, 251_000)


def killing(inputs, counter, at):
    """What it is given; the call with this number, over all workers, kills its worker."""
    with open(counter, "ab") as file:
        file.write(b".")
    if os.path.getsize(counter) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return inputs


@pytest.mark.parametrize("kind", ["files", pytest.param("frame", marks=pytest.mark.slow)])
def test_a_worker_is_killed_in_the_middle_of_the_work(client, columns, folder, kind, tmp_path):
    counter = tmp_path / "calls"
    # Files are read first to check, in seven batches, and then for each of the passes.
    at, batch = (11, 1000) if kind == "files" else (3, 1000)
    found, wanted = sparse(), sparse()
    workers = set(client.scheduler_info()["workers"])
    found.update_from(
        folder if kind == "files" else as_frame(columns),
        **COLUMNS,
        client=client,
        batch=batch,
        transform=partial(killing, counter=counter, at=at),
    )
    assert counter.stat().st_size > at
    assert workers != set(client.scheduler_info()["workers"])
    wanted.update_from(folder, **COLUMNS)
    assert_same(found, wanted)
    client.wait_for_workers(2)


def refused(sequence, said, *arguments, error=kb.InputError, **options):
    before = len(sequence), sequence.bounds(POINTS)
    with pytest.raises(error, match=said) as caught:
        sequence.update_from(*arguments, **{**COLUMNS, **options})
    assert "\n" not in str(caught.value)
    assert len(sequence) == before[0]
    np.testing.assert_array_equal(sequence.bounds(POINTS), before[1])


def test_what_is_refused_leaves_everything_as_it_was(client, columns, folder, tmp_path):
    found = sparse()
    found.update([[0.5, 0.5]], [0.3])
    bad = {**columns, "y": columns["y"].copy()}
    bad["y"][4000] = np.inf
    frame = as_frame(bad)
    place = r"^partition 3, row 250 \(the first is row 0\), column 'y': inf is not a finite"
    refused(found, place, frame, client=client)
    pq.write_table(pa.table(bad), tmp_path / "bad.parquet")
    several = [folder, tmp_path / "bad.parquet"]
    refused(found, r"bad\.parquet', row 4000 .*: inf is not", several, client=client)
    refused(found, "no column 'c'", frame, inputs=["a", "c"], client=client)
    refused(found, "no column 'c'", folder, inputs=["a", "c"], client=client)
    bad["sigma"] = np.where(np.arange(COUNT) == 1300, -1.0, columns["sigma"])
    said = r"partition 1, row 50 .*noise_scale must be positive"
    refused(found, said, as_frame(bad), noise_scale="sigma", client=client)
    (tmp_path / "runs.csv").write_text("a,b,y\n0,0,0\n")
    refused(found, "is not a Parquet file", tmp_path / "runs.csv", client=client)
    refused(found, "cannot read .*No such file", tmp_path / "none.parquet", client=client)
    empty = pa.table({name: np.empty(0) for name in "aby"})
    pq.write_table(empty, tmp_path / "empty.parquet")
    refused(found, "the source has no rows", tmp_path / "empty.parquet", client=client)
    refused(found, "client is for .* Parquet files and Dask dataframes", empty, client=client)
    refused(found, "client must be a distributed.Client", folder, client="tcp://127.0.0.1:8786")
    growing = sparse(engine=kb.Sparse(most=30))
    refused(growing, "may still grow, row by row", folder, client=client)
    exact = kb.ConfidenceSequence(RBF(0.7), 4.0, 0.1)
    refused(exact, "client is for sequences with engine=", folder, client=client)


def test_an_interrupt_leaves_everything_as_it_was(client, folder, monkeypatch):
    found = sparse()
    submit, sent = tasks.Tasks.submit, []

    def interrupted(self, function, *arguments):
        sent.append(function.__name__)
        if function.__name__ == "without_engine":
            raise KeyboardInterrupt
        return submit(self, function, *arguments)

    monkeypatch.setattr(tasks.Tasks, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.update_from(folder, **COLUMNS, client=client)
    assert "grow" in sent and len(found) == 0
    monkeypatch.undo()
    assert found.update_from(folder, **COLUMNS, client=client) == COUNT


def test_rows_that_change_between_the_passes_are_found(client, folder, tmp_path):
    def changing(inputs, counter=tmp_path / "calls"):
        with open(counter, "ab") as file:
            file.write(b".")
        return inputs * (1 - 1e-4 * os.path.getsize(counter))

    refused(
        sparse(), "other rows when it was read for the second time", folder, client=client,
        batch=1000, transform=changing,
    )  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
def test_a_dask_dataframe_without_a_cluster(columns, exact):
    few = {name: values[:300] for name, values in columns.items()}
    few["a"] = few["a"].copy()
    options = {"engine": None} if exact else {}
    found, wanted = sparse(**options), sparse(**options)
    assert found.update_from(as_frame(few), **COLUMNS) == 300
    wanted.update(np.stack([few["a"], few["b"]], axis=-1), few["y"])
    np.testing.assert_allclose(found.bounds(POINTS), wanted.bounds(POINTS), rtol=1e-12)
    few["a"][290] = np.inf
    refused(found, "^partition 3, row 65 .*: inf is not a finite", as_frame(few))
