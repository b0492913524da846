"""The documentation runs, links to what exists, and covers every public name and command."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import pydoc
import re
import runpy
import shlex
import sys
from functools import cache
from inspect import ismodule
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernelbounds as kb
from kernelbounds import bandits, bounds, facts, functionals, mixtures, noise, theory
from kernelbounds.cli import app

# Here it matters that snippets and commands run, and not how well they search a box.
pytestmark = pytest.mark.usefixtures("drawn_once", "short_searches")

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def having(language):
    return [page for page in PAGES if f"```{language}\n" in page.read_text()]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.usefixtures("few_functions")
@pytest.mark.parametrize("page", having("python"), ids=name_of)
def test_snippets_run(page, capsys):
    namespace: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)


# What would take long, and is tested elsewhere: how far a plan looks ahead, other assumptions, and
# how long a certificate is searched for.
SHORTER = {
    "plan": ["--most", "40", "--experiments", "20", "--no-compare"],
    "study status": ["--seconds", "0.3"],
    "study plot": ["--seconds", "0.3"],
}


@pytest.mark.usefixtures("few_functions")
@pytest.mark.parametrize("page", having("sh"), ids=name_of)
def test_commands_run(page, tmp_path, monkeypatch):
    """In their order, beside a table of the simulated reactor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_: None)  # which ends when somebody ends it
    run_script("examples/reactor.py", ["--seed", "1", "--out", "runs.csv"], monkeypatch)
    ran = 0
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["python"]:
                run_script(words[1], words[2:], monkeypatch)
            if words[:1] != ["kernelbounds"]:
                continue
            words += SHORTER.get(words[1], SHORTER.get(" ".join(words[1:3]), []))
            found = CliRunner().invoke(app, words[1:])
            assert found.exit_code == 0, f"{line}\n{found.output}\n{found.exception!r}"
            ran += 1
    assert ran


