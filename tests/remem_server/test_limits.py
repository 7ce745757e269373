"""Limits: what an address or a token may do within a minute and within a day, and what nobody's limit keeps out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import Engine, create_engine, select

from remem_server.database.engine import Database, writing
from remem_server.database.tables import counters as table
from remem_server.settings import Settings
from remem_server.web import connections, counters, limits
from remem_server.web.counters import Charge, Counters
from remem_server.web.limits import MUCH, PUBLISH_MUCH, QUERY_BYTES, QUERY_FIELDS, Limits, token_name
from remem_server.web.turns import Turns
from remem_testkit.files import file, full_file, key, lesson, sentence
from remem_testkit.server import HandClock, ServedCommons
from remem_testkit.wire import connected, read_head

Ask = Callable[..., httpx.Client]
Start = Callable[..., ServedCommons]
From = Callable[..., httpx.Client]

HERE, THERE = "127.0.0.2", "127.0.0.3"
ONE_LINE = [lesson(sentence(1))]


@pytest.fixture
def client_from() -> Iterator[From]:
    """Return a function that makes a client of a commons at an address of loopback, with a token or without."""
    with ExitStack() as stack:

        def client_from(commons: ServedCommons, address: str, token: str | None = None) -> httpx.Client:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            transport = httpx.HTTPTransport(local_address=address, verify=False)
            made = httpx.Client(base_url=commons.url, headers=headers, transport=transport, timeout=60)
            return stack.enter_context(made)

        yield client_from


def put(client: httpx.Client, number: int, data: bytes | None = None) -> httpx.Response:
    signer = key(number)
    body = file(signer, ONE_LINE) if data is None else data
    return client.put(f"/commons/{signer.public.hex}.jsonl", content=body)


def said(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def pass_time(commons: ServedCommons, **by: float) -> None:
    assert isinstance(commons.clock, HandClock)
    commons.clock.advance(timedelta(**by))


# --- counters ---


def waits(counted: Counters, *charges: Charge) -> float | None:
    reached = counted.count(charges)
    return None if reached is None else reached.seconds


def test_a_counter_lets_so_many_pass_until_its_span_is_over() -> None:
    clock = HandClock()
    counted = Counters(clock)
    charge = Charge("x", 2, 60)
    assert [waits(counted, charge) for _ in range(3)] == [None, None, 60]
    clock.advance(timedelta(seconds=59))
    assert waits(counted, charge) == 1
    clock.advance(timedelta(seconds=1))
    assert waits(counted, charge) is None


def test_what_is_refused_is_not_counted_and_charges_go_together() -> None:
    counted = Counters(HandClock())
    a, b = Charge("a", 1, 60), Charge("b", 3, 30)
    assert counted.count([a, b]) is None
    # Refused for the one, so it is not counted for the other.
    assert [counted.count([a, b]) for _ in range(5)] == [(60, a)] * 5
    assert [waits(counted, b) for _ in range(3)] == [None, None, 30]
    assert counted.count([a, b]) == (60, a)


def test_many_at_once_pass_whole_where_one_would() -> None:
    counted = Counters(HandClock())
    many = Charge("lines", 10, 60, 1_000)
    assert [waits(counted, many), waits(counted, many)] == [None, 60]


def test_counters_are_bounded_and_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "COUNTERS_MOST", 100)
    clock = HandClock()
    counted = Counters(clock)
    for number in range(1_000):
        assert counted.count([Charge(f"n{number}", 1, 60)]) is None
        clock.advance(timedelta(milliseconds=10))
    assert len(counted._counters) <= 100
    assert counted.reached("n999", 1) is not None
    assert counted.reached("n0", 1) is None


def test_no_number_of_addresses_makes_the_day_or_a_token_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "COUNTERS_MOST", 100)
    clock = HandClock()
    counted = Counters(clock)
    day, token = Charge("keys", 1, 86_400, lasts=True), Charge("files token 1", 1, 60, lasts=True)
    of_address = Charge("keys 192.0.2.1", 1, 86_400)
    assert counted.count([day, token, of_address]) is None
    for number in range(1_000):
        assert counted.count([Charge(f"n{number}", 1, 60)]) is None
    assert [counted.reached(one.name, 1) for one in (day, token, of_address)] == [86_400, 60, 86_400]
    # And not by those that last as long as the day.
    clock.advance(timedelta(seconds=1))
    for number in range(1_000):
        assert counted.count([Charge(f"d{number}", 1, 86_400)]) is None
    assert [counted.reached(one.name, 1) for one in (day, token)] == [86_399, 59]


def test_what_is_refused_makes_no_counter() -> None:
    counted = Counters(HandClock())
    keys = Charge("keys", 1, 86_400)
    for number in range(10):
        counted.count([Charge(f"keys {number}", 1, 86_400), keys])
    assert sorted(counted._counters) == ["keys", "keys 0"]


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_servers_of_one_database_count_together(engine: Engine) -> None:
    clock = HandClock()
    servers = [Counters(clock, engine) for _ in range(3)]
    charge = Charge("read 192.0.2.1", 1_000, 60)
    passed = 0
    for _ in range(500):
        for one in servers:
            if one.count([charge]) is None:
                passed += 1
                if due := one.due([charge]):
                    one.share(due)
    # Each may be a hundredth behind what the others did.
    assert 1_000 <= passed <= 1_030
    clock.advance(timedelta(seconds=62))
    assert [one.count([charge]) for one in servers] == [None] * 3


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_what_is_over_leaves_the_table(engine: Engine) -> None:
    clock = HandClock()
    one = Counters(clock, engine)
    for name in ("a", "b"):
        one.count([Charge(name, 1, 60)])
        one.share([name])
        clock.advance(timedelta(minutes=2))
    with engine.connect() as connection:
        assert connection.execute(select(table.c.name)).scalars().all() == ["b"]


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_without_the_database_a_server_goes_by_its_own_count(engine: Engine) -> None:
    one = Counters(HandClock(), engine)
    with writing(engine) as connection:
        connection.exec_driver_sql("DROP TABLE counters")
    charge = Charge("a", 2, 60)
    for _ in range(2):
        assert one.count([charge]) is None
        one.share(["a"])
    assert waits(one, charge) == 60
    assert one.due([charge]) == ["a"]


# --- reading ---


def test_an_address_reads_so_much_within_a_minute_and_another_is_not_kept_out(start: Start, client_from: From) -> None:
    commons = start(reads_per_minute=3)
    here, there = (client_from(commons, address) for address in (HERE, THERE))
    assert [here.get(path).status_code for path in ("/healthz", "/", "/commons/x.jsonl")] == [200, 307, 404]
    answer = here.get("/healthz")
    assert said(answer) == (429, "too_many_requests")
    assert answer.headers["Retry-After"] == "60"
    assert there.get("/healthz").status_code == 200
    pass_time(commons, seconds=60)
    assert here.head("/healthz").status_code == 200


def test_beyond_what_an_address_may_read_a_good_token_reads_as_much(start: Start, client_from: From) -> None:
    commons = start(reads_per_minute=3, private=True)
    token = commons.token()
    stranger, mine, other = (client_from(commons, HERE, one) for one in (None, token, "remem_x"))
    assert [stranger.get("/healthz").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert [mine.get("/commons/index").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert other.get("/healthz").status_code == 429


def test_a_refusal_says_what_there_is_too_much_of(start: Start, client_from: From) -> None:
    commons = start(reads_per_minute=1, publishes_per_minute=3, lines_per_minute=100, open=True)
    here = client_from(commons, HERE)
    assert here.get("/healthz").status_code == 200
    heard = here.get("/healthz").json()["detail"]
    assert heard == "expected at most 1 requests a minute from here, got more"
    assert put(here, 1, full_file(key(1))).status_code == 201
    heard = put(here, 2).json()["detail"]
    assert heard == "expected at most 100 lines a minute from here, got more"


def test_a_refusal_asks_no_database(start: Start, client_from: From) -> None:
    commons = start(reads_per_minute=1)
    here = client_from(commons, HERE)
    assert here.get("/commons/index").status_code == 200
    with writing(commons.engine) as connection:
        connection.exec_driver_sql("ALTER TABLE files RENAME TO lost")
    assert said(here.get("/commons/index")) == (429, "too_many_requests")
    assert said(client_from(commons, THERE).get("/commons/index")) == (503, "store_unavailable")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("x" * QUERY_BYTES, 200),
        ("x" * (QUERY_BYTES + 1), 414),
        ("&" * (QUERY_FIELDS - 1), 200),
        ("&" * QUERY_FIELDS, 414),
        ("a[b]=1&" * 500, 414),
    ],
    ids=["long", "too long", "many", "too many", "deep"],
)
def test_a_query_is_bounded_before_it_is_looked_into(commons: ServedCommons, ask: Ask, query: str, status: int) -> None:
    answer = ask(commons).get(f"/commons/index?{query}")
    assert answer.status_code == status
    assert status == 200 or answer.json()["code"] == "query_size"


# --- publishing ---


def test_an_address_sends_so_many_files_and_reads_go_on(start: Start, client_from: From) -> None:
    commons = start(publishes_per_minute=2, open=True)
    here = client_from(commons, HERE)
    assert [put(here, number).status_code for number in (1, 2, 3)] == [201, 201, 429]
    assert here.get("/commons/index").status_code == 200
    assert put(client_from(commons, THERE), 3).status_code == 201
    pass_time(commons, seconds=60)
    assert put(here, 4).status_code == 201


def test_a_token_sends_so_many_files_from_wherever(start: Start, client_from: From) -> None:
    commons = start(publishes_per_minute=2)
    token = commons.token()
    here, there = (client_from(commons, address, token) for address in (HERE, THERE))
    assert [put(one, 1).status_code for one in (here, there, here, there)] == [201, 200, 429, 429]


def test_what_is_too_much_is_refused_before_the_body_comes(start: Start) -> None:
    commons = start(publishes_per_minute=1, open=True)
    sent = f"PUT /commons/{key(1).public.hex}.jsonl HTTP/1.1\r\nHost: commons\r\nContent-Length: 100\r\n\r\n".encode()
    with connected(commons.url, HERE) as first, connected(commons.url, HERE) as second:
        first.sendall(sent)
        second.sendall(sent)
        # Only one of them is waited for.
        first.settimeout(1)
        answers = []
        for one in (first, second):
            try:
                answers.append(read_head(one).split()[1])
            except TimeoutError:
                continue
    assert answers == [b"429"]


def test_bytes_are_counted_as_they_came(start: Start, client_from: From) -> None:
    commons = start(kilobytes_per_minute=200, open=True)
    here, there = (client_from(commons, address) for address in (HERE, THERE))
    # The last may be larger than what was left.
    assert [put(here, 1, full_file(key(1), lines=350)).status_code for _ in range(3)] == [201, 200, 429]
    # In pieces, without a length: they count as they are.
    for number in range(2, 6):
        in_pieces = iter([file(key(number), ONE_LINE)])
        assert there.put(f"/commons/{key(number).public.hex}.jsonl", content=in_pieces).status_code == 201


def test_a_length_without_a_body_takes_nothing_from_whoever_sends_one(start: Start, client_from: From) -> None:
    commons = start(kilobytes_per_minute=300, open=True)
    path = f"/commons/{key(1).public.hex}.jsonl"
    head = f"PUT {path} HTTP/1.1\r\nHost: commons\r\nContent-Length: 262144\r\n\r\n".encode()
    for _ in range(5):
        with connected(commons.url, HERE) as opened:
            opened.sendall(head)
    assert put(client_from(commons, HERE), 1).status_code == 201


def test_no_file_counts_as_more_lines_than_one_may_have(start: Start, client_from: From) -> None:
    commons = start(lines_per_minute=1_002, open=True)
    here = client_from(commons, HERE)
    assert put(here, 1, b"\n" * 262_144).status_code == 422
    assert put(here, 1).status_code == 201


def test_nobody_without_a_token_spends_what_a_token_may(
    start: Start, client_from: From, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who was refused too often is read so much later.
    monkeypatch.setattr(connections, "_LATER_SECONDS", 0.1)
    commons = start(publishes_per_minute=2, refusals_per_minute=2)
    stranger, mine = client_from(commons, HERE), client_from(commons, HERE, commons.token())
    # Refused for the token that is missing, then for being refused too often.
    assert [put(stranger, number).status_code for number in range(1, 6)] == [401, 401, 429, 429, 429]
    assert [put(mine, 1).status_code for _ in range(3)] == [201, 200, 429]
    # Reading with it goes on too.
    assert mine.get("/commons/index").status_code == 200
    assert stranger.get("/commons/index").status_code == 429


def test_no_web_page_makes_who_opens_it_unheard(start: Start, client_from: From) -> None:
    here = client_from(start(refusals_per_minute=3), HERE)
    assert [here.get("/commons/lessons?limit=0").status_code for _ in range(10)] == [422] * 10
    assert here.get("/commons/lessons").status_code == 200


def test_lines_are_counted_before_a_signature_is_verified(start: Start, client_from: From) -> None:
    commons = start(lines_per_minute=5, open=True)
    here = client_from(commons, HERE)
    broken = full_file(key(1), lines=4).replace(b'"sig":"', b'"sig":"0', 1)
    assert said(put(here, 1, broken))[0] == 422
    # The next is not even looked at.
    assert said(put(here, 1, broken)) == (429, "too_many_requests")


def test_an_address_brings_so_many_new_keys_a_day_and_known_ones_are_served(start: Start, client_from: From) -> None:
    commons = start(new_keys_per_address=2, new_keys_per_day=3, open=True)
    here, there = (client_from(commons, address) for address in (HERE, THERE))
    assert [put(here, number).status_code for number in (1, 2)] == [201, 201]
    refused = put(here, 3)
    assert said(refused) == (429, "too_many_keys")
    assert refused.headers["Retry-After"] == "86400"
    newer = file(key(1), [lesson(sentence(2))], seal=int(commons.clock().timestamp()) + 1)
    assert put(here, 1, newer).status_code == 200
    assert [put(there, number).status_code for number in (3, 4)] == [201, 429]
    # A token is the operator's own word.
    assert put(client_from(commons, HERE, commons.token()), 5).status_code == 201
    pass_time(commons, days=1)
    assert put(here, 4).status_code == 201


def test_a_file_that_is_refused_brings_no_key(start: Start, client_from: From) -> None:
    here = client_from(start(new_keys_per_address=1, open=True), HERE)
    for number in (1, 2, 3):
        assert put(here, number, file(key(number), ONE_LINE)[:-1]).status_code == 422
    assert put(here, 4).status_code == 201


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_several_servers_limit_an_address_together(start: Start, client_from: From) -> None:
    servers = [start(reads_per_minute=50), start(reads_per_minute=50)]
    clients = [client_from(server, HERE) for server in servers]
    statuses = [client.get("/healthz").status_code for _ in range(50) for client in clients]
    assert 50 <= statuses.count(200) <= 52


# --- what an honest memory does ---


def test_no_default_hinders_an_honest_memory(commons: ServedCommons) -> None:
    limits = Limits(commons.settings, commons.clock, commons.commons.database)

    async def shared(who: str, size: int, lines: int) -> None:
        await limits.publish(who)
        await limits.came(who, size)
        await limits.verify(who, lines)

    async def one_household() -> None:
        # Ten people behind one address, each with a first pull of 5,000 files and a first share of 1,000 lines.
        for _ in range(10):
            for _ in range(5_000):
                await limits.read("192.0.2.1")
            await shared("192.0.2.1", 262_144, 1_001)
            limits.take_key("192.0.2.1")

    async def one_large_pull() -> None:
        for _ in range(10_011):
            await limits.read("192.0.2.2")

    async def searches() -> None:
        # 400 a second for half a minute.
        for _ in range(12_000):
            await limits.read("192.0.2.3")

    async def a_workshop() -> None:
        # A thousand people behind one address, each with a first share of some lessons, within a minute.
        for _ in range(1_000):
            await shared("192.0.2.4", 20_000, 50)
            limits.take_key("192.0.2.4")

    for one in (one_household, one_large_pull, searches, a_workshop):
        asyncio.run(one())


# --- what asks for much ---


def test_lists_refusals_and_files_without_a_token_are_much_and_reading_files_is_not(
    start: Start, client_from: From, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(Limits, "note_much", lambda _limits, who, amount=1: noted.append((who, amount)))
    commons = start(open=True)
    here = client_from(commons, HERE)
    for path in ("/commons/lessons?q=x", "/commons/index", f"/commons/lessons/{'0' * 32}", "/commons/lessonsX"):
        here.get(path)
    here.get(f"/commons/{key(1).public.hex}.jsonl")
    assert here.delete("/healthz").status_code == 405
    assert noted == [(HERE, 1)] * 4
    noted.clear()
    assert put(client_from(commons, HERE, commons.token()), 1).status_code == 201
    assert noted == []
    assert put(here, 2).status_code == 201
    assert noted == [(HERE, PUBLISH_MUCH)]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who took a turn, one after the other; none of them is kept waiting."""
    names: list[str] = []

    async def take(_turns: Turns, who: str) -> None:
        names.append(who)

    monkeypatch.setattr(Turns, "take", take)
    return names


