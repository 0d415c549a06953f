"""Laws of quantities."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.property import strategies  # noqa: F401 - the profiles
from trimtab.cluster import quantity

SUFFIXES = {
    "": 1,
    "m": Fraction(1, 1000),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
    **{s: 10 ** (3 * n) for n, s in enumerate("kMGTPE", 1)},
    **{f"{s}i": 1024**n for n, s in enumerate("KMGTPE", 1)},
    "e3": 1000,
    "E-3": Fraction(1, 1000),
    "e0": 1,
}
MOST = 2**63 - 1


@st.composite
def written(draw):
    """(text, its exact value)."""
    whole, fraction = draw(st.integers(0, 10**7)), draw(st.sampled_from(["", ".5", ".125", ".001", "."]))
    sign, suffix = draw(st.sampled_from(["", "+", "-"])), draw(st.sampled_from(sorted(SUFFIXES)))
    value = Fraction(f"{whole}{fraction}0" if fraction else str(whole)) * SUFFIXES[suffix]
    return f"{sign}{whole}{fraction}{suffix}", -value if sign == "-" else value


def up(value: Fraction, divisor: Fraction) -> int:
    return -(-value // divisor)


@given(written())
def test_a_quantity_is_exact_to_the_nano_rounded_away_from_zero_and_capped(given_):
    text, value = given_
    nano = up(abs(value), Fraction(1, 10**9))
    assert abs(quantity.parse(text)) == min(nano, MOST * 10**9)
    assert (quantity.parse(text) < 0) is (value < 0)


@given(written())
def test_the_canonical_form_has_the_same_value_and_is_its_own(given_):
    text, _ = given_
    canonical = quantity.canonical_form(text)
    if not text.endswith("i"):  # 437.5Ki is stored as 448000, and that read again is 448k
        assert quantity.canonical_form(canonical) == canonical
        assert quantity.is_same_quantity(canonical, text)
    assert abs(quantity.parse(canonical) - quantity.parse(text)) < 10**9


@given(written(), written())
def test_order_is_the_order_of_values(a, b):
    rest = [up(abs(value), Fraction(1, 10**9)) * (-1 if value < 0 else 1) for _, value in (a, b)]
    capped = [max(min(value, MOST * 10**9), -MOST * 10**9) for value in rest]
    assert quantity.compare_quantities(a[0], b[0]) == (capped[0] > capped[1]) - (capped[0] < capped[1])


@given(written())
def test_whole_and_milli_round_up(given_):
    text, value = given_
    value = max(min(value, MOST), -MOST)
    # What is finer than a billionth is rounded away from zero first, also below zero, as the API server does.
    read = Fraction(quantity.parse(text), 10**9)
    assert quantity.to_whole_units(text) == up(read, Fraction(1)) >= read
    assert read * 1000 <= quantity.to_milli(text) < read * 1000 + 1
    assert abs(read) >= abs(value)


@given(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 2**62))
def test_what_is_written_reads_back(resource, number):
    number = number % (MOST // 1000)
    assert quantity.scheduler_value(resource, quantity.format_quantity(resource, number)) == number


@given(st.text(max_size=8) | st.text(alphabet="0123456789.eEinumkKMGTP+-_ ", max_size=8))
def test_any_text_is_a_quantity_or_is_refused(text):
    if quantity.is_quantity(text):
        assert quantity.is_quantity(quantity.canonical_form(text))


@given(st.floats() | st.integers())
def test_numbers_are_quantities_unless_they_are_none(number):
    assert quantity.is_quantity(number) is (number == number and abs(number) != float("inf"))
