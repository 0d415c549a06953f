import pytest

from trimtab.cluster import quantity
from trimtab.cluster.quantity import NANO_PER_UNIT, NotAQuantity


@pytest.mark.parametrize(
    ("written", "units"),
    [
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("1.", 1),
        (".5k", 500),
        ("0", 0),
        ("1k", 10**3),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1.5Gi", 3 << 29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("2.5e3", 2500),
        (7, 7),
        (1.5e3, 1500),
        (" 1 ", 1),
    ],
)
def test_a_quantity_is_what_kubernetes_takes_it_for(written, units):
    assert quantity.parse(written) == units * NANO_PER_UNIT


@pytest.mark.parametrize(
    ("written", "nano"),
    [("1n", 1), ("1u", 10**3), ("1m", 10**6), ("0.5n", 1), ("-0.5n", -1), ("1e-9", 1), ("1e-12", 1), (0.1, 10**8)],
)
def test_the_finest_step_is_a_nano_and_less_is_rounded_away_from_zero(written, nano):
    assert quantity.parse(written) == nano


@pytest.mark.parametrize("written", ["9223372036854775808", "10E", "8Ei", "1e30"])
def test_what_is_too_large_is_capped(written):
    assert quantity.parse(written) == (2**63 - 1) * NANO_PER_UNIT


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "m",
        "1mm",
        "1 Gi",
        "0x10",
        "1_000",
        "1,5",
        "1K",
        "1mi",
        "NaN",
        "inf",
        "--1",
        "1e",
        "1e1000",
        "1g",
        True,
        False,
        float("nan"),
        float("inf"),
        "١",
    ],
)
def test_what_kubernetes_refuses_is_refused(written):
    with pytest.raises(NotAQuantity, match="expected a quantity"):
        quantity.parse(written)


@pytest.mark.parametrize("other", [None, [], {}, b"1"])
def test_what_is_no_text_and_no_number_is_no_quantity(other):
    assert quantity.is_quantity(other) is False


@pytest.mark.parametrize(("written", "milli"), [("250u", 1), ("1001u", 2), ("0.1", 100), ("2", 2000), ("-250u", 0)])
def test_thousandths_are_rounded_up(written, milli):
    assert quantity.to_milli(written) == milli


@pytest.mark.parametrize(
    ("written", "whole"), [("1m", 1), ("1001m", 2), ("128974848", 128974848), ("129e6", 129 * 10**6)]
)
def test_bytes_are_rounded_up(written, whole):
    assert quantity.to_whole_units(written) == whole


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("0.1", "100m"),
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("0.5Gi", "512Mi"),
        ("1000k", "1M"),
        ("100M", "100M"),
        ("1e3", "1e3"),
        ("1000e0", "1e3"),
        ("10e3", "10e3"),
        ("1E3", "1E3"),
        ("0", "0"),
        ("0Mi", "0"),
        ("-1024Mi", "-1Gi"),
        ("512", "512"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        (1, "1"),
        ("0.5", "500m"),
        ("1n", "1n"),
        ("1500u", "1500u"),
        ("+5", "5"),
        ("007", "7"),
    ],
)
def test_the_canonical_form_is_the_servers(written, canonical):
    assert quantity.canonical_form(written) == canonical


@pytest.mark.parametrize(("number", "written"), [(1500, "1500m"), (2000, "2"), (0, "0"), (1, "1m")])
def test_millicores_are_written_as_kubernetes_prints_them(number, written):
    assert quantity.format_cpu(number) == written


@pytest.mark.parametrize(("number", "written"), [(134217728, "128Mi"), (1000, "1000"), (0, "0"), (1 << 60, "1Ei")])
def test_bytes_are_written_with_the_largest_suffix_that_loses_nothing(number, written):
    assert quantity.format_memory(number) == written


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2e0", "2e0"),
        ("1e1", "10"),
        ("10e0", "10e0"),
        ("1e4", "10e3"),
        ("1e3", "1e3"),
        ("1500e-3", "1500e-3"),
        ("2000e-3", "2"),
        ("1E3", "1E3"),
        ("1e-3", "1e-3"),
        ("5e-1", "500e-3"),
        ("0e3", "0"),
        ("1Ei", "1Ei"),
        ("0.5Ei", "512Pi"),
        ("1E", "1E"),
    ],
)
def test_exponents_are_kept_where_the_server_keeps_them(written, stored):
    """Stored by Kubernetes 1.36.3 as cpu and memory requests."""
    assert quantity.canonical_form(written) == stored
