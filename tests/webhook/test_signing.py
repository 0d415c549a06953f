"""The webhook's keys: read again and again, and nothing stops where they are not there."""

import io
from datetime import UTC, datetime, timedelta

from trimtab.cluster.signature import SigningKeys
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.runtime import log
from webhook.signing import MarkerKeys

FIRST, SECOND = SigningKeys(b"1" * 32), SigningKeys(b"2" * 32, b"1" * 32)


class Secret:
    """What is read, call by call; an exception is raised."""

    def __init__(self, *result):
        self.found = list(result)

    def __call__(self):
        result = self.found.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


class Time:
    def __init__(self):
        self.now = datetime(2026, 11, 22, tzinfo=UTC)

    def __call__(self):
        return self.now


def keys_of(*result):
    out = io.StringIO()
    return MarkerKeys(Secret(*result), log.build_logger(stream=out), Time()), out


def test_before_they_are_read_nothing_is_signed():
    keys, _ = keys_of(RuntimeError("no such Secret"))
    assert keys.refresh_keys() is False
    assert keys.with_signer(AdmissionSettings()).signer.keys is None


def test_a_rotation_reaches_the_replica():
    keys, _ = keys_of(FIRST, SECOND)
    rows = [(keys.refresh_keys(), keys.with_signer(AdmissionSettings()).signer.keys) for _ in range(2)]
    assert rows == [(True, FIRST), (True, SECOND)]


def test_what_was_read_stays_while_it_cannot_be_read_again_and_that_is_told_once():
    keys, out = keys_of(FIRST, RuntimeError("gone"), RuntimeError("gone"))
    for _ in range(3):
        keys.refresh_keys()
    assert keys.with_signer(AdmissionSettings()).signer.keys == FIRST
    assert out.getvalue().count("signing keys cannot be") == 1


def test_no_line_of_the_log_holds_a_key():
    keys, out = keys_of(FIRST)
    keys.refresh_keys()
    assert "1111" not in out.getvalue()


def test_the_terms_are_the_same_object_until_the_slot_ends():
    keys, _ = keys_of(FIRST)
    time: Time = keys._now  # type: ignore[assignment]
    settings = AdmissionSettings()
    first = keys.with_signer(settings)
    time.now += timedelta(seconds=9)
    within = keys.with_signer(settings)
    time.now += timedelta(seconds=1)
    assert (within is first, keys.with_signer(settings) is first) == (True, False)


def test_other_terms_are_taken_at_once():
    keys, _ = keys_of(FIRST)
    keys.with_signer(AdmissionSettings())
    assert keys.with_signer(AdmissionSettings(paused=True)).paused


def test_the_thread_ends_with_the_process():
    keys, _ = keys_of(RuntimeError("not yet"), FIRST)
    waits = []
    thread = keys.start_refresh(lambda seconds: waits.append(seconds) or len(waits) == 2)
    thread.join(5.0)
    assert (waits, keys.with_signer(AdmissionSettings()).signer.keys) == ([2.0, 60.0], FIRST)
