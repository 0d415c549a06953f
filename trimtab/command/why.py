"""A reason as reports tell it: a stable code, a sentence, a page."""

import msgspec

from trimtab.cluster.reason import Reason


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a report: camelCase, every field always there."""


class Why(Part, frozen=True, kw_only=True):
    """A reason: a stable code, a sentence, a page."""

    code: str
    text: str
    page: str


def why(reason: Reason) -> Why:
    return Why(code=reason.code.name, text=reason.sentence, page=reason.page)
