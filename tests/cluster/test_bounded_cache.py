"""Only short strings are kept."""

from trimtab.cluster.bounded_cache import cache_short_strings


def test_a_short_string_is_computed_once_and_a_long_one_each_time():
    computed = []

    @cache_short_strings(max_length=3, max_entries=8)
    def length(text: str) -> int:
        computed.append(text)
        return len(text)

    assert [length(text) for text in ("abc", "abc", "abcd", "abcd")] == [3, 3, 4, 4]
    assert computed == ["abc", "abcd", "abcd"]


def test_a_full_cache_is_emptied():
    computed = []

    @cache_short_strings(max_length=3, max_entries=2)
    def length(text: str) -> int:
        computed.append(text)
        return len(text)

    assert [length(text) for text in ("a", "b", "b", "c", "a")] == [1, 1, 1, 1, 1]
    assert computed == ["a", "b", "c", "a"]
