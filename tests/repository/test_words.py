"""Tests of the words: modules are nouns, functions are verbs with an object, and a class name means one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.repository import ROOT
from tests.repository.source_modules import trees

NOUNS_IN_ING: Final = frozenset(
    """
    accounting alerting binding encoding escaping fencing finding folding forwarding framing heading landing naming
    packing reading routing string testing warning
    """.split()  # noqa: SIM905 - a paragraph is read more easily
)
"""Words in -ing that the field uses as nouns."""
NOUNS_IN_ED: Final = frozenset({"feed", "seed", "speed"})
NO_NOUNS: Final = frozenset(
    """
    apart beside done drawn due every found given gone held kept known known_by laid late left lost made met odd of once
    one seen shown spoken taken told together unheard untold ways what whole written wrong
    """.split()  # noqa: SIM905 - as above
)
"""Adjectives, participles and adverbs without an ending that tells them."""
BANNED_NAMES: Final = frozenset(
    """
    ask asked found give given go heed keep kept let look made of one said say settle show shown take taken tell told
    """.split()  # noqa: SIM905 - as above
)
"""Names that say nothing where they are called from another module."""
BANNED_METHODS: Final = frozenset({"heed", "let_go", "look", "of", "one", "said", "scar", "take", "take_up", "told"})
"""Names of public methods that say nothing where they are called: verbs without an object, and prepositions."""
CLAUSES: Final = re.compile(r"(What|Who|Whom|Whose|Which|How|Whether|When|Where|Why|That)\b")
RIDDLES: Final = re.compile(
    rf"({CLAUSES.pattern}|(However|Whatever|Whoever|Whomever|Whichever|Wherever|Whenever|It|They)\b)"
)
"""Words that begin a clause or refer to a test's name: a test's docstring is understood without its name."""
PAGES: Final = frozenset({"getting_started"})
"""Modules of pages, which are named as their titles are."""
ONE_CONCEPT: Final = {
    "Clock": "a probe reads its clock in ns twice a stamp, the monitor in µs and waits by it",
    "SystemClock": "the clock of the machine, for each of the two",
}
"""Class names that stand twice because they are one concept, with the reason."""


def public_classes() -> dict[str, list[str]]:
    """Return the modules that define a public class, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path))
    return found


def names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines: functions, classes and constants."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def public_methods(tree: ast.Module) -> Iterator[str]:
    """Yield the public methods and properties that the classes of a module define, as ``Class.method``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}"


def banned_methods(tree: ast.Module) -> list[str]:
    """Return the public methods of a module whose names are banned."""
    return [name for name in public_methods(tree) if name.rpartition(".")[2] in BANNED_METHODS]


def is_noun(module: str) -> bool:
    """Return whether a module's name may be one: its last word is no participle and no adverb that is listed."""
    if module in PAGES:
        return True
    last = module.strip("_").rpartition("_")[2]
    if last in NO_NOUNS:
        return False
    if last.endswith("ing"):
        return last in NOUNS_IN_ING
    return not last.endswith("ed") or last in NOUNS_IN_ED


def test_modules_are_nouns() -> None:
    """No module is named by a participle, an adverb or a preposition."""
    assert [str(path) for path, _ in trees() if not is_noun(path.stem)] == []


def test_a_public_class_name_means_one_thing() -> None:
    """No two modules define public classes of one name, but for what is one concept."""
    twice = {name: found for name, found in public_classes().items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in ONE_CONCEPT} == {}
    assert set(ONE_CONCEPT) <= set(twice), "an exception that is needed no longer"


def test_no_name_says_nothing() -> None:
    """Public names of modules are searchable: none is a bare preposition, participle or auxiliary verb."""
    assert [f"{path}: {name}" for path, tree in trees() for name in names(tree) if name in BANNED_NAMES] == []


def test_no_method_says_nothing() -> None:
    """Public methods are searchable too."""
    assert [f"{path}: {name}" for path, tree in trees() for name in banned_methods(tree)] == []


def test_a_banned_method_is_found() -> None:
    """A planted one is found, as a method, a property or a class method; private ones and functions are not."""
    planted = """
class Ledger:
    def told(self): ...
    @property
    def one(self): ...
    @classmethod
    async def of(cls): ...
    def _take(self): ...
    def take_in(self): ...
def look(): ...
"""
    assert banned_methods(ast.parse(planted)) == ["Ledger.told", "Ledger.one", "Ledger.of"]


def test_bounds_and_rates_are_named_alike() -> None:
    """A bound is MAX_ or MIN_, a rate has _PER_."""
    odd = re.compile(r"_?(MOST|LEAST)_|[A-Z]_A_[A-Z]|[A-Z]_AN_[A-Z]")
    assert [f"{path}: {name}" for path, tree in trees() for name in names(tree) if odd.search(name)] == []


def docstrings(path: Path, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield where a docstring stands, and its text: of the module, and of what is public in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and not getattr(node, "name", "").startswith("_"):
                yield f"{path}: {getattr(node, 'name', 'module')}", text


def test_docstrings_begin_with_a_noun_or_an_imperative() -> None:
    """No docstring begins with a clause for a noun: a reader learns at its first word what a thing is or does."""
    found = (docstring for path, tree in trees() for docstring in docstrings(path, tree))
    assert [where for where, text in found if CLAUSES.match(text)] == []


def riddles(root: Path) -> list[str]:
    """Return the docstrings below a folder, private ones included, that begin with a clause or a pronoun."""
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text and RIDDLES.match(text):
                    found.append(f"{path.relative_to(root)}: {getattr(node, 'name', 'module')}")
    return found


def test_docstrings_of_tests_begin_with_a_noun_or_a_statement() -> None:
    """The docstring of a test says what holds, and begins neither with a clause for a noun nor with a pronoun."""
    assert riddles(ROOT / "tests") == []


def test_a_riddle_is_found(tmp_path: Path) -> None:
    """Planted ones are found; a noun phrase, a statement and a module without a docstring are not."""
    texts = {
        "clause": '"""What tests share."""',
        "none": "from pathlib import Path",
        "noun": '"""Fixtures of tests."""\nclass _Kept:\n    """However it came."""',
        "statement": 'def test_it():\n    """Items are kept."""\n    def told():\n        """It is told."""',
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert riddles(tmp_path) == ["clause.py: module", "noun.py: _Kept", "statement.py: told"]


@pytest.mark.parametrize(("module", "holds"), [("routing", True), ("kept", False), ("outbox", True), ("folded", False)])
def test_a_noun_is_told_from_a_participle(module: str, holds: bool) -> None:  # noqa: FBT001 - a case's outcome
    """The endings and the lists decide as a reader would."""
    assert is_noun(module) is holds
