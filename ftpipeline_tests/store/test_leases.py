import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import LeaseLostError
from ftpipeline.store.database import Database
from ftpipeline.store.leases import Lease, Leases
from ftpipeline_tests.store.folders import quick_folder

TTL = 30.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(database: Database, clock: Clock) -> Leases:
    return Leases(database, clock)


def take(leases: Leases, holder: str) -> Lease:
    lease = leases.acquire("key", holder, TTL)
    assert lease is not None
    return lease


def test_a_free_lease_is_taken_and_then_nobody_else_gets_it(leases: Leases) -> None:
    assert take(leases, "me") == Lease("key", "me", 1, TTL)
    assert leases.acquire("key", "you", TTL) is None
    assert leases.acquire("key", "me", TTL) is None
    assert leases.held() == {"key": "me"}


def test_leases_of_other_names_are_free(leases: Leases) -> None:
    take(leases, "me")
    assert leases.acquire("another key", "you", TTL) == Lease("another key", "you", 1, TTL)


def test_every_change_of_hands_raises_the_generation(leases: Leases) -> None:
    for generation in (1, 2, 3):
        lease = take(leases, "me")
        assert lease.generation == generation
        leases.release(lease)
    assert leases.held() == {}


def test_a_holder_without_a_sign_of_life_is_taken_over_after_its_ttl(leases: Leases, clock: Clock) -> None:
    take(leases, "me")
    assert leases.acquire("key", "you", TTL) is None
    clock.now += TTL - 0.1
    assert leases.acquire("key", "you", TTL) is None
    clock.now += 0.2
    assert leases.acquire("key", "you", TTL) == Lease("key", "you", 2, TTL)


def test_a_holder_that_renews_is_never_taken_over(leases: Leases, clock: Clock) -> None:
    mine = take(leases, "me")
    for _ in range(10):
        assert leases.acquire("key", "you", TTL) is None
        clock.now += 0.9 * TTL
        leases.renew(mine)
    leases.check(mine)


@pytest.mark.parametrize("offset", [-1e9, 1e9])
def test_clocks_of_two_machines_are_never_compared(database: Database, clock: Clock, offset: float) -> None:
    theirs = Clock(offset)
    mine = take(Leases(database, clock), "me")
    others = Leases(database, theirs)
    assert others.acquire("key", "you", TTL) is None
    theirs.now += TTL - 0.1
    assert others.acquire("key", "you", TTL) is None
    Leases(database, clock).renew(mine)
    theirs.now += TTL - 0.1
    assert others.acquire("key", "you", TTL) is None


def test_a_lost_lease_can_neither_be_renewed_nor_given_back(leases: Leases, clock: Clock) -> None:
    mine = take(leases, "me")
    leases.acquire("key", "you", TTL)
    clock.now += TTL
    yours = take(leases, "you")
    for use in (leases.renew, leases.check):
        with pytest.raises(LeaseLostError, match=r"me \(generation 1\) was lost to you") as caught:
            use(mine)
        assert caught.value.exit_code == 3
    leases.release(mine)
    leases.check(yours)


def test_a_lease_that_was_given_back_is_no_lease(leases: Leases) -> None:
    mine = take(leases, "me")
    leases.release(mine)
    with pytest.raises(LeaseLostError, match="lost to nobody"):
        leases.renew(mine)


def test_of_many_who_ask_at_once_one_gets_it(database: Database) -> None:
    won: list[Lease | None] = []
    start = threading.Barrier(8)

    def ask(number: int) -> None:
        start.wait()
        won.append(Leases(database).acquire("key", f"holder {number}", TTL))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([lease for lease in won if lease is not None]) == 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["acquire", "renew", "release"]), st.integers(0, 2)),
            st.tuples(st.just("wait"), st.integers(1, 40)),
        ),
        max_size=30,
    )
)
def test_whatever_happens_at_most_one_holder_has_the_current_generation(actions: list[tuple[str, int]]) -> None:
    clock = Clock()
    with quick_folder() as folder, closing(prepared(folder)) as database:
        leases = Leases(database, clock)
        held: dict[int, Lease] = {}
        newest = 0
        for action, number in actions:
            if action == "wait":
                clock.now += number
            elif action == "acquire":
                lease = leases.acquire("key", f"holder {number}", TTL)
                if lease is not None:
                    assert lease.generation == newest + 1
                    newest, held[number] = lease.generation, lease
            elif number in held:
                with suppress(LeaseLostError):
                    (leases.renew if action == "renew" else leases.release)(held[number])
            assert sum(stands(leases, lease) for lease in held.values()) <= 1


def stands(leases: Leases, lease: Lease) -> bool:
    with suppress(LeaseLostError):
        leases.check(lease)
        return True
    return False


def prepared(folder: Path) -> Database:
    return Database.open(f"sqlite:///{folder}/db")


def test_a_seized_lease_is_lost_to_its_holder_alive_or_dead(leases: Leases) -> None:
    mine = take(leases, "me")
    seized = leases.seize("key", "guard", TTL)
    assert seized == Lease("key", "guard", 2, TTL)
    with pytest.raises(LeaseLostError, match="lost to guard"):
        leases.renew(mine)
    leases.check(seized)
    leases.release(seized)
    assert leases.seize("another key", "guard", TTL) == Lease("another key", "guard", 1, TTL)
    assert leases.held() == {"another key": "guard"}