def run_script(path, arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    runpy.run_path(str(ROOT / path), run_name="__main__")


LINK = r"\]\(([^)#\s]+)[^)]*\)"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    """Anchors, and links between pages, are checked by the strict build, see test_site.py."""
    for target in re.findall(LINK, page.read_text()):
        if target.startswith("http"):
            continue
        found = Path(os.path.normpath(page.parent / target))
        assert found.exists(), target
        # The site holds nothing but what is in docs.
        assert page.parent == ROOT or found.is_relative_to(DOCS), target


PAPER_PAGE = (DOCS / "mathematics" / "paper-to-code.md").read_text()
SOURCE = ROOT / "src" / "kernelbounds"
# A letter with or without a subscript is the paper's notation; the labels are those of its LaTeX
# source, which stand behind the number of a statement in the first column.
SYMBOL = r"[A-Za-z](_\w+)?"
LABEL = r"^\| (?:Eq|Thm|Cor)[^|`]*`(\w+)`"
NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"


@cache
def modules():
    """Every module of the package, by its path relative to it."""
    names = [kb.__name__, *(m.name for m in pkgutil.walk_packages(kb.__path__, "kernelbounds."))]
    found = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return {Path(m.__file__).relative_to(SOURCE).as_posix(): m for m in found}


def attributes(thing):
    """The names that a module or a class has, fields of instances included."""
    names = {*dir(thing), *getattr(thing, "__annotations__", {})}
    if inspect.isclass(thing):
        names |= set(getattr(thing, "__dataclass_fields__", {}))
        names |= {name for base in thing.__mro__ for name in vars(base).get("__annotations__", {})}
    return names


def parameters(thing):
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()


@cache
def parameters_anywhere():
    """The parameters of all functions and methods that modules of the package have."""
    things = [t for module in modules().values() for t in vars(module).values() if callable(t)]
    things += [f for c in things if inspect.isclass(c) for f in vars(c).values()]
    return set().union(*map(parameters, things))


def defined(module):
    """The module's own names; what it imports from elsewhere does not count."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", module.__name__).startswith(module.__name__):
            yield name, thing


def has(module, name):
    """Whether a module has this name: `thing`, `Class.thing`, or `thing` in one of its classes."""
    things = dict(defined(module))
    first, *rest = name.split(".")
    if not rest:
        classes = [thing for thing in things.values() if inspect.isclass(thing)]
        return first in things or any(first in attributes(c) for c in classes)
    return first in things and rest == [r for r in rest[:1] if r in attributes(things[first])]


def resolves(name):
    """Whether the package has this name anywhere, as a thing, an attribute or a parameter."""
    first, *rest = name.split(".")
    if first in ("scipy", "kernelbounds"):
        return pydoc.locate(name) is not None
    for path, module in modules().items():
        stem = path.removesuffix("/__init__.py").removesuffix(".py").split("/")[-1]
        if has(module, name) or (rest and first == stem and has(module, ".".join(rest))):
            return True
    return name in parameters_anywhere()


def is_place(path):
    return any((folder / path).exists() for folder in (SOURCE, ROOT / "tests", ROOT))


def test_files_named_in_the_paper_table_exist():
    for path in set(re.findall(r"`([\w/]+(?:\.py|/))`", PAPER_PAGE)):
        assert is_place(path), (
            f"docs/mathematics/paper-to-code.md names {path}, which does not exist."
        )


ROOMS = (DOCS / "development" / "architecture.md").read_text()


def test_files_named_in_the_architecture_exist():
    for path in set(re.findall(r"`([\w/]+(?:\.py|/))`", ROOMS)):
        assert is_place(path), f"docs/development/architecture.md names {path}, which is missing."


def test_every_room_is_in_the_picture():
    picture = re.search(r"```text\n(.*?)```", ROOMS, re.DOTALL)[1]
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(re.findall(r"\b(\w+)/", picture)) == rooms | {"sparse"}


def test_names_in_the_paper_table_exist():
    """Every `name`, `Class.method` and `module.function` of the page can be found in the code."""
    labels = set(re.findall(LABEL, PAPER_PAGE, flags=re.MULTILINE))
    checked = 0
    for code in sorted(set(re.findall(r"`([^`\n]+)`", PAPER_PAGE)) - labels):
        found = re.fullmatch(rf"({NAME})(?:\([\w ,.=/\"]*\)|=\d+)?", code, flags=re.ASCII)
        if found is None or code.endswith(".py") or re.fullmatch(SYMBOL + r"(\(.*\))?", code):
            continue
        name = found[1]
        assert resolves(name), (
            f"docs/mathematics/paper-to-code.md names {name}, which does not exist."
        )
        checked += 1
    assert checked > 80  # or else the pattern no longer finds them


def test_names_in_the_paper_table_are_in_the_file_beside_them():
    """`file.py` (`a`, `b`) and `a` in `file.py` mean that this file defines them."""
    pairs = []
    for path, names in re.findall(r"`([\w/]+\.py)` \(([^()]*(?:\([^()]*\)[^()]*)*)\)", PAPER_PAGE):
        pairs += [(path, name) for name in re.findall(rf"`({NAME})(?:\([^`]*\))?`", names)]
    for name, path in re.findall(rf"`({NAME})(?:\([^`]*\))?` in `([\w/]+\.py)`", PAPER_PAGE):
        pairs.append((path, name))
    pairs = [(path, name) for path, name in pairs if not re.fullmatch(SYMBOL, name)]
    assert len(pairs) > 50  # or else the patterns no longer find them
    for path, name in pairs:
        assert path in modules(), (
            f"docs/mathematics/paper-to-code.md names {path}, which does not exist."
        )
        assert has(modules()[path], name), (
            f"{path} has no {name}; see docs/mathematics/paper-to-code.md."
        )


def test_a_wrong_name_is_noticed():
    assert resolves("DualFunction.at_scale")
    assert resolves("kernels.mixture_scale")
    assert resolves("noise_scale")
    for wrong in (
        "DualFunction.at_no_scale",
        "kernels.mixture_scales",
        "noisescale",
        "Radius.squared.it",
    ):
        assert not resolves(wrong)
    assert not has(modules()["bounds/amm.py"], "DualFunction")


def test_tests_named_in_the_paper_table_exist():
    for name in set(re.findall(r"\btest_\w+", PAPER_PAGE)):
        assert (ROOT / "tests" / f"{name}.py").exists(), name


CLAIMS = DOCS / "mathematics" / "claims.md"
PROMISES = CLAIMS.read_text()


@cache
def named_tests(file):
    """`test_name` and `TestClass::test_name` of a file of tests."""
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text())
    found = set()
    for place, prefix in [(tree, "")] + [
        (one, f"{one.name}::") for one in tree.body if isinstance(one, ast.ClassDef)
    ]:
        found |= {prefix + one.name for one in place.body if isinstance(one, ast.FunctionDef)}
    return found


def promises():
    """The rows of the tables, without their headings."""
    rows = re.findall(r"^\| (?!promise |what |---)(.*) \|$", PROMISES, re.MULTILINE)
    assert len(rows) > 80  # or else the pattern no longer finds them
    return [re.split(r" (?<!\\)\| ", row) for row in rows]


def test_every_promise_has_conditions_a_proof_and_a_test():
    for row in promises():
        assert len(row) == 4 and all(map(str.strip, row)), row
        named = re.findall(r"`(test_\w+)::([\w:]+)`", row[3])
        assert named, f"no test: {row[0]}"
        for file, name in named:
            assert name in named_tests(file), f"tests/{file}.py has no {name}; see {CLAIMS.name}."


def test_what_has_no_row_among_the_promises_is_noticed():
    """Everything public is named on the page, with a promise or among what promises nothing."""
    code = " ".join(re.findall(r"`([^`]+)`", PROMISES))
    named = set(re.findall(r"\w+", code))
    for module in (kb, facts, functionals, mixtures, noise):
        public = {name for name in module.__all__ if not ismodule(getattr(module, name))}
        assert public <= named, module
    for thing in (getattr(bounds, name) for name in bounds.__all__):
        if inspect.isclass(thing) and issubclass(thing, kb.Bound):
            assert thing.__name__ in named, thing
    inside = {"update_checked", "checked_noise_scales", "pack", "unpack", "dim", "table"}
    inside |= {"keep_noise_scale"}
    # Which policies of one's own implement.
    inside |= {"choose", "told", "settings", "restore", "others", "from_saved"}
    for short, kind in (
        ("seq", kb.ConfidenceSequence), ("policy", bandits.Policy), ("study", kb.Study),
        ("history", bandits.History),
    ):  # fmt: skip
        for name in set(vars(kind)) - inside:
            if not name.startswith("_"):
                assert re.search(rf"\b{short}\.{name}\b", code), f"{short}.{name}"
    for command in ("assume", "plan", "calibrate", "bound", "reproduce", "demo"):
        assert f"kernelbounds {command}" in code, command


def anchors(page):
    """Of the headings of a page, as the site makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).strip()
        found.add(plain.replace(" ", "-"))
    return found


