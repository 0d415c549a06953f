"""Whether a user may do all that an order needs: the login of `trimtab drain`, or the author of a DrainOrder.

A right that is missing in the middle of an order would leave it half done, and a list that may not be read is not an
empty list. So an order begins only with all rights. Both are asked the same questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from trimtab.compaction.surge.find_surge import Surge
from trimtab.compactor.cluster_reader import WATCHED_KINDS
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse, KubeFault
from trimtab.kube.objects import decode_as
from trimtab.kube.resources import list_sources

_REVIEWS = "/apis/authorization.k8s.io/v1"
_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class _ReviewStatus(msgspec.Struct, rename="camel"):
    allowed: bool = False
    evaluation_error: str = ""

    @property
    def is_undecided(self) -> bool:
        """Whether an authorizer failed, and none has allowed it: that is no denial."""
        return not self.allowed and bool(self.evaluation_error)


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


class _User(msgspec.Struct):
    username: str = ""
    groups: tuple[str, ...] = ()


class _SelfStatus(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _SelfReview(msgspec.Struct):
    status: _SelfStatus = msgspec.field(default_factory=_SelfStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRight:
    """One permission, in the words of RBAC. Empty fields do not restrict it."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        resource = f"{resource}.{self.group}" if self.group else resource
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}{where}"


class AccessReviewer(Protocol):
    """Asks the API server what one user may do."""

    def is_allowed(self, right: OrderRight) -> bool:
        """Returns whether the user has this permission. Raises KubeFault if the API server does not say."""


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """What the login of the client may do."""

    client: Client

    def is_allowed(self, right: OrderRight) -> bool:
        review = _ask(self.client, right, "SelfSubjectAccessReview", {}, "the login")
        if review.is_undecided:
            raise InvalidResponse(f"ask whether the login may {right}: {review.evaluation_error}")
        return review.allowed


MAX_REVIEWS = 1000
"""How many reviews are asked in one round. Each takes the API server some milliseconds."""
UNDECIDED_SECONDS = 600.0
"""A denial with an error of the evaluation counts as a denial after this many seconds: an authorizer that does not
answer is repaired sooner, and a binding to a role that does not exist stays."""
_Question = tuple[str, tuple[str, ...], OrderRight]


@dataclass(slots=True)
class AuthorReviews:
    """Asks what the authors of orders may do. In one round, the same is asked once."""

    client: Client
    elapsed: Callable[[], float]
    """Returns the monotonic time in seconds."""
    _answers: dict[_Question, bool] = field(default_factory=dict)
    _undecided: dict[_Question, tuple[float, float]] = field(default_factory=dict)
    """Question → the first and the last of the times in a row at which the API server has not decided it."""

    def begin_round(self) -> None:
        """Forgets the answers of the round before, and what was not decided and is not asked any more."""
        self._answers.clear()
        now = self.elapsed()
        self._undecided = {one: times for one, times in self._undecided.items() if now - times[1] < UNDECIDED_SECONDS}

    def access_of(self, user: str, groups: Iterable[str]) -> UserAccess:
        """Returns what this user may do, with these groups and no others."""
        return UserAccess(self, user, tuple(groups))

    def is_allowed(self, question: _Question) -> bool:
        """Returns the answer. Raises KubeFault if the API server does not say, or if too much was asked in this
        round."""
        if (answer := self._answers.get(question)) is not None:
            return answer
        user, groups, right = question
        if len(self._answers) >= MAX_REVIEWS:
            raise KubeFault(f"ask whether {user} may {right}: more than {MAX_REVIEWS} reviews in one round")
        review = _ask(self.client, right, "SubjectAccessReview", {"user": user, "groups": list(groups)}, "the author")
        if review.is_undecided:
            now = self.elapsed()
            first = self._undecided.get(question, (now, now))[0]
            self._undecided[question] = first, now
            if now - first < UNDECIDED_SECONDS:
                raise InvalidResponse(f"ask whether {user} may {right}: {review.evaluation_error}")
        else:
            self._undecided.pop(question, None)
        self._answers[question] = review.allowed
        return review.allowed


@dataclass(frozen=True, slots=True)
class UserAccess:
    """What another user may do, with these groups and no others."""

    reviews: AuthorReviews
    user: str
    groups: tuple[str, ...]

    def is_allowed(self, right: OrderRight) -> bool:
        return self.reviews.is_allowed((self.user, self.groups, right))


