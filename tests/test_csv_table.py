"""Tables: numbers come back to the last digit, and what is not clear is refused with its place."""

from __future__ import annotations

import csv
import math
import os
import re
import sys
import warnings
from datetime import datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from problems import one_line
from sklearn.gaussian_process.kernels import RBF

import kernelbounds as kb
from kernelbounds.io.csv_table import read_csv, write_csv


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def _written(folder, content):
    path = folder / "runs.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _refused(path, columns):
    """The message with which a file is refused, and None where it is read."""
    before = path.read_bytes() if path.is_file() else None
    try:
        table = read_csv(path, columns)
    except kb.InputError as error:
        message = one_line(error)
        assert repr(path.name)[1:-1] in message
    else:
        message = None
        assert np.all(np.diff(table.lines) > 0) and table.lines[0] > 1
        for values in table.columns.values():
            assert values.shape == table.lines.shape and np.all(np.isfinite(values))
    if before is not None:
        assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
    return message


A_15_AND_B_2 = [
    "a,b\n1.5,2\n",
    "a,b\n1.5,2",
    "a,b\r\n1.5,2\r\n",
    "a,b\r1.5,2\r",
    "a,b\r\r\n1.5,2\r\r\n",  # as Python writes on Windows without newline=""
    "\n a , b \n 1.5 , 2 \n\n \n",
    "a;b\n1.5;2\n",
    "a;b\n1,5;2\n",
    "a;b\n1,500;2,0\n",
    "a;b\n+15e-1;,2e1\n",
    "a\tb\n1,5\t2\n",
    'a\tb\n"1,5"\t2\n',
    '"a","b"\n"1.5","2"\n',
    '"a", "b"\n"1.5", "2"\n',
    'b,"note, long",a\n2,"x\ny,""z""",1.5\n',
    "b;note, long, very;a\n2;x;1.5\n",
    "a,b,\n1.5,2,\n",
    "a,b\n1.5,2\n,\n,\n",
    "a,b,c\n1.5,2,\n",
    "a,b,c,c\n1.5,2,NA,12 °C\n",
    ",a,b\n0,1.5,2\n",  # as pandas writes
    "a,b\n\u00a01.5\u202f,2\n",
    "\ufeffa,b\n1.5,2\n",
    "a,b\n1.5,2\n".encode("utf-16"),
    b"\xfe\xff" + "a;b\r\n1,5;2\r\n".encode("utf-16-be"),
]


@pytest.mark.parametrize("content", A_15_AND_B_2)
def test_forms_of_one_table(tmp_path, content):
    path = _written(tmp_path, content)
    table = read_csv(path, ["a", " b"])
    assert list(table.columns) == ["a", " b"]
    assert table.columns["a"].tolist() == [1.5] and table.columns[" b"].tolist() == [2.0]
    assert table.lines.dtype == np.int64 and table.lines.shape == (1,)


@pytest.mark.parametrize(
    ("cell", "number"),
    {"0": 0.0, "-0": -0.0, "007": 7.0, "+.5": 0.5, "5.": 5.0, "1E3": 1e3, "−2e−3": -2e-3,
     "1e-400": 0.0, "0.1": 0.1, "1e100": 1e100, "9" * 50: float("9" * 50)}.items(),
)  # fmt: skip
def test_numbers(tmp_path, cell, number):
    found = read_csv(_written(tmp_path, f"a,b\n1,{cell}\n"), ["b"]).columns["b"]
    assert found.tolist() == [number] and math.copysign(1, found[0]) == math.copysign(1, number)


NO_NUMBER = r"is not a finite number of size up to 1e\+100; write numbers like 1234\.5, .*dates as"
UNCLEAR = "has a comma that may stand for a decimal point, or separate thousands or cells; write"
NO_NUMBERS = ["abc", "<0.01", "True", "--5", "٣", ".", "e5", "$12", "1/2", "x" * 1000]
NO_NUMBERS += ["_" * 100000 + "x", "2024-01-03", "03/01/2024 12:00", "3.1.2024", "12:30", "Jan 3"]
NO_NUMBERS += ["inf", "-Infinity", "∞", "0x1F", "1_000", "12%", "12.5 %", "12 °C", "5m", "1.5e3 Pa"]
NO_NUMBERS += ["1 234", "1\u00a0234", "1'234", '"1,234.5"', '"1,234,567"', "#DIV/0!", '"1\n2"']
NO_NUMBERS += ["1e400", "-1e101", "9" * 100000]


