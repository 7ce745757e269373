"""The one write path: what it verifies, what it writes, and what it leaves as it was when something breaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from nacl import bindings
from sqlalchemy import Engine, event, select

from remem.protocol import Verdict, judge, keys, sign_record
from remem.protocol import accept as protocol_accept
from remem.protocol.errors import SignatureInvalid
from remem_server.database import tables
from remem_server.database.engine import writing
from remem_server.files import accept, judging, store, tokens
from remem_server.files.accept import Accepted, accept_file
from remem_server.files.judging import judge_records
from remem_testkit.files import NOW, confirmation, draft_file, file, key, lesson, resealed, sentence
from remem_testkit.server import new_token, verify_everything_stored

ME = key(1)
SECOND = timedelta(seconds=1)


def take(engine: Engine, data: bytes, *, secret: str | None = None, **options: Any) -> Accepted:
    whole = {"name": ME.public.hex, "token_needed": secret is not None, "now": NOW, **options}
    return accept_file(engine, data, secret=secret, **whole)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that grows with every signature that is verified."""
    seen: list[bytes] = []
    plain = bindings.crypto_sign_open

    def counted(signed: bytes, raw: bytes) -> bytes:
        seen.append(signed)
        return plain(signed, raw)

    monkeypatch.setattr(keys, "crypto_sign_open", counted)
    return seen


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with every record that is judged."""
    seen: list[object] = []
    plain = judge

    def counted(record: Any) -> Any:
        seen.append(record)
        return plain(record)

    monkeypatch.setattr(judging, "judge", counted)
    return seen


def test_one_line_changed_is_two_signatures_and_one_judgement(
    engine: Engine, verified: list[bytes], judged: list[object]
) -> None:
    lines = [sign_record(ME, {**lesson(sentence(number)), "sealed": True}) for number in range(100)]
    take(engine, resealed(ME, lines))
    assert (len(verified), len(judged)) == (101, 100)
    lines[50] = sign_record(ME, {**lesson(sentence(50), seen=3), "sealed": True})
    newer = resealed(ME, lines, at=NOW + SECOND)
    verified.clear()
    judged.clear()
    assert take(engine, newer).verdict is Verdict.NEWER
    assert (len(verified), len(judged)) == (2, 1)


def test_the_same_file_again_verifies_its_seal_alone(engine: Engine, verified: list[bytes]) -> None:
    data = file(ME, [lesson(sentence(number)) for number in range(100)])
    take(engine, data)
    verified.clear()
    assert take(engine, data).verdict is Verdict.UNCHANGED
    assert len(verified) == 1


def test_the_lines_of_another_keys_file_are_verified_whoever_asks(engine: Engine, verified: list[bytes]) -> None:
    other = file(key(2), [lesson(sentence(1))])
    take(engine, file(ME, [lesson(sentence(1))]))
    verified.clear()
    take(engine, other, name=key(2).public.origin)
    assert len(verified) == 2


def test_nothing_is_locked_while_a_file_is_verified(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = protocol_accept

    def watched(*arguments: Any, **options: Any) -> Any:
        # It would wait for the lock, and then fail, if one were held.
        new_token(engine)
        return plain(*arguments, **options)

    monkeypatch.setattr(accept, "accept", watched)
    take(engine, file(ME, [lesson(sentence(1))]))


@pytest.mark.parametrize("second", [-1, 1], ids=["older", "newer"])
def test_a_file_that_came_in_between_is_compared_with_what_stands_then(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, second: int
) -> None:
    take(engine, file(ME, [lesson(sentence(0))], at=NOW - timedelta(days=1)))
    between = file(ME, [lesson(sentence(1)), lesson(sentence(2))], at=NOW + second * SECOND)
    offered = file(ME, [lesson(sentence(2)), confirmation("0" * 32)])
    plain = judge_records
    came: list[bool] = []

    def interrupted(records: Any) -> Any:
        if not came:
            came.append(True)
            take(engine, between)
        return plain(records)

    monkeypatch.setattr(accept, "judge_records", interrupted)
    taken = take(engine, offered)
    assert taken.verdict is (Verdict.NEWER if second < 0 else Verdict.OLDER)
    (stands,) = verify_everything_stored(engine, NOW)
    assert stands.data == (offered if second < 0 else between)


def test_draft_files_that_come_in_between_do_not_mix(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = judge_records
    left = [draft_file(ME, [lesson(sentence(number))]) for number in range(3)]

    def interrupted(records: Any) -> Any:
        if left:
            take(engine, left.pop())
        return plain(records)

    monkeypatch.setattr(accept, "judge_records", interrupted)
    last = draft_file(ME, [lesson(sentence(9))])
    take(engine, last)
    (stands,) = verify_everything_stored(engine, NOW)
    assert stands.data == last


@pytest.mark.parametrize(
    "damage",
    [{"data": b""}, {"data": b"{}\n{}\n"}, {"topics": ""}, {"topics": "a b c\n"}, {"data": b"{}\n" * 3}],
    ids=["no bytes", "a line less", "a topic less", "topics of another form", "other lines"],
)
@pytest.mark.parametrize("same_seal", [False, True], ids=["newer", "equivocation"])
def test_the_owner_of_a_file_that_was_damaged_replaces_it(
    engine: Engine, damage: dict[str, Any], *, same_seal: bool
) -> None:
    take(engine, file(ME, [lesson(sentence(1)), lesson(sentence(2))]))
    with writing(engine) as connection:
        connection.execute(tables.contents.update().values(damage))
    if same_seal:
        take(engine, file(ME, [lesson(sentence(1)), lesson(sentence(3))]))
    offered = file(ME, [lesson(sentence(1)), lesson(sentence(4))], at=NOW + SECOND)
    assert take(engine, offered).verdict is Verdict.NEWER
    (stands,) = verify_everything_stored(engine, NOW)
    assert stands.data == offered


def test_a_line_that_was_damaged_where_it_lies_is_verified_when_it_comes_again(engine: Engine) -> None:
    lines = [sign_record(ME, {**lesson(sentence(1)), "sealed": True})]
    data = resealed(ME, lines)
    take(engine, data)
    forged = [lines[0].replace(b'"seen":', b'"seen":1')]
    assert forged != lines
    with writing(engine) as connection:
        connection.execute(tables.contents.update().values(data=data.replace(lines[0], forged[0])))
    with pytest.raises(SignatureInvalid):
        take(engine, resealed(ME, forged, at=NOW + SECOND))


class Broken(Exception):
    """A write that fails."""


@contextmanager
def failing(engine: Engine, number: int) -> Iterator[list[str]]:
    """Let the statement of this number fail, and list the statements that ran."""
    ran: list[str] = []

    def fail(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        ran.append(statement)
        if len(ran) == number:
            raise Broken(statement)

    event.listen(engine, "before_cursor_execute", fail)
    try:
        yield ran
    finally:
        event.remove(engine, "before_cursor_execute", fail)


def dump(engine: Engine) -> dict[str, list[Any]]:
    with engine.connect() as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))
            for table in tables.metadata.sorted_tables
        }


@pytest.mark.parametrize("held", [False, True], ids=["first file", "newer file"])
def test_a_write_that_fails_anywhere_changes_nothing(engine: Engine, *, held: bool) -> None:
    secret = new_token(engine)
    unfit = lesson("Delete the lock file before every build.")
    if held:
        take(engine, file(ME, [lesson(sentence(1)), unfit, lesson(sentence(2))]))
    newer = file(ME, [lesson(sentence(1)), lesson(sentence(3)), {**unfit, "seen": 7}], at=NOW + SECOND)
    before = dump(engine)
    for number in range(1, 100):
        try:
            with failing(engine, number) as ran:
                take(engine, newer, secret=secret)
        except Broken:
            assert dump(engine) == before, f"statement {number}: {ran[-1]}"
        else:
            break
    assert number > 10
    assert dump(engine) != before
    (stands,) = verify_everything_stored(engine, NOW)
    assert stands.data == newer


def test_a_token_that_was_revoked_while_a_file_was_verified_publishes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = new_token(engine)
    plain = judge_records

    def interrupted(records: Any) -> Any:
        with writing(engine) as connection:
            tokens.revoke(connection, 1, NOW)
        return plain(records)

    monkeypatch.setattr(accept, "judge_records", interrupted)
    with pytest.raises(Exception, match="revoked"):
        take(engine, file(ME, []), secret=secret)
    assert verify_everything_stored(engine, NOW) == []


def test_the_cursors_of_changes_are_in_the_order_of_their_commits(engine: Engine) -> None:
    seen: list[int] = []
    for number in (3, 1, 2, 1):
        at = NOW + len(seen) * SECOND
        take(engine, file(key(number), [], at=at), name=key(number).public.hex)
        with engine.connect() as connection:
            seen.append(store.index(connection, 0, 10)[-1].cursor)
    assert seen == [1, 2, 3, 4]
