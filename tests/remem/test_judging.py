"""The name of the rules of judgement changes with every module that judges."""

from pathlib import Path

import remem.protocol
from remem import judging


def test_every_module_that_judges_is_in_the_name() -> None:
    folder = Path(remem.protocol.__file__).parent
    judges = {path.name for path in folder.glob("*.py") if path.name.startswith(("guard", "judgement", "text", "uni"))}
    assert judges == set(judging._RULES)
    assert len(judging.judgement_name()) == 64
