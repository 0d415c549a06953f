"""What is known about a machine type, and what is not?"""

import pytest

from trimtab.machines.machine_types import Use, estimate_visible_memory, family_of, machine_types
from trimtab.machines.prices import price_table


def test_facts_of_one_type_of_each_cloud() -> None:
    table = machine_types()
    m5, e8, n2 = table["m5.large"], table["Standard_E8s_v5"], table["n2-standard-8"]
    assert (m5.cloud, m5.arch, m5.cores, m5.memory_mib, m5.max_pods) == ("aws", "amd64", 2, 8192, 29)
    assert (e8.cores, e8.memory_mib, e8.max_volumes) == (8, 65536, 16)
    assert (n2.cores, n2.memory_mib, n2.max_volumes) == (8, 32768, 127)


def test_every_type_with_a_price_has_facts_that_are_possible() -> None:
    table = machine_types()
    assert set(price_table()) <= set(table)
    for kind in table.values():
        assert kind.arch in ("amd64", "arm64"), kind
        assert kind.cores > 0, kind
        # Confidential and metal machines show a little more or less; none shows much more than was sold.
        assert 0.5 * kind.memory_mib < kind.kernel_mib <= 1.01 * kind.memory_mib, kind


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("t3.large", Use.BURSTABLE),
        ("Standard_B4ms", Use.BURSTABLE),
        ("g5.xlarge", Use.ACCELERATED),
        ("Standard_NC6s_v3", Use.ACCELERATED),
        ("hpc7a.96xlarge", Use.HPC),
        ("m7g.large", Use.GENERAL),
    ],
)
def test_types_for_a_special_purpose_are_marked(name: str, use: Use) -> None:
    assert machine_types()[name].use is use


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("m7i.2xlarge", "m7i"),
        ("Standard_E8s_v5", "Es_v5"),
        ("E16ps_v6", "Eps_v6"),
        ("n2-highmem-8", "n2-highmem"),
        ("Standard_E32-8s_v5", "Es_v5"),
        ("Standard_M96bds_1_v3", "Mbds_1_v3"),
        ("own-type", "own-type"),
    ],
)
def test_a_family_is_the_name_without_the_size(name: str, family: str) -> None:
    assert family_of(name) == family


def test_the_arm_types_of_three_clouds() -> None:
    table = machine_types()
    assert {table[name].arch for name in ("m7g.large", "Standard_E8ps_v6", "c4a-standard-8")} == {"arm64"}


def test_visible_memory_is_measured_else_estimated_by_size() -> None:
    table = machine_types()
    assert table["m5.large"].kernel_mib == table["m5.large"].visible_mib
    assert table["Standard_E8s_v5"].kernel_mib == pytest.approx(65536 * (1 - 0.037))
    assert estimate_visible_memory(4096) == pytest.approx(4096 * 0.926)
    assert estimate_visible_memory(1 << 20) == pytest.approx((1 << 20) * 0.968)


@pytest.mark.parametrize(
    ("name", "speed", "score_of"),
    [
        ("m5.large", 1.0, "the type"),
        ("Standard_D8s_v3", 1.0, "the family"),
        ("Standard_D16as_v5", 1.502, "the family"),
        ("n2-standard-8", 1.001, "an estimate"),
        ("c3-standard-8", 1.503, "an estimate"),
        ("m7a.large", 2.387, "the type"),
        ("e2-standard-8", None, "the type"),
        ("Standard_D8ads_v6", None, "the type"),
    ],
)
def test_the_speed_of_a_core_is_known_for_types_of_three_clouds(name: str, speed: float | None, score_of: str) -> None:
    kind = machine_types()[name]
    own = "the family" if kind.is_coremark_alike else "an estimate" if kind.is_coremark_estimated else "the type"
    assert (None if kind.performance is None else round(kind.performance, 3), own) == (speed, score_of)
