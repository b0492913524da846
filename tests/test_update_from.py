"""Rows from files and tables: the same bounds as in one go, and all rows or none."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import os
import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.engine import SparseEngine
from kernelbounds.io.csv_table import csv_batches, read_csv, write_csv
from kernelbounds.io.sources import as_source
from kernelbounds.sequence import sparse as blocks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

KERNEL = RBF(0.7)
BOX = kb.Box([0, 0], [1, 1])
POINTS = BOX.filling(7)
COLUMNS = {"inputs": ["a", "b"], "output": "y"}


def exact(**options):
    return kb.ConfidenceSequence(KERNEL, 4.0, 0.1, **options)


def sparse(**options):
    return exact(engine=kb.Sparse.filling([0, 0], [1, 1], 25), **options)


def table(count, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, count))
    return {
        "a": a,
        "note": np.arange(count),
        "y": np.sin(2 * a) * b + 0.1 * rng.standard_normal(count),
        "b": b,
        "sigma": rng.uniform(0.05, 0.3, count),
    }


def rows_of(columns, *parts):
    """The arguments of ``update`` for some tables, one after the other."""
    whole = {name: np.concatenate([part[name] for part in parts]) for name in columns}
    return np.stack([whole["a"], whole["b"]], axis=-1), whole["y"], whole.get("sigma")


def expected(make, *parts, noise=False):
    sequence = make()
    X, y, scales = rows_of(["a", "b", "y", "sigma"], *parts)
    sequence.update(X, y, scales if noise else None)
    return sequence


def assert_same(found, wanted, tolerance=1e-12):
    assert len(found) == len(wanted)
    np.testing.assert_allclose(
        found.bounds(POINTS), wanted.bounds(POINTS), rtol=tolerance, atol=tolerance
    )
    assert found.radius == pytest.approx(wanted.radius, rel=1e-12)


def arrow(columns):
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def as_csv(columns, folder):
    write_csv(folder / "runs.csv", columns)
    return folder / "runs.csv"


def as_parquet(columns, folder):
    pq.write_table(arrow(columns), folder / "runs.parquet", row_group_size=97)
    return folder / "runs.parquet"


def as_folder(columns, folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "_SUCCESS").touch()
    for number, at in enumerate(np.array_split(np.arange(len(columns["y"])), 3)):
        part = {name: values[at] for name, values in columns.items()}
        if number == 1:
            pq.write_table(arrow(part), folder / "parts" / "part-1.parquet")
        else:
            write_csv(folder / "parts" / f"part-{number}.csv", part)
    return str(folder / "parts")


def as_list(columns, folder):
    found = as_folder(columns, folder)
    return [os.path.join(found, name) for name in sorted(os.listdir(found)) if "part" in name]


def as_reader(columns, folder):
    whole = arrow(columns)
    empty = whole.slice(0, 0).to_batches() or [pa.RecordBatch.from_pylist([], whole.schema)]
    batches = [*empty, *whole.to_batches(max_chunksize=61), *empty]
    return pa.RecordBatchReader.from_batches(whole.schema, iter(batches))


def as_pandas(columns, folder):
    return pytest.importorskip("pandas", "2.2").DataFrame(columns)


def as_polars(columns, folder):
    return pytest.importorskip("polars").DataFrame(columns)


def as_duckdb(columns, folder):
    duckdb = pytest.importorskip("duckdb")
    path = as_parquet(columns, folder)
    found = duckdb.sql(f"select * from read_parquet('{path}')")
    if not hasattr(found, "__arrow_c_stream__"):
        pytest.skip("this DuckDB has no Arrow streams")
    return found


def as_table(columns, folder):
    return arrow(columns)


SOURCES = [as_csv, as_parquet, as_folder, as_list, as_table, as_reader, as_pandas, as_polars]
SOURCES += [as_duckdb]


@pytest.mark.parametrize("batch", [37, 50_000])
@pytest.mark.parametrize("make", [exact, sparse])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_bounds_of_one_update(source, make, batch, tmp_path):
    columns = table(400)
    found = make()
    added = found.update_from(source(columns, tmp_path), **COLUMNS, batch=batch)
    assert added == 400
    assert_same(found, expected(make, columns))


@pytest.mark.parametrize("make", [exact, sparse])
def test_more_rows_follow_those_there_are(make, tmp_path):
    first, second = table(150, 1), table(201, 2)
    found, wanted = make(), make()
    found.update(*rows_of(["a", "b", "y"], first)[:2])
    found.bounds(POINTS)
    wanted.update(*rows_of(["a", "b", "y"], first)[:2])
    wanted.bounds(POINTS)
    found.update_from(as_csv(second, tmp_path), **COLUMNS, batch=10)
    wanted.update(*rows_of(["a", "b", "y"], second)[:2])
    assert_same(found, wanted)
    found.update_from(arrow(first), **COLUMNS)
    assert len(found) == 501


@pytest.mark.parametrize("make", [exact, sparse])
def test_noise_scales_from_a_column(make):
    columns = table(300)
    found = make()
    found.update_from(arrow(columns), **COLUMNS, noise_scale="sigma", batch=70)
    assert_same(found, expected(make, columns, noise=True))


def test_blocks_do_not_depend_on_batches():
    columns = table(3000)
    sequences = [sparse() for _ in range(3)]
    for sequence, batch in zip(sequences, (1, 777, 5000)):
        sequence.update_from(arrow(columns), **COLUMNS, batch=batch)
    lower, upper = expected(sparse, columns).bounds(POINTS)
    for sequence in sequences:
        np.testing.assert_array_equal(sequence.bounds(POINTS), [lower, upper])
    # Other blocks give other forecasts, and so bounds that are similar.
    other = sparse()
    for part in np.array_split(np.arange(3000), 300):
        other.update(*rows_of(["a", "b", "y"], {n: v[part] for n, v in columns.items()})[:2])
    width = np.subtract(*other.bounds(POINTS)[::-1]).mean()
    assert width == pytest.approx(np.mean(upper - lower), rel=0.05)


TYPES = [pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.decimal128(9, 3), pa.bool_()]
TYPES += [pa.float16()]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types_of_numbers(kind):
    values = [decimal.Decimal("0.125"), decimal.Decimal("1.5")]
    if not pa.types.is_decimal(kind):
        values = [True, False] if pa.types.is_boolean(kind) else [0, 1]
        values = [np.float16(v) for v in values] if kind == pa.float16() else values
    column = pa.array(values, kind)
    chunked = pa.chunked_array([column.slice(0, 1), column.slice(1), column.slice(0, 0)])
    found = exact()
    found.update_from(pa.table({"a": chunked, "b": [1, 0], "y": chunked}), **COLUMNS)
    np.testing.assert_array_equal(found.points[:, 0], [float(v) for v in values])
    np.testing.assert_array_equal(found.outcomes, [float(v) for v in values])


def with_last(value, kind=None):
    """A table whose last row has this outcome."""
    columns = table(5)
    del columns["sigma"]
    return pa.table({**columns, "y": pa.array([*([1] * 4), value], kind)})


DAY = datetime.datetime(2024, 1, 3)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (with_last(None), r"row 4 \(the first is row 0\), column 'y': None is a missing value"),
        (with_last(np.nan), "row 4 .*, column 'y': nan is not a finite number"),
        (with_last(-np.inf), "row 4 .*, column 'y': -inf is not a finite number"),
        (with_last(1e200), r"row 4 .*: 1e\+200 is not a finite number of size up to 1e\+100"),
        (with_last(2**53 + 1), "row 4 .*: 9007199254740993 is above 2.53 and would lose digits"),
        (with_last(2**64 - 1, pa.uint64()), "row 4 .* would lose digits"),
        (pa.table({"a": [1], "b": [1], "y": pa.nulls(1)}), "row 0 .*: None is a missing value"),
        (
            pa.table({"a": [1], "b": [1], "y": ["2"]}),
            "column 'y': it is of type string, and not of num",
        ),
        (
            pa.table({"a": [1], "b": [1], "y": pa.array(["2"]).dictionary_encode()}),
            "column 'y': it is of type dictionary.*, and not of numbers",
        ),
        (
            pa.table({"a": [1], "b": [1], "y": [DAY]}),
            r"type timestamp\[us\], and not of numbers; make a column of numbers, of dates for ins",
        ),
        (pa.table({"a": [1], "b": [1], "y": [DAY - DAY]}), "type duration.*, and not of numbers"),
        (pa.table({"a": [1], "b": [1], "y": [[2.0]]}), "type list.*, and not of numbers"),
        (pa.table({"a": [1], "B": [1], "y": [1]}), r"no column 'b' \(did you mean 'B'\?\); its"),
        (pa.table([[1], [1], [1], [1]], ["a", "b", "y", "b"]), "has 2 columns named 'b'; give"),
        (pa.table({"a": [], "b": [], "y": []}, pa.schema([(n, "f8") for n in "aby"])), "no rows"),
        (pa.table({}), "has no columns 'a', 'b', 'y'; its columns are none"),
        (pa.chunked_array([[1.0]]), "the source cannot be read as a table of columns: "),
        (5, "a source must be a CSV or Parquet file"),
        ({"a": [1]}, "a source must be"),
        ([], "the list of files is empty"),
        ([5], "a source must be"),
    ],
)
@pytest.mark.parametrize("make", [exact, sparse])
def test_tables_that_are_refused(make, source, said):
    found = make()
    with pytest.raises(kb.InputError, match=said) as caught:
        found.update_from(source, **COLUMNS, batch=2)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".") and len(message) < 400
    assert len(found) == 0


@pytest.mark.parametrize("bad", [0, 100, 249])
@pytest.mark.parametrize("kind", ["csv", "parquet", "stream", "second file", "noise"])
@pytest.mark.parametrize("make", [exact, sparse])
def test_a_bad_row_leaves_everything_as_it_was(make, kind, bad, tmp_path):
    good, columns = table(40, 7), table(250)
    options = dict(COLUMNS)
    found = make()
    found.update(*rows_of(["a", "b", "y"], good)[:2])
    before = found.bounds(POINTS)
    if kind == "noise":
        columns["sigma"][bad] = 0.0
        source, said = arrow(columns), rf"^row {bad} \(.*noise_scale must be positive"
        options["noise_scale"] = "sigma"
    elif kind in ("csv", "second file"):
        source = as_csv(columns, tmp_path)
        lines = source.read_text().splitlines()
        cells = lines[bad + 1].split(",")
        cells[2] = "oops"
        lines[bad + 1] = ",".join(cells)
        source.write_text("\n".join(lines))
        said = rf"runs\.csv', line {bad + 2}, column 'y': 'oops' is not a finite number"
        if kind == "second file":
            pq.write_table(arrow(good), tmp_path / "a.parquet")
            source = [tmp_path / "a.parquet", source]
    else:
        mask = np.arange(250) == bad
        whole = pa.table({**columns, "y": pa.array(columns["y"], mask=mask)})
        source, said = whole, rf"^row {bad} \(the first is row 0\), column 'y': None"
        if kind == "parquet":
            source, said = tmp_path / "x.parquet", rf"x\.parquet', row {bad} \(.*column 'y': None"
            pq.write_table(whole, source, row_group_size=60)
    with pytest.raises(kb.InputError, match=said):
        found.update_from(source, **options, batch=100)
    assert len(found) == 40
    np.testing.assert_array_equal(found.bounds(POINTS), before)
    found.update_from(arrow(good), **COLUMNS)
    assert len(found) == 80


@pytest.mark.parametrize("make", [exact, sparse])
def test_an_interrupt_leaves_everything_as_it_was(make):
    columns = table(300)
    found = make()
    found.update(*rows_of(["a", "b", "y"], table(40, 7))[:2])
    before = found.bounds(POINTS)

    def batches():
        yield from arrow(columns).to_batches(max_chunksize=100)
        raise KeyboardInterrupt

    source = pa.RecordBatchReader.from_batches(arrow(columns).schema, batches())
    with pytest.raises(KeyboardInterrupt):
        found.update_from(source, **COLUMNS)
    assert len(found) == 40
    np.testing.assert_array_equal(found.bounds(POINTS), before)


def interrupt_after(count, monkeypatch):
    """As by Ctrl-C, once so many observations are there."""
    append = SparseEngine.append

    def interrupted(self, points, outcomes):
        if self.data.count > count:
            raise KeyboardInterrupt
        append(self, points, outcomes)

    monkeypatch.setattr(SparseEngine, "append", interrupted)


def test_an_interrupt_in_the_middle_of_the_work(tmp_path, monkeypatch):
    found, path = sparse(), as_csv(table(300), tmp_path)
    found.update(*rows_of(["a", "b", "y"], table(40, 7))[:2])
    before = found.bounds(POINTS)
    interrupt_after(150, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        found.update_from(path, **COLUMNS, batch=50)
    assert len(found) == 40
    np.testing.assert_array_equal(found.bounds(POINTS), before)


def test_an_update_of_many_rows_reports_and_is_the_same(monkeypatch, capfd):
    X, y = rows_of(["a", "b", "y"], table(330))[:2]
    at_once, by_batches, shown = sparse(), sparse(), []
    at_once.update(X, y)

    @contextlib.contextmanager
    def recorded(title, total):
        yield lambda text, done: shown.append((text, done))

    monkeypatch.setattr(blocks, "ROWS_PER_REPORT", 100)
    by_batches.update(X, y)  # which is no terminal
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(by_batches.bounds(POINTS), at_once.bounds(POINTS))
    monkeypatch.setattr(blocks, "late_progress", recorded)
    sparse().update(X, y)
    assert [done for _, done in shown] == [100, 200, 300, 330]
    assert shown[-1][0] == "330 of 330 rows"


def test_an_interrupt_in_the_middle_of_an_update(monkeypatch):
    found = sparse()
    found.update(*rows_of(["a", "b", "y"], table(40, 7))[:2])
    before = found.bounds(POINTS)
    interrupt_after(150, monkeypatch)
    monkeypatch.setattr(blocks, "ROWS_PER_REPORT", 50)
    with pytest.raises(KeyboardInterrupt):
        found.update(*rows_of(["a", "b", "y"], table(300))[:2])
    assert len(found) == 40
    np.testing.assert_array_equal(found.bounds(POINTS), before)


def test_bounds_may_be_asked_for_meanwhile_but_nothing_added():
    columns = table(200)
    found = sparse()
    found.update([[0.5, 0.5]], [0.3])
    seen = []

    def batches(adding):
        for batch in arrow(columns).to_batches(max_chunksize=100):
            yield batch
            other = threading.Thread(
                target=lambda: seen.append(
                    found.update([[0.1, 0.1]], [0.0]) if adding else found.bounds(POINTS)
                )
            )
            other.start()
            other.join(20)

    schema = arrow(columns).schema
    source = pa.RecordBatchReader.from_batches(schema, batches(False))
    assert found.update_from(source, **COLUMNS) == 200
    np.testing.assert_array_equal(seen[0], seen[1])
    assert len(seen) == 2 and len(found) == 201
    with pytest.raises(kb.InputError, match="other observations were added"):
        found.update_from(pa.RecordBatchReader.from_batches(schema, batches(True)), **COLUMNS)
    assert len(found) == 203


def test_files_that_are_refused(tmp_path):
    found, columns = sparse(), table(5)
    path = as_csv(columns, tmp_path)
    folder = tmp_path / "parts"
    folder.mkdir()

    def refused(source, said, error=kb.InputError):
        with pytest.raises(error, match=said) as caught:
            found.update_from(source, **COLUMNS)
        assert "\n" not in str(caught.value) and len(found) == 0

    refused(folder, "has no files ending in .csv")
    refused(tmp_path / "none.csv", "^cannot read .*No such file")
    refused([path, tmp_path / ".." / tmp_path.name / "runs.csv"], "is among the files twice")
    for name in ("part-2.csv", "part-10.csv"):
        write_csv(folder / name, columns)
    refused(folder, "'part-10.csv' and 'part-2.csv', whose order is not clear; pass a list")
    (folder / "part-10.csv").unlink()
    (folder / "notes.txt").touch()
    refused(folder, "has 'notes.txt' in it, which is not one of")
    (folder / "notes.txt").unlink()
    (folder / "year=2024").mkdir()
    refused(folder, "has 'year=2024' in it")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    refused(tmp_path / "broken.parquet", r"broken\.parquet' cannot be read")
    (tmp_path / "empty.csv").write_text("a,b,y\n")
    refused([path, tmp_path / "empty.csv"], r"empty\.csv' has a header and no rows")
    os.mkfifo(tmp_path / "fifo")
    refused(tmp_path / "fifo", "it is a FIFO")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"inputs": "a"}, "inputs must be a list of the names"),
        ({"inputs": []}, "inputs must be a list of the names"),
        ({"inputs": [1, 2]}, "must be a list of names"),
        ({"inputs": ["a", "a"]}, "'a' is asked for twice"),
        ({"inputs": ["a"]}, "inputs has 1 columns, but points of the sequence have 2"),
        ({"output": "a"}, "'a' is asked for twice"),
        ({"output": 3}, "output must be the name of a column"),
        ({"noise_scale": 0.1}, "the name of a column, and noise_scale too, or None .*, got .* 0.1"),
        ({"batch": 0}, "batch must be"),
        ({"progress": "yes"}, "progress must be"),
        ({"transform": 3}, "transform must be a function"),
        ({"transform": lambda x: x[:-1]}, "transform made|is empty"),
        ({"transform": lambda x: x[:, :1]}, "row 0 .*: the result of transform has 1 columns"),
    ],
)
def test_arguments_that_are_refused(options, said):
    found = sparse()
    with pytest.raises(kb.InputError, match=said):
        found.update_from(arrow(table(5)), **{**COLUMNS, **options})
    assert len(found) == 0


def test_inputs_are_transformed_and_errors_name_the_row():
    problem = kb.Problem(["a=0:2", "b=0:2"], "y=-3:3", 0.1, kernel="RBF(0.7)", norm_bound=4.0)
    columns = table(120)
    found, wanted = sparse(), sparse()
    found.update_from(arrow(columns), **COLUMNS, transform=problem.scaled, batch=50)
    X, y, _ = rows_of(["a", "b", "y"], columns)
    wanted.update(X / 2, y)
    assert_same(found, wanted)
    columns["b"][77] = 5.0
    with pytest.raises(kb.InputError, match=r"^row 77 \(the first is row 0\): b = 5 is not in"):
        found.update_from(arrow(columns), **COLUMNS, transform=problem.scaled, batch=50)
    assert len(found) == 120


def test_progress_is_shown_when_asked_for(tmp_path, capfd):
    path = as_csv(table(50), tmp_path)
    found = sparse()
    found.update_from(path, **COLUMNS)
    found.update_from(path, **COLUMNS, progress=False)
    assert capfd.readouterr() == ("", "")
    found.update_from(path, **COLUMNS, progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""


def test_pyarrow_is_needed_for_all_but_csv(tmp_path, monkeypatch):
    path, other = as_csv(table(5), tmp_path), as_parquet(table(5), tmp_path)
    source = arrow(table(5))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = sparse()
    assert found.update_from(path, **COLUMNS) == 5
    for one in (other, source):
        with pytest.raises(kb.MissingExtraError, match=r"kernelbounds\[arrow\]"):
            found.update_from(one, **COLUMNS)
    assert len(found) == 5


# Memory is measured in a process of its own, whose peak is that of nothing else.
MEASURE = """
import resource, sys
import numpy as np
import pyarrow as pa, pyarrow.parquet as pq
from sklearn.gaussian_process.kernels import RBF
import kernelbounds as kb

