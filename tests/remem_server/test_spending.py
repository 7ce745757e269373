"""What several servers over one database spend of one account."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

from sqlalchemy import Engine

from remem_gossip.budget import Budget
from remem_server.database.engine import writing
from remem_server.gossip import spending
from remem_testkit.files import NOW

SERVERS = 4
STEP = 7
BUDGET = Budget(bytes=STEP * 60, checks=1_000, origins=1_000)


def test_servers_that_spend_at_once_go_beyond_a_budget_by_one_step_of_each_at_most(engine: Engine) -> None:
    together = Barrier(SERVERS)

    def serve(_number: int) -> int:
        account, steps = spending.account(engine, "https://a.example", BUDGET, NOW), 0
        together.wait(60)
        while account.is_open:
            account.charge(size=STEP, checks=2, origins=1)
            account.settle()
            steps += 1
        return steps

    with ThreadPoolExecutor(SERVERS) as pool:
        steps = sum(pool.map(serve, range(SERVERS)))
    spent = spending.account(engine, "https://a.example", BUDGET, NOW).spent
    # Nothing of what they spent is lost, and all of them heard of it.
    assert spent == Budget(STEP * steps, 2 * steps, steps)
    assert BUDGET.bytes <= spent.bytes < BUDGET.bytes + STEP * SERVERS


def test_each_account_and_each_night_is_spent_by_itself(engine: Engine) -> None:
    account = spending.account(engine, "https://a.example", BUDGET, NOW)
    account.charge(size=5)
    account.settle()
    assert spending.account(engine, "https://b.example", BUDGET, NOW).spent == Budget()
    assert spending.account(engine, "https://a.example", BUDGET, NOW + timedelta(days=1)).spent == Budget()
    with writing(engine) as connection:
        spending.forget_old(connection, NOW + timedelta(days=3))
    assert spending.account(engine, "https://a.example", BUDGET, NOW).spent == Budget()
