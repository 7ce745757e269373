"""What is spent of one account by several at once."""

from __future__ import annotations

from remem_gossip.account import Account
from remem_gossip.budget import Budget


class Written:
    """What is written down of an account."""

    def __init__(self) -> None:
        self.all = Budget()
        self.writes = 0

    def add(self, more: Budget) -> Budget:
        if more != Budget():
            self.writes += 1
        was = self.all
        self.all = Budget(was.bytes + more.bytes, was.checks + more.checks, was.origins + more.origins)
        return self.all


def test_what_one_spends_the_other_has_no_more() -> None:
    written = Written()
    one, other = (Account(Budget(100, 50, 10), written.add) for _ in range(2))
    one.charge(size=60, checks=10, origins=4)
    other.charge(size=30, checks=5, origins=3)
    assert (one.origins, other.origins) == (6, 7)
    one.settle()
    other.settle()
    assert other.spent == written.all == Budget(90, 15, 7)
    other.charge(size=10)
    other.settle()
    one.settle()
    assert not one.is_open
    assert one.spent == other.spent == Budget(100, 15, 7)
    assert Account(Budget(100, 50, 10), written.add).spent == Budget(100, 15, 7)


def test_nothing_is_written_down_twice() -> None:
    written = Written()
    account = Account(Budget(100, 50, 10), written.add)
    account.charge(size=60)
    assert not account.is_settled
    for _time in range(3):
        account.settle()
        assert account.is_settled
    assert written.all.bytes == 60
    assert written.writes == 1


def test_together_they_go_beyond_a_budget_by_one_step_of_each_at_most() -> None:
    written, step, budget = Written(), 7, 1_000
    accounts = [Account(Budget(budget, 1, 1), written.add) for _ in range(5)]
    while any(account.is_open for account in accounts):
        spending = [account for account in accounts if account.is_open]
        for account in spending:
            account.charge(size=step)
        for account in spending:
            account.settle()
    assert budget <= written.all.bytes < budget + step * len(accounts)