count, path = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
schema = pa.schema([(name, "f8") for name in "aby"])
with pq.ParquetWriter(path, schema) as writer:
    for _ in range(count // 100_000):
        a, b = rng.random((2, 100_000))
        y = np.exp(-((a - 0.5) ** 2 + b**2) / 4) + 0.1 * rng.standard_normal(100_000)
        writer.write_table(pa.table([a, b, y], schema=schema))
box = kb.Box([0, 0], [1, 1])
def new():
    return kb.ConfidenceSequence(RBF(1.5), 3.0, 0.1, engine=kb.Sparse(box.filling(36)))
warm = new()
warm.update_from(pa.table([a[:5000], b[:5000], y[:5000]], schema=schema), ["a", "b"], "y")
warm.bounds([[0.5, 0.5]])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, seq = peak(), new()
assert seq.update_from(path, ["a", "b"], "y") == count
lower, upper = seq.bounds([[0.5, 0.5]])
assert lower[0] < np.exp(-0.0625) < upper[0]
print(peak() - before)
"""


def measured(count, folder):
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(count), str(folder / "x.pq")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are in other units elsewhere")
def test_memory_of_many_rows(tmp_path):
    assert measured(100_000, tmp_path) < 60


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are in other units elsewhere")
def test_memory_of_millions_of_rows(tmp_path):
    assert measured(2_000_000, tmp_path) < 150


# --- CSV files in batches

PIECES = ["\n", "\r\n", ",", ";", '"', "NA", "1,5", "1,234", "0.5", "-", "inf", "é", "\0", "2", "x"]
fuzz = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(read):
    """What is read, or the message with which it is refused."""
    try:
        return read(), None
    except kb.InputError as error:
        return None, str(error)


@fuzz
@given(
    st.sampled_from(",;\t"),
    st.lists(st.lists(st.sampled_from(["1", "2.5", "1,234", "1,5", "", "NA"]), min_size=2,
                      max_size=2), max_size=6),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(PIECES)), max_size=2),
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
    st.integers(1, 4),
)  # fmt: skip
def test_batches_accept_what_whole_files_do(tmp_path, separator, rows, slips, encoding, size):
    text = "\n".join([separator.join("ab"), *map(separator.join, rows)])
    for at, piece in slips:
        text = text[:at] + piece + text[at:]
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode(encoding))
    whole, said = outcome(lambda: read_csv(path, ["a", "b"]))
    parts, also_said = outcome(lambda: list(csv_batches(path, ["a", "b"], rows=size)))
    assert also_said == said
    if said is None:
        assert all(0 < len(part.lines) <= size for part in parts)
        np.testing.assert_array_equal(np.concatenate([p.lines for p in parts]), whole.lines)
        for name, values in whole.columns.items():
            np.testing.assert_array_equal(np.concatenate([p.columns[name] for p in parts]), values)
    sequence = kb.ConfidenceSequence(KERNEL, 2.0, 0.1, engine=kb.Sparse.filling([0], [1], 3))
    if said is None:
        assert sequence.update_from(path, ["a"], "b", batch=size) == len(whole.lines)
    else:
        with pytest.raises(kb.InputError, match=f"^{re.escape(said)}$"):
            sequence.update_from(path, ["a"], "b", batch=size)
        assert len(sequence) == 0


def test_a_decimal_comma_that_a_later_row_contradicts_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b\n" + "1,234;2\n" * 30)
    with pytest.raises(kb.InputError, match=r"line 2, .*has a comma that may stand"):
        list(csv_batches(path, ["a", "b"], rows=4))
    path.write_text("a;b\n" + "1,234;2\n" * 30 + "1,5;2\n")
    assert sum(len(part.lines) for part in csv_batches(path, ["a", "b"], rows=4)) == 31
    path.write_text("a;b\n" + "1,5;2\n" * 30 + "1.5;2\n")
    with pytest.raises(kb.InputError, match=r"line 2, .*has a comma that may stand"):
        list(csv_batches(path, ["a", "b"], rows=4))


def test_a_source_says_whether_it_can_be_read_again(tmp_path):
    assert as_source(as_csv(table(3), tmp_path)).again
    assert not as_source(arrow(table(3))).again