READ_RIGHTS: tuple[OrderRight, ...] = (
    OrderRight(verb="get", resource="nodes"),
    OrderRight(verb="get", resource="pods"),
    *(
        OrderRight(verb=verb, resource=source.plural, group=source.group_version.rpartition("/")[0])
        for source in list_sources(WATCHED_KINDS)
        for verb in ("list", "watch")
    ),
)
"""What an order reads."""
SIGHT_RIGHTS = tuple(OrderRight(verb="list", resource=resource) for resource in ("nodes", "pods"))
"""What an author may do who may learn the names of nodes and namespaces from the reasons of an order."""
CORDON = OrderRight(verb="patch", resource="nodes")
EVICT = OrderRight(verb="create", resource="pods", subresource="eviction")


def list_missing_writes(access: AccessReviewer, nodes: Iterable[str], namespaces: Iterable[str]) -> Iterator[str]:
    """Yields the permissions to write that an order needs and the user lacks, such as "patch nodes n1".

    nodes: the nodes to cordon. namespaces: those of the pods to evict. Each is asked by name: an authorizer may deny
    for one name what it permits in general. Raises KubeFault."""
    for name in sorted(set(nodes)):
        right = OrderRight(verb="patch", resource="nodes", name=name)
        if not access.is_allowed(right):
            yield str(right)
    for namespace in sorted(set(namespaces)):
        right = OrderRight(verb="create", resource="pods", subresource="eviction", namespace=namespace)
        if not access.is_allowed(right):
            yield str(right)


def list_missing_reads(access: AccessReviewer) -> Iterator[str]:
    """Yields the permissions to read that an order needs and the user lacks. Raises KubeFault."""
    yield from (str(right) for right in READ_RIGHTS if not access.is_allowed(right))


def list_missing_sight(access: AccessReviewer) -> Iterator[str]:
    """Yields the permissions to list nodes and pods that the user lacks. Raises KubeFault."""
    yield from (str(right) for right in SIGHT_RIGHTS if not access.is_allowed(right))


def list_missing_surges(access: AccessReviewer, surges: Iterable[Surge]) -> Iterator[str]:
    """Yields the permissions to give Deployments more pods, and to set them back, that an order needs and the user
    lacks. Raises KubeFault."""
    for surge in surges:
        namespace, name = surge.deployment.namespace, surge.deployment.name
        counted = OrderRight(verb="", resource="deployments", group="apps", namespace=namespace, name=name)
        if surge.autoscaler:
            own = surge.autoscaler.partition("/")[2]
            counted = replace(counted, resource="horizontalpodautoscalers", group="autoscaling", name=own)
        scale = counted if surge.autoscaler else replace(counted, subresource="scale")
        # The object itself says who set its count (`owns_count`).
        rights = dict.fromkeys([replace(counted, verb="get"), replace(scale, verb="get"), replace(scale, verb="patch")])
        yield from (str(right) for right in rights if not access.is_allowed(right))


def list_missing_rights(client: Client, namespaces: Iterable[str], surges: Iterable[Surge] = ()) -> list[str]:
    """Returns the rights that an order needs and the login lacks, such as "patch nodes"; an empty list if it has all.

    namespaces: those of the pods to evict. surges: the Deployments that get more pods for a while. Raises KubeFault."""
    access = OwnAccess(client)
    # Most users have both permissions everywhere, which one review each says.
    missing = [] if access.is_allowed(CORDON) else [str(CORDON)]
    if not access.is_allowed(EVICT):
        missing += list_missing_writes(access, (), namespaces)
    return [*missing, *list_missing_surges(access, surges), *list_missing_reads(access)]


def may_evict(client: Client, namespace: str, name: str) -> bool:
    """Returns whether the login may evict this pod. Raises KubeFault."""
    right = OrderRight(verb="create", resource="pods", subresource="eviction", namespace=namespace, name=name)
    return OwnAccess(client).is_allowed(right)


def _ask(client: Client, right: OrderRight, kind: str, subject: dict[str, Any], whom: str) -> _ReviewStatus:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": kind,
        "spec": {**subject, "resourceAttributes": msgspec.to_builtins(right)},
    }
    doing = f"ask whether {whom} may {right}"
    path = f"{_REVIEWS}/{kind.lower()}s"
    review: _Review = decode_as(client.write("POST", path, body, doing=doing), _Review, doing)
    return review.status


@dataclass(frozen=True, slots=True)
class UserIdentity:
    """A user as the API server knows them."""

    name: str = ""
    groups: tuple[str, ...] = ()


def read_own_identity(client: Client) -> UserIdentity:
    """Returns who the login is; an empty name if the API server does not say."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    doing = "read the name of the login"
    try:
        review: _SelfReview = decode_as(client.write("POST", _SELF, body, doing=doing), _SelfReview, doing)
    except KubeFault:
        return UserIdentity()
    return UserIdentity(review.status.user_info.username, review.status.user_info.groups)