@pytest.mark.parametrize(
    ("cell", "match"),
    [(cell, NO_NUMBER) for cell in NO_NUMBERS] + [('"1,5"', UNCLEAR), ('"1,234"', UNCLEAR)],
)
def test_cells_that_are_not_numbers(tmp_path, cell, match):
    message = _refused(_written(tmp_path, f"a,pressure\n1,2\n\n3,{cell}\n4,oops\n"), ["pressure"])
    assert re.search(f", line 4, column 'pressure': .*{match}", message)


@pytest.mark.parametrize("cell", ["", " ", '""', "NA", "n/a", "nan", "NaN", "-", "−", "?", "NULL"])
def test_missing_cells(tmp_path, cell):
    path = _written(tmp_path, f"a,b,c\n1,2,{cell}\n{cell},2,3\n1,{cell},3\n")
    for columns, place in ((["b"], "line 4, column 'b'"), (["a", "b"], "line 3, column 'a'")):
        text = cell.strip(' "')
        wrong = f"{text!r} is a missing value" if text else "the cell is empty"
        message = _refused(path, columns)
        assert f"{place}: {wrong}; fill in" in message
        assert message.endswith("because of its outcome: without such runs there is no guarantee.")


def test_blank_lines_and_rows(tmp_path):
    table = read_csv(_written(tmp_path, '\na,"b\nc"\n\n1,2\n \n3,"4"\n,\n\n'), ["a"])
    assert table.columns["a"].tolist() == [1, 3] and table.lines.tolist() == [5, 7]
    assert "line 3, column 'a': the cell is empty; fill in" in _refused(
        _written(tmp_path, "a,b\n1,2\n,\n3,4\n"), ["a", "b"]
    )
    # In a single column a blank line is a missing cell.
    assert "line 3, column 'y': the cell is empty; fill in" in _refused(
        _written(tmp_path, "y\n1\n\n3\n\n"), ["y"]
    )


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty; it needs a header"),
        ("\n \n,,\n", "is empty"),
        ("\ufeff", "is empty"),
        ("a,b\n", "has a header and no rows"),
        ("a,b\n\n,\n", "has a header and no rows"),
        ("a b\n1 2\n", r"has no columns 'a'.*; its columns are 'a b'\."),
        ("a|b\n1|2\n", r"has no columns 'a'.*; its columns are 'a\|b'\."),
        ("1,2\n3,4\n", "has no columns 'a', 'b'; its columns are '1', '2'"),
        ("A,B\n3,4\n", r"columns 'a' \(did you mean 'A'\?\), 'b' \(did you mean 'B'\?\); its"),
        ("Runs of May\na,b\n1,2\n", "'Runs of May'. The names must be in the first line"),
        ("A,b\n1,2\n", r"has no column 'a' \(did you mean 'A'\?\); its columns are 'A', 'b'"),
        ("x,y\n1,2\n", "has no columns 'a', 'b'; its columns are 'x', 'y'"),
        (
            ",".join("x" * 50 for _ in range(50)) + "\n1\n",
            "has no columns 'a', 'b'; its columns are 'xx",
        ),
        ("a,b,a\n1,2,3\n", "has 2 columns named 'a'; give each a name of its own"),
        ("a,b\n1\n", r"line 2: it has 1 cells, and the header has 2\."),
        ("a,b,\n1,2\n", "line 2: it has 2 cells, and the header has 3"),
        ("a,b\n1,2\n1,2,3\n", "line 3: it has 3 cells, and the header has 2; decimal commas need"),
        ("a;b\n1;2;3\n", r"line 2: it has 3 cells, and the header has 2\."),
        ("a,b\n1,5,2,5\n", "decimal commas need semicolons between the cells"),
        ("a;b\n1,5;2.5\n", f"line 2, column 'a': '1,5' {UNCLEAR}"),
        ("a;b\n1.5;2\n1,5;2\n", f"line 3, column 'a': '1,5' {UNCLEAR}"),
        ("a;b\n1,234;2\n", f"line 2, column 'a': '1,234' {UNCLEAR}"),
        ("a;b\n1.234,5;2\n", f"line 2, column 'a': .*{NO_NUMBER}"),
        ('a,b\n1,2\n1,"2\n3,4\n', "line 3: cells cannot be told apart"),
        ('"a,b\n1,2\n', "line 1: cells cannot be told apart"),
        ('a,b\n1,"2"3\n', "line 2: cells cannot be told apart .*; put quotes"),
        ("a,b\n1," + "x" * 140000 + "\n", "line 2: cells cannot be told apart"),
        ("x" * 140000, "line 1: cells cannot be told apart .*131072"),
        ("a,b\n1,2\0\n", "is not text in UTF-8, UTF-16 or Windows-1252; save it as CSV"),
        ("a,b\n1,2\n".encode("utf-16-le"), "is not text"),
        (b"a,b,\x81\n1,2,3", "is not text"),
        (b"a,b,\xb0C\x07\n1,2,3", "is not text"),
        ("a,b\n1,2".encode("utf-16")[:-1], "is not text"),
        (b"PK\x03\x04\x14\0\x06\0", "cannot be read as an Excel workbook: .*; save it as .xlsx or"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an old Excel workbook; save it as .xlsx or as CSV"),
        (b"\x1f\x8b\x08\0", "is not text"),  # compressed
        (b"\x89PNG\r\n\x1a\n\0", "is not text"),
    ],
)
def test_files_that_are_refused(tmp_path, content, match):
    message = _refused(_written(tmp_path, content), ["a", "b"])
    assert re.search(match, message)


