"""A value is computed once for an object, and never returned for another object."""

from trimtab.policy.cluster_facts import MAX_CACHED_OBJECTS, Derived


def test_it_is_made_once_for_an_object_and_again_for_an_equal_one() -> None:
    built: list[tuple[int, ...]] = []

    def total(result: tuple[int, ...]) -> int:
        built.append(result)
        return sum(result)

    derived = Derived(total)
    one, equal = tuple([1, 2]), tuple([1, 2])  # noqa: C409  two objects
    assert [derived.value_for(one), derived.value_for(one), derived.value_for(equal)] == [3, 3, 3]
    assert len(built) == 2


def test_however_many_there_are_few_are_kept_and_each_has_its_own() -> None:
    kept_values = Derived[tuple[int, ...], int](sum)
    assert [kept_values.value_for((number,)) for number in range(3 * MAX_CACHED_OBJECTS)] == list(
        range(3 * MAX_CACHED_OBJECTS)
    )
    assert len(kept_values._cache) <= MAX_CACHED_OBJECTS
