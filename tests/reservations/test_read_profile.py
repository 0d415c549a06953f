"""A profile of one's own: read like those that ship, and all of its mistakes are told at once."""

from fractions import Fraction

from trimtab.reservations.formula import NodeSize, calculate_reservations
from trimtab.reservations.profile import GIB, MIB, ReservedAs
from trimtab.reservations.read_profile import read_profiles, shipped_profiles

OWN = b"""\
name: ours
reservedAs: system
memory: {base: 200Mi, perPod: 12Mi, minimum: 1Gi}
cpu: {base: 17m, perPod: 840u}
processIds: 4096
"""


def test_the_names_that_ship() -> None:
    assert list(shipped_profiles()) == [
        "gke",
        "aks",
        "aks-1.29",
        "eks",
        "openshift",
        "openshift-2026",
        "gardener",
        "anthos",
        "karpenter",
    ]


def test_every_shipped_profile_says_where_its_numbers_are_published() -> None:
    assert all(profile.source.startswith("https://") and profile.title for profile in shipped_profiles().values())


def test_a_file_of_ones_own() -> None:
    (profile,) = read_profiles("ours.yaml", OWN).profiles
    reservations = calculate_reservations(profile, NodeSize(millicores=8000, memory_bytes=32 * GIB, max_pods=100))
    assert profile.reserved_as is ReservedAs.SYSTEM
    assert reservations.memory.system == 1400 * MIB
    assert reservations.cpu.system == Fraction(101)


def test_all_mistakes_at_once_with_their_places() -> None:
    text = b"""\
nam: ours
memory:
  base: -5Mi
  brackets: [{upTo: 8Gi, percent: 25}, {upTo: 4Gi, percent: 120}]
  round: {to: 1Gi, direction: sideways}
cpu: 80m
processIds: many
"""
    reading = read_profiles("ours.yaml", text)
    assert not reading.profiles
    rows = [(mistake.field, mistake.line) for mistake in reading.mistakes]
    assert {field for field, _ in rows} >= {
        "nam",
        "name",
        "memory.base",
        "memory.brackets[1].percent",
        "memory.round.direction",
        "cpu",
        "processIds",
    }
    assert ("memory.base", 3) in rows
    assert "did you mean 'name'?" in str(reading.mistakes[0])


def test_brackets_must_ascend_and_the_open_one_is_last() -> None:
    text = b"name: x\ncpu: {}\nmemory: {brackets: [{percent: 5}, {upTo: 4Gi, percent: 1}]}\n"
    (mistake,) = read_profiles("x.yaml", text).mistakes
    assert mistake.field == "memory.brackets[1]"
    assert "ascending order" in mistake.expected


def test_a_file_that_is_no_yaml_and_an_empty_one_are_mistakes() -> None:
    assert read_profiles("x.yaml", b"{a: [").mistakes
    assert read_profiles("x.yaml", b"").mistakes[0].expected == "a profile"
    assert read_profiles("x.yaml", b"- 1\n").mistakes


def test_several_documents_are_several_profiles() -> None:
    reading = read_profiles("x", OWN + b"---\n" + OWN.replace(b"ours", b"theirs"))
    assert [profile.name for profile in reading.profiles] == ["ours", "theirs"]
