"""Errors that reading usage raises.

UsageFault               all of them
├── UnreachableSource    no response, or none in time, after all tries
├── RefusedSource        the source refused: status and its own words
├── GarbledSource        a response that cannot be decoded
└── IncompleteSource     a response without the part of some stores
"""

from trimtab.runtime.files import RuntimeFault


class UsageFault(RuntimeFault):
    """An error that occurred while usage was read."""


class UnreachableSource(UsageFault):
    """The source sent no response, or not a complete one."""


class RefusedSource(UsageFault):
    """The source refused the HTTP request. The text of the error is the source's own message."""

    def __init__(self, doing: str, status: int, message: str) -> None:
        super().__init__(f"{doing}: {status}: {message}")
        self.status = status
        self.message = message


class GarbledSource(UsageFault):
    """The response of the source cannot be decoded."""


class IncompleteSource(UsageFault):
    """The source responded with a part of the usage only."""
