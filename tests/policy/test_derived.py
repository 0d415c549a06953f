"""What follows from an object is worked out once for it, and never taken for another's."""

from trimtab.policy.lazy_property import MAX_CACHED_OBJECTS, Derived


def test_it_is_made_once_for_an_object_and_again_for_an_equal_one() -> None:
    made: list[tuple[int, ...]] = []

    def total(found: tuple[int, ...]) -> int:
        made.append(found)
        return sum(found)

    kept = Derived(total)
    one, equal = tuple([1, 2]), tuple([1, 2])  # noqa: C409  two objects
    assert [kept.value_for(one), kept.value_for(one), kept.value_for(equal)] == [3, 3, 3]
    assert len(made) == 2


def test_however_many_there_are_few_are_kept_and_each_has_its_own() -> None:
    kept = Derived[tuple[int, ...], int](sum)
    assert [kept.value_for((number,)) for number in range(3 * MAX_CACHED_OBJECTS)] == list(
        range(3 * MAX_CACHED_OBJECTS)
    )
    assert len(kept._cache) <= MAX_CACHED_OBJECTS
