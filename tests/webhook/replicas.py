"""A Secret and two configurations in memory, with versions, and replicas whose every look and write is a turn."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import certs
from trimtab.kube import certificate_rotation
from trimtab.kube.certificate_rotation import CertificateRotator
from trimtab.kube.errors import ApiStatus, Conflict
from trimtab.runtime import log
from webhook import cert_manager

NAMES = ("trimtab-webhook.trimtab-system.svc",)
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


def configuration(kind: str, **annotations: str) -> dict[str, Any]:
    hook = {"name": "pods.trimtab.dev", "clientConfig": {"service": {"name": "trimtab-webhook"}}, "timeoutSeconds": 3}
    return {"kind": kind, "metadata": {"name": "trimtab", "annotations": annotations}, "webhooks": [hook]}


@dataclass(slots=True)
class World:
    """What the API server holds, and the time."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    now: datetime = BEGIN
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for kind in cert_manager.CONFIGURATIONS:
            self.set(configuration(kind))
        self.set({"kind": "Secret", "metadata": {"name": "trimtab-webhook-tls"}})

    def set(self, document: dict[str, Any]) -> None:
        """As somebody without scruples writes."""
        before = self.objects.get(document["kind"], {"metadata": {"resourceVersion": "0"}})
        version = str(int(before["metadata"]["resourceVersion"]) + 1)
        self.objects[document["kind"]] = {
            **deepcopy(document),
            "metadata": {**document["metadata"], "resourceVersion": version},
        }

    def get_object(self, kind: str) -> dict[str, Any] | None:
        return deepcopy(self.objects.get(kind))

    def put_object(self, document: dict[str, Any]) -> None:
        resource_version = self.objects[document["kind"]]["metadata"]["resourceVersion"]
        if document["metadata"]["resourceVersion"] != resource_version:
            raise Conflict("store", 409, ApiStatus(code=409, reason="Conflict"))
        self.set(document)
        self.written.append(document["kind"])

    @property
    def store(self) -> certs.CertificateFiles:
        files = certificate_rotation.files_in_secret(self.objects["Secret"])
        assert files is not None
        return files

    @property
    def places(self) -> list[bytes]:
        return [
            bundle
            for kind in cert_manager.CONFIGURATIONS
            for bundle in certificate_rotation.ca_bundles(self.objects[kind])
        ]

    def rotate(self, *, authority: bool) -> None:
        """As a person does with `trimtab certs rotate`."""
        store = self.store
        new = certs.next_pair(store, now=self.now) if authority else certs.reissued_pair(store, NAMES, now=self.now)
        self.set(certificate_rotation.with_files(self.objects["Secret"], new))

    def pass_(self, days: float) -> None:
        self.now += timedelta(days=days)


class Replica:
    """A keeper whose looks and writes are turns: somebody else's may come in between."""

    def __init__(self, world: World, folder: Path, looks: int = 0) -> None:
        self.world, self.folder = world, folder
        self.keeper = CertificateRotator(
            world,
            folder,
            NAMES,
            log.build_logger("error"),
            lambda: world.now,
            looks=looks,
            kinds=cert_manager.CONFIGURATIONS,
        )
        self._turns = self._endless()

    def turn(self) -> None:
        next(self._turns)

    def steps(self, count: int = 12) -> None:
        for _ in range(count):
            self.keeper.run_step()

    def _endless(self) -> Iterator[None]:
        while True:
            places = self.keeper.managed_configurations()
            yield
            look = self.keeper.read_secret(places)
            yield
            self.keeper.carry_out_step(look)
            yield

    @property
    def trusted(self) -> bool:
        """Would a caller trust what we serve (nothing, or a pair that is over, is nobody's trouble)?"""
        serving = self.keeper.read_serving_files() if self.folder.exists() else None
        return serving is None or certs.may_serve(replace(serving, authority_key=None), self.world.places)
