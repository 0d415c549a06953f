"""The status of a policy fits the schema in its CustomResourceDefinition."""

from trimtab.cluster.api.meta import Dated, ManagedFields
from trimtab.policy.status import PolicyStatus, StatusCondition, decode_status, encode_status, status_schema


def test_what_is_written_is_read_again() -> None:
    on = StatusCondition(type="HarmBrake", status="True", reason="OomKilled", message="m", last_transition_time="t")
    status = PolicyStatus(matched=3, conditions=(on,))
    assert decode_status(encode_status(status)) == status
    assert decode_status(encode_status(status)).find_condition("HarmBrake") == on


def test_what_somebody_else_wrote_is_an_empty_one() -> None:
    assert decode_status({"matched": "many"}) == decode_status(None) == PolicyStatus()


def test_every_field_is_in_the_schema() -> None:
    assert set(status_schema()["properties"]) == set(encode_status(PolicyStatus())) | {"harm"}


def test_an_object_was_written_when_its_spec_was_last_written() -> None:
    def entry(time: str, *fields: str, sub: str = "") -> ManagedFields:
        return ManagedFields(time=time, subresource=sub, fields={f"f:{name}": {} for name in fields})

    result = Dated(
        creation_timestamp="2026-01-01T00:00:00Z",
        managed_fields=(
            entry("2026-03-01T00:00:00Z", "spec"),
            entry("2026-04-01T00:00:00Z", "metadata"),
            entry("2026-05-01T00:00:00Z", "status", "spec", sub="status"),
        ),
    )
    assert result.last_written_at("spec") == "2026-03-01T00:00:00Z"
    assert Dated(creation_timestamp="2026-01-01T00:00:00Z").last_written_at("spec") == "2026-01-01T00:00:00Z"
    assert Dated().last_written_at("spec") is None
