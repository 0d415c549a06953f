"""Reservations: where each part stands, disks, shared cores, and machines that lose memory before the kubelet."""

from dataclasses import replace
from fractions import Fraction

from trimtab.reservations.formula import NodeSize, calculate_reservations, compare_profiles, withheld_price_share
from trimtab.reservations.kernel import gce_kernel_bytes, typical_kernel_bytes
from trimtab.reservations.profile import GIB, MIB, TermKind
from trimtab.reservations.read_profile import shipped_profiles

SIZE = NodeSize(millicores=8000, memory_bytes=32 * GIB, boot_disk_bytes=100 * GIB)


def of(profile: str, size: NodeSize = SIZE):  # type: ignore[no-untyped-def]
    return calculate_reservations(shipped_profiles()[profile], size)


def test_openshift_reserves_for_the_system_and_others_for_the_kubelet() -> None:
    assert of("openshift-2026").memory.system == 2 * GIB
    assert of("openshift-2026").memory.kube == 0
    assert of("gardener").memory.kube == GIB


def test_allocatable_is_what_neither_reservation_nor_threshold_takes() -> None:
    memory = of("gardener").memory
    assert memory.allocatable == 31 * GIB - 100 * MIB
    assert of("gardener").allocatable_millicores == 7920


def test_a_boot_disk_gives_the_smallest_of_half_a_third_and_a_hundred_gibibytes() -> None:
    amounts = {gib: of("gke", replace(SIZE, boot_disk_bytes=gib * GIB)).disk.kube / GIB for gib in (20, 100, 1000)}
    assert amounts == {20: 10, 100: 41, 1000: 100}


def test_local_disks_have_amounts_of_their_own() -> None:
    assert [of("gke", replace(SIZE, local_disks=count)).disk.kube / GIB for count in (1, 2, 3, 8)] == [50, 75, 100, 100]


def test_a_disk_that_is_not_known_has_no_reservation_rather_than_none_of_it() -> None:
    assert of("eks", replace(SIZE, boot_disk_bytes=None)).disk is None
    assert of("anthos").disk is None
    assert of("eks").disk.kube == GIB


def test_a_machine_that_shares_its_cores_keeps_little() -> None:
    shared = of("gke", replace(SIZE, millicores=2000, is_shared_core=True))
    assert shared.cpu.kube == 1060
    assert shared.allocatable_millicores == 940


def test_memory_that_the_kernel_takes_is_apart_and_counts_for_a_formula_of_installed_memory() -> None:
    lossy = replace(SIZE, lost_bytes=2 * GIB)
    assert of("gke", lossy).memory.kube == of("gke").memory.kube
    assert of("gke", lossy).memory.allocatable == of("gke").memory.allocatable - 2 * GIB
    # OpenShift reads the kernel's own number.
    assert of("openshift-2026", lossy).memory.terms[1].high == 30 * GIB


def test_more_than_the_machine_is_never_withheld() -> None:
    tiny = of("gardener", NodeSize(millicores=50, memory_bytes=512 * MIB))
    assert (tiny.allocatable_millicores, tiny.allocatable_memory_bytes, tiny.fits_machine) == (0, 0, False)


def test_a_cap_is_a_term_of_its_own() -> None:
    terms = of("aks-1.29", NodeSize(millicores=4000, memory_bytes=4 * 10**9, max_pods=70)).memory.terms
    assert [(term.kind, term.amount) for term in terms] == [
        (TermKind.BASE, 50_000_000),
        (TermKind.PER_POD, 1_400_000_000),
        (TermKind.MAX_SHARE, -450_000_000),
    ]


def test_profiles_side_by_side_keep_their_order() -> None:
    names = [reservations.profile.name for reservations in compare_profiles(shipped_profiles().values(), SIZE)]
    assert names == list(shipped_profiles())


def test_the_share_of_the_price_weighs_cpu_and_memory() -> None:
    half = withheld_price_share(of("gardener"), Fraction(1, 2))
    assert half == Fraction(80, 8000) / 2 + Fraction(1024 + 100, 32 * 1024) / 2


def test_process_ids_are_told_where_a_vendor_reserves_them() -> None:
    assert of("gardener").process_ids == 20000
    assert of("eks").process_ids is None


def test_the_kernel_takes_a_larger_share_of_a_small_machine() -> None:
    shares = [Fraction(typical_kernel_bytes(gib * GIB), gib * GIB) for gib in (4, 8, 16, 64, 256)]
    assert shares == sorted(shares, reverse=True)
    assert gce_kernel_bytes(8 * GIB, is_ubuntu=True) - gce_kernel_bytes(8 * GIB) == 4 * MIB
    assert gce_kernel_bytes(8 * GIB, is_arm_cos=True) < gce_kernel_bytes(8 * GIB)