def test_anchors_of_proofs_exist():
    """The strict build checks all of them; this takes no time."""
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", PROMISES)
    assert len(links) > 60
    for target, anchor in links:
        page = CLAIMS.parent / target if target else CLAIMS
        assert anchor in anchors(page), f"{target}#{anchor}"


MATHEMATICS = [
    DOCS / "mathematics" / f"{name}.md"
    for name in (
        "exact-bound",
        "rounding",
        "sparse-engine",
        "boxes",
        "fixed-designs",
        "facts",
        "noise",
    )
]


@pytest.mark.parametrize("page", MATHEMATICS, ids=name_of)
def test_every_claim_says_for_what_it_holds(page):
    """Between a claim and its proof, in terms of the engine, and of shares or designs or asks."""
    claims = re.split(r"^\*\*(?:Claim|Theorem)", page.read_text(), flags=re.MULTILINE)[1:]
    assert claims
    for claim in claims:
        stated = claim.split("*Proof.*")[0]
        assert re.search(r"^\*Holds for:\* .*\bengine\b", stated, re.MULTILINE), stated[:100]


@pytest.mark.parametrize("page", MATHEMATICS, ids=name_of)
def test_no_symbol_is_listed_twice(page):
    table = re.search(r"^\| symbol \|.*\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE)[1]
    cells = [row.split(" | ")[0].strip("| ") for row in table.splitlines()[1:]]
    symbols = [one.split(" ")[0] for cell in cells for one in re.split(r",(?![^(]*\)) ", cell)]
    symbols = [one for one in symbols if one != "…"]
    assert len(symbols) > 10 and len(symbols) == len(set(symbols)), sorted(symbols)


# Claims that are easily made without what their proofs need: a pattern, and what a paragraph that
# has it must also say.
CONDITIONS = [
    (r"\bany (?:order|that does not depend on outcomes),? if the points were", "independent"),
    (r"\btold? (?:trials |results )?in any order\b", r"settings"),
    (r"chi-squared with p degrees", r"at most"),
    (
        r"in their order, all or none, from a|old runs from a CSV file",
        r"before (?:the first|you tell)",
    ),
    (r"[Rr]ounding errors\W* are on the safe side", r"measure"),
    (r"\bsomebody else (?:has )?filled", r"not|unless"),
    (r"CMM\W.{0,40}\b(?:narrowest|tightest)\b", r"never"),
]


def paragraphs():
    """Those of all pages but the one that is made from docstrings, and docstrings as a whole."""
    for page in set(PAGES) - {DOCS / "reference" / "command-line.md"}:
        yield from ((page.name, one) for one in re.split(r"\n\s*\n", page.read_text()))
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield path.name, ast.get_docstring(node) or ""


def test_conditions_stand_beside_the_claims_that_need_them():
    for place, text in paragraphs():
        plain = " ".join(text.split())
        for claim, condition in CONDITIONS:
            if re.search(claim, plain):
                assert re.search(condition, plain), f"{place}: {plain[:200]}"
    fixed = " ".join((kb.FixedDesign.__doc__ or "").split())
    assert "given *all* of the points" in fixed and "unless the plan is known" in fixed


def test_every_public_name_is_documented():
    text = "".join(page.read_text() for page in PAGES)
    for name in kb.__all__:
        assert name in text, name
        assert getattr(kb, name).__doc__, name


def test_every_name_of_the_theory_is_documented():
    text = (DOCS / "mathematics" / "theory.md").read_text()
    for name in theory.__all__:
        assert f"`{name}`" in text, name
        assert getattr(theory, name).__doc__, name


def test_every_make_target_in_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\S+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