def test_text_from_windows_is_read_with_a_warning(tmp_path):
    """Excel's plain CSV on a German Windows: CP1252, semicolons, decimal commas."""
    path = _written(tmp_path, "T [°C];Größe\r\n20,5;1\r\n21;2,5\r\n".encode("cp1252"))
    with pytest.warns(UserWarning, match=r"runs.csv' is not in UTF-8; it was read as Windows-1252"):
        table = read_csv(path, ["T [°C]", "Größe"])
    assert table.columns["T [°C]"].tolist() == [20.5, 21] and table.lines.tolist() == [2, 3]
    # A bad byte may be far down, after rows that were given already.
    path = _written(tmp_path, b"a,who\n" + b"1,Ada\n" * 300_000 + b"2,Zo\xeb\n")
    with pytest.warns(UserWarning, match="Windows-1252"):
        assert read_csv(path, ["a"]).columns["a"].sum() == 300_002
    # UTF-8 is never taken for it, and UTF-16 has its mark.
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_csv(_written(tmp_path, "T [°C]\n1\n".encode(encoding)), ["T [°C]"])


def _workbook(tmp_path, **sheets):
    """A workbook of sheets; a cell may be a value and its format."""
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "runs.xlsx"
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row, cells in enumerate(rows, start=1):
            for column, cell in enumerate(cells, start=1):
                value, shown = cell if isinstance(cell, tuple) else (cell, "General")
                sheet.cell(row, column, value).number_format = shown
    book.save(path)
    return path


def test_the_sheet_of_a_workbook_that_has_the_columns(tmp_path):
    rows = [[], ["T [°C]", "who", "yield"], [20.5, "Ada", 1 / 3], [], [21, None, " 2.5"], ["", " "]]
    path = _workbook(tmp_path, About=[["by", "Ada"]], Runs=rows, Other=[["yield"], [7]])
    table = read_csv(path, ["T [°C]", "yield"])
    assert table.columns["T [°C]"].tolist() == [20.5, 21]
    assert table.columns["yield"].tolist() == [1 / 3, 2.5]
    assert table.lines.tolist() == [3, 5] and table.others == ("who",)
    sequence = kb.ConfidenceSequence(RBF(1.0), 2.0, 0.1)
    sequence.update_from(path, inputs=["T [°C]"], output="yield")
    assert sequence.outcomes.tolist() == [1 / 3, 2.5]
    with pytest.raises(kb.InputError, match=r"sheet 'Runs' has no column 'yeild' \(did you mean"):
        read_csv(path, ["T [°C]", "yeild"])
    with pytest.raises(kb.InputError, match="has 2 sheets with these columns, 'Runs', 'Other'"):
        read_csv(path, ["yield"])


