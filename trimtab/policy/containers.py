"""Which of a pod's containers does a rule mean?"""

from functools import lru_cache

from trimtab.cluster.selectors import glob
from trimtab.policy.subject import Place


def means(names: tuple[str, ...], roles: tuple[str, ...], images: tuple[str, ...], place: Place) -> bool:
    """Do these patterns mean this container? A list that is empty means all."""
    return (
        (not names or glob(names)(place.container.name))
        and (not roles or place.role in roles)
        and (not images or is_image(images, place.container.image))
    )


def is_image(patterns: tuple[str, ...], image: str) -> bool:
    """As written or by its full name: `docker.io/*` means `nginx:1.27`, too."""
    test = glob(patterns)
    return test(image) or test(full_name(image))


@lru_cache(maxsize=4096)
def full_name(image: str) -> str:
    """With the registry that a short name leaves out (distribution/reference `splitDockerDomain`)."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"
