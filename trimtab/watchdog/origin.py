"""Where do policies come from: a folder, as the settings name it, or the cluster?"""

from trimtab.admission.running.survey import World
from trimtab.cluster.mistake import Mistake
from trimtab.policy.document import Policies
from trimtab.policy.facts import NOTHING_KNOWN
from trimtab.policy.load import load_policies
from trimtab.runtime import files
from trimtab.runtime.errors import RuntimeFault
from trimtab.watchdog.settings import Settings


class UnsoundPolicies(RuntimeFault):
    """Mistakes in the folder's policies: all of them, together."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


def base(settings: Settings) -> World:
    """The terms, and the folder's policies where there is one. Raises UnreadableFiles or UnsoundPolicies."""
    loaded = load_policies(files.read(settings.policies)) if settings.policies else None
    if loaded is not None and loaded.mistakes:
        raise UnsoundPolicies(loaded.mistakes)
    policies = loaded.policies if loaded is not None else Policies()
    return World(policies=policies, facts=NOTHING_KNOWN, terms=settings.terms)
