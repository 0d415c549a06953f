"""Which of a pod's containers does a rule mean?"""

from trimtab.cluster.selectors import glob
from trimtab.policy.subject import Place


def means(names: tuple[str, ...], roles: tuple[str, ...], images: tuple[str, ...], place: Place) -> bool:
    """Do these patterns mean this container? A list that is empty means all."""
    return (
        (not names or glob(names)(place.container.name))
        and (not roles or place.role in roles)
        and (not images or glob(images)(place.container.image))
    )
