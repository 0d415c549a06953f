"""The pair that the webhook's replicas share in a cluster: looked at and rotated from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

import certs
from trimtab.cluster.mistake import Mistake
from trimtab.command import live
from trimtab.command.install.names import CONFIGURATION, SECRET, WEBHOOK
from trimtab.command.install.values import Values
from trimtab.command.main import Failed, Wrong
from trimtab.runtime import clock

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.whole import Whole

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which cluster, and where in it."""

    namespace: str
    asked: live.Asked

    @property
    def secret(self) -> str:
        return f"Secret {self.namespace}/{SECRET}"


def options(function: F) -> F:
    """`--namespace` and the login, given to the verb as one `where`."""

    @wraps(function)
    def verb(*, namespace: str, kubeconfig: str | None, context: str | None, **more: Any) -> Any:
        return function(where=Where(namespace=namespace, asked=live.Asked((), kubeconfig, context)), **more)

    own = click.option("--namespace", default=Values().namespace, show_default=True, help="Where we are installed.")
    return own(live.login(verb))  # type: ignore[return-value]


def status(where: Where) -> certs.Status:
    """The Secret's pair, and whether each webhook configuration trusts it."""
    from webhook import shared

    with _client(where) as client:
        places = {kind: _get(client, kind, CONFIGURATION) for kind in shared.CONFIGURATIONS}
        folder = shared.folder_of(_get(client, "Secret", SECRET, where.namespace) or {})
    if folder is None:
        return certs.Status(folder=where.secret, problems=(certs.Problem("missing", f"{where.secret} holds no pair"),))
    found = certs.judged(where.secret, folder, clock.utc())
    return replace(found, problems=(*found.problems, *_untrusting(folder, places)))


def _untrusting(folder: certs.Folder, places: dict[str, Whole | None]) -> Iterator[certs.Problem]:
    from webhook import shared

    for kind, place in places.items():
        if place is None:
            yield certs.Problem("not-called", f"there is no {kind} {CONFIGURATION}: API servers do not call us")
        elif not certs.may_serve(folder, shared.bundles(place)):
            yield certs.Problem("not-trusted", f"the caBundle of {kind} {CONFIGURATION} does not know this pair")


def rotate(where: Where, *, authority: bool, forget: bool) -> str:
    """What was done, in words. Raises Wrong where the pair is not ours to rotate, Failed where the cluster refused."""
    from trimtab.kube import whole
    from trimtab.kube.writer import Writer
    from webhook import shared

    with _client(where) as client:
        secret = _get(client, "Secret", SECRET, where.namespace)
        folder = shared.folder_of(secret or {})
        if secret is None or folder is None or folder.authority_key is None:
            came = "none" if folder is None else "one of another issuer"
            raise Wrong([Mistake(file=where.secret, expected="a pair that the replicas issue", came=came)])
        new, said = _rotated(where, folder, authority=authority, forget=forget)
        whole.put(Writer(client=client), shared.filled(secret, new))
    return f"{where.secret}: {said}"


def _rotated(where: Where, folder: certs.Folder, *, authority: bool, forget: bool) -> tuple[certs.Folder, str]:
    from webhook.keeping import called

    now = clock.utc()
    if forget:
        found = certs.alone(folder)
        if not certs.usable(found, now):
            came = "a pair that an older authority signed"
            raise Wrong([Mistake(file=where.secret, expected="a pair by the newest authority", came=came)])
        return found, "older authorities are forgotten"
    if authority:
        return certs.successor(folder, now=now), "a new authority; it signs when both configurations know it"
    return certs.signed_anew(folder, called(WEBHOOK, where.namespace), now=now), "a new pair"


def _get(client: Client, kind: str, name: str, namespace: str = "") -> Whole | None:
    from trimtab.kube import whole

    return whole.get(client, kind, name, namespace)


@contextmanager
def _client(where: Where) -> Iterator[Client]:
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect(where.asked.kubeconfig, where.asked.context)
        try:
            yield client
        finally:
            client.close()
    except NotConfigured as error:
        file = where.asked.kubeconfig or "kubeconfig"
        raise Wrong([Mistake(file=file, expected="a cluster", came=str(error))]) from None
    except KubeFault as error:
        raise Failed(str(error)) from None
    except certs.CertsError as error:
        raise Failed(f"{where.secret}: {error}") from None
