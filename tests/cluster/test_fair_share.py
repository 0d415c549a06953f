"""What users share is shared max-min: whoever wants little gets it, whatever the others do."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.cluster.fair_share import FairCache, FairQueue, FairSlots, take_turns

USERS = st.lists(st.sampled_from("abcdef"), max_size=60)
SIZE = 12


@given(USERS)
def test_the_first_items_of_all_users_come_before_the_second_of_any(users: list[str]) -> None:
    numbered = [(user, users[:place].count(user)) for place, user in enumerate(users)]
    turns = take_turns(numbered, lambda item: item[0])
    assert sorted(turns) == sorted(numbered)
    assert [number for _, number in turns] == sorted(number for _, number in numbered)


@given(USERS)
def test_a_queue_serves_users_in_turn_and_each_in_its_order(users: list[str]) -> None:
    queue = FairQueue[tuple[str, int]](max_items=1000)
    for number, user in enumerate(users):
        assert queue.put_item(user, (user, number)) is None
    taken = [item for _ in users if (item := queue.take_item()) is not None]
    assert taken == take_turns([(user, number) for number, user in enumerate(users)], lambda item: item[0])
    assert (queue.take_item(), len(queue)) == (None, 0)


@given(USERS)
def test_no_item_of_a_user_with_no_more_than_an_equal_share_is_refused(users: list[str]) -> None:
    queue = FairQueue[str](max_items=SIZE)
    refused = Counter(item for user in users if (item := queue.put_item(user, user)) is not None)
    share = SIZE // max(1, len(set(users)))
    assert len(queue) == min(SIZE, len(users))
    assert [user for user in refused if users.count(user) <= share] == []


@given(USERS)
def test_no_slot_of_a_user_with_no_more_than_an_equal_share_is_lost(users: list[str]) -> None:
    slots = FairSlots(max_slots=SIZE)
    held = [(user, slots.take_slot(user)) for user in users]
    share = SIZE // max(1, len(set(users)))
    assert sum(slot is not None and not slot.is_lost for _, slot in held) == min(SIZE, len(users))
    assert [user for user, slot in held if users.count(user) <= share and (slot is None or slot.is_lost)] == []
    for _, slot in held:
        if slot is not None:
            slots.release_slot(slot)
    assert None not in [slots.take_slot("another") for _ in range(SIZE)]


@given(USERS)
@example([*"abccdeabdeffa"])
def test_no_entry_of_a_user_with_no_more_than_an_equal_share_is_dropped(users: list[str]) -> None:
    cache = FairCache[int, int](max_entries=SIZE)
    for number, user in enumerate(users):
        cache.store_entry(user, number, number)
    share = SIZE // max(1, len(set(users)))
    assert len(cache) == len(cache.entries()) == min(SIZE, len(users))
    kept = {number for number, user in enumerate(users) if users.count(user) <= share}
    assert {number for number in kept if cache.find_entry(users[number], number) != number} == set()


@pytest.mark.parametrize("neighbours", [1, 2, 40])
def test_a_user_waits_for_one_item_of_each_other_user_at_most(neighbours: int) -> None:
    """With one neighbour that fills the queue, an item is served second instead of first."""
    queue = FairQueue[str](max_items=1000)
    for number in range(2000):
        queue.put_item(f"tenant-{number % neighbours}", "theirs")
    queue.put_item("shop", "ours")
    assert [queue.take_item() for _ in range(neighbours + 1)].index("ours") <= neighbours
