"""Laws of every profile that ships: monotone, continuous but for the published steps, and never the whole machine."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.reservations.formula import NodeSize, calculate_reservations, withheld_price_share
from trimtab.reservations.profile import GIB, MIB, ZERO, AmountRule, Bracket, Profile
from trimtab.reservations.read_profile import shipped_profiles

PROFILES = list(shipped_profiles().values())
millicores = st.integers(1, 512).map(lambda cores: 1000 * cores)
memory = st.integers(256, 24 << 10).map(lambda mib: mib * MIB) | st.integers(1, 24 << 10).map(lambda gib: gib * GIB)
pods = st.integers(8, 1000)

PUBLISHED_STEPS = {("gke", "memory", GIB), ("openshift-2026", "memory", 128 * GIB)}
"""Where a published formula jumps: below 1 GiB a fixed amount, and a program that counts a bracket too narrow."""


def reserve(profile: Profile, cpu: int, size: int, count: int = 110) -> tuple[Fraction, Fraction]:
    reservations = calculate_reservations(profile, NodeSize(millicores=cpu, memory_bytes=size, max_pods=count))
    return reservations.cpu.reserved, reservations.memory.withheld


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@given(cpus=st.tuples(millicores, millicores), sizes=st.tuples(memory, memory), count=pods)
def test_a_larger_machine_never_reserves_less(
    profile: Profile, cpus: tuple[int, int], sizes: tuple[int, int], count: int
) -> None:
    small = reserve(profile, min(cpus), min(sizes), count)
    large = reserve(profile, max(cpus), max(sizes), count)
    assert small[0] <= large[0]
    assert small[1] <= large[1]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@given(size=memory, cpu=millicores, counts=st.tuples(pods, pods))
def test_more_pods_never_reserve_less(profile: Profile, size: int, cpu: int, counts: tuple[int, int]) -> None:
    assert reserve(profile, cpu, size, min(counts))[1] <= reserve(profile, cpu, size, max(counts))[1]


def without_rounding(rule: AmountRule) -> AmountRule:
    return replace(rule, size_rounding=None, bracket_rounding=None, rounding=None)


def jumps_of(rule: AmountRule) -> set[int]:
    """The sizes at which the rule jumps: on both sides of an edge its value is far more apart than the sizes are."""
    hair = Fraction(1, 1000)
    edges = {bracket.up_to for bracket in rule.brackets if bracket.up_to} | {rule.small_below or ZERO}

    def amount(size: Fraction) -> Fraction:
        return sum((term.amount for term in without_rounding(rule).list_terms(size, Fraction(110))), ZERO)

    return {int(edge) for edge in edges if edge and abs(amount(edge + hair) - amount(edge - hair)) > 2 * hair}


def test_brackets_are_continuous_but_for_the_published_steps() -> None:
    rows = {
        (profile.name, resource, edge)
        for profile in PROFILES
        for resource, rule in (("memory", profile.memory), ("cpu", profile.cpu))
        for edge in jumps_of(rule)
    }
    assert rows == PUBLISHED_STEPS


def test_the_step_of_openshift_in_2026_is_a_third_of_a_gibibyte_downwards() -> None:
    rule = without_rounding(shipped_profiles()["openshift-2026"].memory)
    at, above = (
        sum((term.amount for term in rule.list_terms(Fraction(gib * GIB), ZERO)), ZERO) / GIB for gib in (128, 129)
    )
    assert (at, above) == (Fraction("8.20"), Fraction("7.90"))


def test_a_first_release_that_forgot_a_bracket_would_be_found() -> None:
    forgot = AmountRule(
        brackets=(
            Bracket(up_to=Fraction(1000), share=Fraction(6, 10)),
            Bracket(up_to=None, share=Fraction(1, 100), counted_from=ZERO),
        )
    )
    assert jumps_of(forgot) == {1000}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@given(cores=st.integers(0, 200), more=st.integers(0, 1 << 43), count=st.integers(4, 250))
def test_something_is_left_on_every_machine_that_the_vendor_offers(
    profile: Profile, cores: int, more: int, count: int
) -> None:
    cpu, size = profile.smallest
    # No instance type of the AWS table allows more than eight pods for each GiB.
    allowed = min(count, max(4, 8 * (size + more) // GIB))
    offered = NodeSize(millicores=cpu + 1000 * cores, memory_bytes=size + more, max_pods=allowed)
    assert calculate_reservations(profile, offered).fits_machine


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@given(cpu=millicores, size=memory, count=pods)
def test_terms_add_up_and_parts_make_the_whole(profile: Profile, cpu: int, size: int, count: int) -> None:
    reservations = calculate_reservations(profile, NodeSize(millicores=cpu, memory_bytes=size, max_pods=count))
    for part in (reservations.cpu, reservations.memory):
        assert sum((term.amount for term in part.terms), ZERO) == part.reserved
        assert 0 <= part.size - part.withheld - part.allocatable < 1
    assert 0 <= withheld_price_share(reservations, Fraction(1, 2)) <= 1
