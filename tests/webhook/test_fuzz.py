"""What bad input gets: an answer. Thousands of damaged reviews here, a hundred thousand with `make fuzz`."""

import base64
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from tests.build import policy
from tests.webhook.damage import damaged, pod, review
from trimtab.runtime import files
from trimtab.runtime.settings import Settings
from webhook.handlers import Service, answer_review
from webhook.main import build_service
from webhook.request_body import MAX_BODY_BYTES, MUTATE, VALIDATE

LONGER = "FUZZ_LONGER" in os.environ
COUNT = 10_000 if LONGER else 1_000
SEED = int(os.environ.get("FUZZ_SEED", "1"))
SHARES = range(SEED, SEED + (10 if LONGER else 1))
"""Seeds; each is COUNT reviews of pods and a tenth of that of policies, so that several cores can share them."""
SOUND = json.dumps(review("sound", pod())).encode()
EVERYTHING = (
    "{requests: {cpu: {from: policy, otherwise: 10m, when: always}}, limits: {cpu: remove}, labels: {add: {cost: low}},"
    " placement: {require: [{label: pool, in: [batch]}], tolerate: [{key: pool}]},"
    " topologySpread: {constraints: [{topologyKey: zone}]}}"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """The real one, with every policy we ship and one that touches everything."""
    home = tmp_path_factory.mktemp("policies")
    (home / "everything.yaml").write_text(policy(EVERYTHING, name="everything"))
    shipped = Path(files.__file__).parents[2] / "policies"
    values = (home, shipped / "library", shipped / "recommended")
    return build_service(Settings(policies=values, log_level="error"))


@pytest.fixture
def told() -> list[str]:
    return []


def as_go_reads(body: bytes) -> Any:
    """What is no UTF-8 becomes a replacement character, and of two equal keys the last counts."""
    return json.loads(body.decode(errors="replace"))


def uid_of(body: bytes) -> object:
    """What a caller would wait for; None where the body is no review."""
    try:
        uid = as_go_reads(body)["request"]["uid"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return uid if uid and isinstance(uid, str) else None


def checked(service: Service, path: str, body: bytes) -> dict[str, Any] | None:
    """The response in the answer; None where the body was refused. Asserts everything an answer promises."""
    whole = body if len(body) <= MAX_BODY_BYTES else None
    reply = answer_review(service, path, "application/json", whole)
    assert b"Traceback" not in reply.body
    document = json.loads(reply.body)
    assert (reply.status == 413) is (whole is None)
    if reply.status != 200:
        assert reply.status in (400, 413)
        assert document["error"]
        return None
    response: dict[str, Any] = document["response"]
    assert response["uid"]
    assert uid_of(body) in (None, response["uid"])
    return response


@pytest.mark.parametrize("seed", SHARES)
def test_no_damaged_review_blocks_a_pod_or_shows_a_traceback(service: Service, told: list[str], seed: int) -> None:
    watched = replace(service, failed=lambda path, error: told.append(repr(error)))
    before = checked(watched, MUTATE, SOUND)
    refused = patched = 0
    for body in damaged(COUNT, seed):
        response = checked(watched, MUTATE, body)
        if response is None:
            refused += 1
            continue
        assert response["allowed"], body[:2000]
        if "patch" in response:
            patched += 1
            operations = json.loads(base64.b64decode(response["patch"]))
            jsonpatch.apply_patch(as_go_reads(body)["request"]["object"], operations, in_place=True)
    assert not told
    assert COUNT * 0.05 < refused < COUNT * 0.6
    assert patched > COUNT * 0.05
    assert checked(watched, MUTATE, SOUND) == before


@pytest.mark.parametrize("seed", SHARES)
def test_no_damaged_review_of_a_policy_shows_a_traceback(service: Service, told: list[str], seed: int) -> None:
    watched = replace(service, failed=lambda path, error: told.append(repr(error)))
    for body in damaged(COUNT // 10, -seed):
        as_policy = body.replace(b'"resource": "pods"', b'"resource": "podpolicies"').replace(
            b'"resource": {"group": ""', b'"resource": {"group": "trimtab.dev"', 1
        )
        checked(watched, VALIDATE, as_policy)
    assert not told


def test_a_pod_of_a_thousand_containers_does_not_hold_up_the_others(service: Service) -> None:
    manifest = pod()
    first = manifest["spec"]["containers"][0]
    manifest["spec"]["containers"] = [{**first, "name": f"c{number}"} for number in range(1000)]
    began = time.process_time()
    response = checked(service, MUTATE, json.dumps(review("u-1", manifest)).encode())
    assert response is not None
    assert time.process_time() - began < 1.0  # a twentieth of it is usual; it was quadratic once