@pytest.mark.parametrize(
    ("cell", "match"),
    [
        ((0.05, "0%"), "line 2, column 'a': '5%' is not a finite number"),
        (
            (datetime(2026, 1, 2), "d.m.yy"),
            "line 2, column 'a': '2026-01-02 00:00:00' is not a finite number",
        ),
        (None, "line 2, column 'a': the cell is empty; fill in"),
        ("=1+1", "line 2, column 'a': the cell is empty; fill in"),  # which no program has computed
        (True, "line 2, column 'a': 'True' is not a finite number"),
        ("2,5", "has a comma that may stand for"),
    ],
)
def test_cells_of_workbooks_that_are_refused(tmp_path, cell, match):
    path = _workbook(tmp_path, Runs=[["a", "b"], [cell, 2]])
    with pytest.raises(kb.InputError, match=match):
        read_csv(path, ["a", "b"])


def test_a_workbook_without_openpyxl_names_the_extra(tmp_path, monkeypatch):
    path = _workbook(tmp_path, Runs=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        kb.MissingExtraError, match=r"an Excel workbook, needs .*kernelbounds\[excel"
    ):
        read_csv(path, ["a"])


def test_thousands_are_decimals_where_another_cell_tells(tmp_path):
    for other in ("0,5", "12,50", "1234,5", "0,234"):
        table = read_csv(_written(tmp_path, f"a;b\n1,234;{other}\n"), ["a", "b"])
        assert table.columns["a"][0] == 1.234


def test_paths_that_are_refused(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "fifo")
    long = tmp_path / ("x" * 200 + "\n.csv")
    for path, match in [
        (tmp_path / "data", "it is a folder"),
        (tmp_path / "fifo", "it is a FIFO"),
        (tmp_path / "none.csv", "No such file"),
        (tmp_path / "none" / "runs.csv", "No such file"),
        (long, "No such file"),
    ]:
        with pytest.raises(kb.InputError, match=rf"^cannot read '.*': {match}") as caught:
            read_csv(path, ["a"])
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    for path in (None, 3, "a\0", b"x.csv"):
        with pytest.raises(kb.InputError, match="a path must be"):
            read_csv(path, ["a"])
    path = _written(tmp_path, "a\n1\n")

    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "stat", denied)  # root may read anything
    with pytest.raises(kb.InputError, match=r"^cannot read .*runs\.csv': Permission denied\.$"):
        read_csv(path, ["a"])


def test_names_that_are_asked_for(tmp_path):
    path = _written(tmp_path, 'temperature,pressure (bar),"a;b;c",x\n1,2,3,4\n')
    assert read_csv(path, ["a;b;c", "x"]).columns == {"a;b;c": [3], "x": [4]}
    assert read_csv(path, []).columns == {} and read_csv(path, []).lines.tolist() == [2]
    assert "did you mean 'pressure (bar)'" in _refused(path, ["pressure (psi)"])
    for columns, match in [
        (["x", " x"], "'x' is asked for twice"),
        ("x", "must be a list of names"),
        ([1], "must be a list of names"),
    ]:
        with pytest.raises(kb.InputError, match=match):
            read_csv(path, columns)


