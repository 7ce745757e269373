"""The name of the rules of judgement changes with every module that judges."""

import ast
from pathlib import Path

import remem.protocol
from remem import judging

FOLDER = Path(remem.protocol.__file__).parent
# What judgement reads, and what judges nothing by itself: the records, and how errors are worded.
BESIDE = {"records", "errors", "__init__"}


def imported(module: str) -> set[str]:
    """Return the modules of the protocol that a module of it imports."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "remem.protocol":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("remem.protocol."):
            found.add(node.module.rpartition(".")[2])
    return found - BESIDE


def test_every_module_that_judges_is_in_the_name() -> None:
    judges, left = {"judgement"}, ["judgement"]
    while left:
        new = imported(left.pop()) - judges
        judges |= new
        left += new
    assert {f"{name}.py" for name in judges} == set(judging._RULES)


def test_the_name_is_a_digest() -> None:
    assert len(judging.judgement_name()) == 64