def test_whoever_shows_a_good_token_does_not_wait_for_others_behind_its_address(
    start: Start, client_from: From, waited: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MUCH", 2)
    commons = start()
    stranger, mine, other = (client_from(commons, HERE, one) for one in (None, commons.token(), "remem_x"))
    assert [put(stranger, 1).status_code for _ in range(2)] == [401, 401]
    assert put(mine, 1).status_code == 201
    assert waited == [HERE]
    assert [put(one, 1).status_code for one in (stranger, other)] == [401, 401]
    assert waited == [HERE] * 3
    # Unless it asks for much itself.
    assert [mine.get("/commons/index").status_code for _ in range(3)] == [200] * 3
    assert waited == [HERE] * 3 + [token_name(1)]


def test_what_is_refused_unseen_waits_for_its_turn_too(
    start: Start, client_from: From, waited: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MUCH", 1)
    here = client_from(start(reads_per_minute=1), HERE)
    assert [here.get("/commons/index").status_code for _ in range(3)] == [200, 429, 429]
    assert here.get(f"/?{'x' * (QUERY_BYTES + 1)}").status_code == 414
    assert waited == [HERE] * 3


def test_much_is_so_many_within_a_minute() -> None:
    clock = HandClock()
    engine = create_engine("sqlite://")
    limits = Limits(Settings(), clock, Database(engine, engine, {}))
    for _ in range(MUCH):
        assert not limits.asks_for_much(HERE)
        limits.note_much(HERE)
    assert [limits.asks_for_much(address) for address in (HERE, THERE)] == [True, False]
    clock.advance(timedelta(minutes=1))
    assert not limits.asks_for_much(HERE)