def test_nothing_is_written_by_halves(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    for columns, match in [
        ({}, "one or more 1-D columns"),
        ({"a": [1], " a": [2]}, "distinct names"),
        ({"": [1]}, "must be a line of text"),
        ({"; ": [1]}, "must be a line of text"),
        ({"a\nb": [1]}, "must be a line of text"),
        ({"\ud800": [1]}, "must be a line of text"),
        ({1: [1]}, "must be a line of text"),
        ({"a": [1], "b": [1, 2]}, r"equally long .* of shapes \[\(1,\), \(2,\)\]"),
        ({"a": [[1]]}, "1-D"),
        ({"a": 1}, "1-D"),
        ({"a": [math.nan]}, "column 'a' contains NaN"),
        ({"a": [1.0, "x"]}, "column 'a' has text"),
    ]:
        with pytest.raises(kb.InputError, match=match):
            write_csv(path, columns)
    with pytest.raises(kb.InputError, match=r"cannot write .*: its folder does not exist"):
        write_csv(tmp_path / "none" / "x.csv", {"a": [1]})
    with pytest.raises(kb.InputError, match=r"cannot write .*: it is a folder"):
        write_csv(tmp_path, {"a": [1]})
    assert os.listdir(tmp_path) == []
    write_csv(path, {"a": [1]})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(kb.InputError, match=r"cannot write .*: disk full"):
        write_csv(path, {"a": [2]})
    assert path.read_bytes() == b"a\n1\n" and os.listdir(tmp_path) == ["x.csv"]


def test_the_limit_of_cells_is_left_alone(tmp_path):
    limit = csv.field_size_limit()
    _refused(_written(tmp_path, "x" * 140000), ["a"])
    assert csv.field_size_limit() == limit


fuzz = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
names = st.text(min_size=1, max_size=8).filter(
    lambda name: name.isprintable() and name.strip(" ,;")
)
tables = st.tuples(
    st.lists(names, min_size=1, max_size=4, unique_by=str.strip), st.integers(1, 5)
).flatmap(
    lambda given: st.fixed_dictionaries(
        {name: hnp.arrays(float, given[1], elements=st.floats(-1e100, 1e100)) for name in given[0]}
    )
)


@fuzz
@given(tables)
def test_what_is_written_is_read_back(folder, table):
    path = folder / "runs.csv"
    write_csv(path, table)
    found = read_csv(path, list(table))
    for name, values in table.items():
        np.testing.assert_array_equal(found.columns[name].view(np.int64), values.view(np.int64))
    assert found.lines.tolist() == list(range(2, len(values) + 2))


@fuzz
@given(tables, st.data())
def test_other_separators_and_decimal_commas(folder, table, data):
    """As spreadsheets of other countries write, which quote what they must."""
    path = folder / "runs.csv"
    separator = data.draw(st.sampled_from(";\t"))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=separator, quoting=data.draw(st.sampled_from([0, 1])))
        writer.writerow(table)
        writer.writerows(
            [repr(float(x)).replace(".", ",") for x in row] for row in zip(*table.values())
        )
        writer.writerow(["0,5"] * len(table))  # so that it is clear what the commas are
    if len(table) > 1:
        found = read_csv(path, list(table))
        for name, values in table.items():
            np.testing.assert_array_equal(found.columns[name], [*values, 0.5])


@fuzz
@given(st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "replace"))))
def test_any_file_is_a_table_or_refused(folder, content):
    path = _written(folder, content)
    first = content.decode("utf-8", "replace").splitlines()[0] if content else "a"
    names = [name.strip() for name in re.split("[,;\t]", first)]
    for columns in (["a", "b"], [name for name in names if names.count(name) == 1]):
        _refused(path, columns)


PIECES = ["\n", "\r", "\r\n", ",", ";", "\t", '"', '""', " ", "\u00a0", "−", "-", "?", "NA", "1,5"]
PIECES += ["1.5", "1_0", "12%", "5 m", "2024-01-03", "inf", "é", "\0", "a", "b", "e", "0x1", ",,"]


@fuzz
@given(tables, st.data())
def test_a_file_with_slips_is_a_table_or_refused(folder, table, data):
    path = folder / "runs.csv"
    write_csv(path, table)
    content = path.read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(len(content), start + 3)))
        other = data.draw(st.one_of(st.sampled_from(PIECES).map(str.encode), st.binary(max_size=2)))
        content = content[:start] + other + content[stop:]
    message = _refused(_written(folder, content), list(table))
    if message and not re.search(r"runs\.csv' (has|is) ", message):  # said of the whole file
        assert re.search(r"line \d+", message)


@fuzz
@given(st.sampled_from(PIECES), st.integers(0, 3), st.sampled_from(",;\t"), st.text(max_size=12))
def test_a_cell_that_is_refused_is_named(folder, piece, row, separator, text):
    """Whatever is in a cell, quoted as a spreadsheet would."""
    for cell in (piece, text):
        rows = [["1", "2"] for _ in range(4)]
        rows[row][1] = cell.replace("\0", "").encode("utf-8", "ignore").decode()
        path = folder / "runs.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=separator).writerows([["a", "mass"], *rows])
        message = _refused(path, ["a", "mass"])
        assert message is None or f"line {row + 2}, column 'mass'" in message
