"""Compares images as a container runtime reads their names, so that another spelling does not escape a pattern.

containerd normalizes a name before it pulls the image: a short name is one of Docker Hub, and `index.docker.io` is
`docker.io` (github.com/distribution/reference, `ParseDockerRef`, `splitDockerDomain`). Hosts have no upper case in DNS,
443 is the default port of HTTPS, and `registry-1.docker.io` is the host that containerd asks for `docker.io`. What
CRI-O makes of short names, and mirrors, are settings of a node, which cannot be known.

A wildcard in the first part of a pattern, which is the registry or a namespace of Docker Hub, does not match a slash:
the registry says who owns an image, and everyone can choose what follows it.

`trimtab.policy.cel` has the same in CEL.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from trimtab.cluster.bounded_cache import cache_short_strings
from trimtab.cluster.image_reference import split_registry
from trimtab.cluster.selectors import name_matcher
from trimtab.policy.shell_regex import character_classes, shell_regex

DOCKER_HUB = "docker.io"
DOCKER_HUB_ALIASES = ("index.docker.io", "registry-1.docker.io")
# The port of HTTPS; a reference may write it with leading zeros.
DEFAULT_PORT = ":0*443$"


@dataclass(frozen=True, slots=True)
class CanonicalPattern:
    """A shell pattern for canonical names, in two parts."""

    owner: str
    """The registry with its slash, and perhaps a namespace with its slash. A wildcard matches no slash."""
    rest: str
    """What follows. A wildcard matches every character."""

    @property
    def has_plain_owner(self) -> bool:
        return not _WILDCARD.search(self.owner)

    @property
    def regex(self) -> str:
        return shell_regex(self.owner, crosses_slash=False) + shell_regex(self.rest)


@lru_cache(maxsize=1024)
def image_test(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns a test of images by their canonical names: `docker.io/*` matches `nginx:1.27` too, and `ghcr.io/*`
    matches `GHCR.IO:443/x`."""
    every = canonical_patterns(patterns)
    # Most patterns need no regular expression.
    test_plain = name_matcher(tuple(item.owner + item.rest for item in every if item.has_plain_owner))
    others = tuple(item.regex for item in every if not item.has_plain_owner)
    if not others:
        return lambda image: test_plain(canonical_image(image))
    matches = re.compile(f"(?s:{'|'.join(others)})").fullmatch

    def is_match(image: str) -> bool:
        name = canonical_image(image)
        return test_plain(name) or matches(name) is not None

    return is_match


def image_regex(patterns: Iterable[str]) -> str:
    """Returns a regular expression, for RE2 and Python, of the canonical names that the patterns select."""
    return f"^(?s:{'|'.join(item.regex for item in canonical_patterns(patterns))})$"


# Registries take no longer names.
@cache_short_strings(max_length=512, max_entries=4096)
def canonical_image(image: str) -> str:
    """Returns the image with its registry, in the one spelling that is compared."""
    first, rest = split_registry(image)
    registry = canonical_registry(first) if first else DOCKER_HUB
    is_official = registry == DOCKER_HUB and "/" not in rest
    return f"{registry}/library/{rest}" if is_official else f"{registry}/{rest}"


def canonical_registry(registry: str) -> str:
    """Returns the registry in lower case, without the default port, and Docker Hub by its usual name."""
    name = _DEFAULT_PORT.sub("", registry.lower())
    return DOCKER_HUB if name in DOCKER_HUB_ALIASES else name


def canonical_patterns(patterns: Iterable[str]) -> tuple[CanonicalPattern, ...]:
    """Returns the patterns for canonical names: with a registry, in lower case and without the default port."""
    return tuple(dict.fromkeys(item for pattern in patterns for item in _spellings(pattern)))


def _spellings(pattern: str) -> Iterator[CanonicalPattern]:
    first, slash, rest = pattern.partition("/")
    if not slash:
        # `*:latest` names no registry, so it means every image; `nginx*` means the official images of Docker Hub.
        yield CanonicalPattern("", pattern) if pattern.startswith("*") else CanonicalPattern(_OFFICIAL, pattern)
        return
    is_wildcard = _WILDCARD.search(first) is not None
    if not is_wildcard and not split_registry(pattern)[0]:
        yield CanonicalPattern(f"{DOCKER_HUB}/{first}/", rest)
        return
    # The pattern of a registry in lower case; it stays as it is if a range of characters, such as `[Z-a]`, would end
    # before it begins.
    lower = first.lower()
    has_empty_range = any(
        dash == "-" and low > high
        for inner in character_classes(lower)
        for low, dash, high in zip(inner, inner[1:], inner[2:], strict=False)
    )
    registry = canonical_registry(first if has_empty_range else lower)
    yield CanonicalPattern(f"{registry}/", rest)
    if is_wildcard and not set(".:") & set(first) and first == first.lower():
        yield CanonicalPattern(f"{DOCKER_HUB}/{first}/", rest)
    # `docker.io/nginx` is `docker.io/library/nginx`.
    if "/" not in rest and re.fullmatch(shell_regex(registry, crosses_slash=False), DOCKER_HUB):
        yield CanonicalPattern(_OFFICIAL, rest)


def fixes_registry(pattern: str) -> bool:
    """Returns whether the pattern selects images only of registries, or namespaces of Docker Hub, that it fixes: by
    their whole name, or by at least the last two parts of a domain (`*.example.com/*`). All others may belong to the
    author of a pod."""
    if not pattern.startswith("*") and "/" not in pattern:
        return True
    host = pattern.partition("/")[0].partition(":")[0]
    if not _WILDCARD.search(host):
        return bool(host)
    fixed = _UP_TO_LAST_WILDCARD.sub("", host).partition(".")[2]
    return all(fixed.partition(".")[::2])


_DEFAULT_PORT = re.compile(DEFAULT_PORT)
_OFFICIAL = f"{DOCKER_HUB}/library/"
_WILDCARD = re.compile(r"[*?\[]")
_UP_TO_LAST_WILDCARD = re.compile(r".*[*?\[\]]", re.DOTALL)
