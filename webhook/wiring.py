"""Settings in, the service out: where policies, facts and the deciding functions meet the routes."""

from trimtab.runtime.settings import Settings
from webhook.service import Service


def build(settings: Settings) -> Service:
    """The service these settings describe. Called once per process, after the fork."""
    raise NotImplementedError("the deciding functions are wired here")
