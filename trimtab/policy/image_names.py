"""Compares images as a container runtime reads their names, so that another spelling does not escape a pattern.

containerd normalizes a name before it pulls the image: a short name is one of Docker Hub, and `index.docker.io` is
`docker.io` (github.com/distribution/reference, `ParseDockerRef`, `splitDockerDomain`). Hosts have no upper case in DNS,
443 is the default port of HTTPS, and `registry-1.docker.io` is the host that containerd asks for `docker.io`. What
CRI-O makes of short names, and mirrors, are settings of a node, which cannot be known.

`trimtab.policy.cel` has the same in CEL.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from trimtab.cluster.bounded_cache import cache_short_strings
from trimtab.cluster.image_reference import split_registry
from trimtab.cluster.selectors import name_matcher

DOCKER_HUB = "docker.io"
DOCKER_HUB_ALIASES = ("index.docker.io", "registry-1.docker.io")
# The port of HTTPS; a reference may write it with leading zeros.
DEFAULT_PORT = ":0*443$"


@lru_cache(maxsize=1024)
def image_test(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns a test of images, as they are written or by their canonical names: `docker.io/*` matches `nginx:1.27`
    too, and `ghcr.io/*` matches `GHCR.IO:443/x`."""
    test = name_matcher(canonical_patterns(patterns))
    return lambda image: test(image) or test(canonical_image(image))


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


def canonical_patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    """Returns the patterns with their registries as canonical images have them. A registry with a wildcard, or none,
    stays as it is; a pattern for an official image of Docker Hub also selects it by its whole name."""
    return tuple(spelling for pattern in patterns for spelling in _spellings(pattern))


def _spellings(pattern: str) -> Iterator[str]:
    first, slash, rest = pattern.partition("/")
    if not slash or _WILDCARD.search(first) or not ("." in first or ":" in first or first != first.lower()):
        yield pattern
        return
    registry = canonical_registry(first)
    yield f"{registry}/{rest}"
    if registry == DOCKER_HUB and "/" not in rest:
        yield f"{registry}/library/{rest}"


_DEFAULT_PORT = re.compile(DEFAULT_PORT)
_WILDCARD = re.compile(r"[*?\[\]]")
