"""What can go wrong when usage is read.

UsageFault               all of them
├── UnreachableSource    no answer, or none in time, after all tries
├── RefusedSource        an answer that says no: status and the source's own words
└── GarbledSource        an answer that makes no sense
"""

from trimtab.runtime.files import RuntimeFault


class UsageFault(RuntimeFault):
    """Something at the door to usage."""


class UnreachableSource(UsageFault):
    """Nobody answered, or not to the end."""


class RefusedSource(UsageFault):
    """The source said no."""

    def __init__(self, doing: str, status: int, said: str) -> None:
        super().__init__(f"{doing}: {status}: {said}")
        self.status = status
        self.said = said


class GarbledSource(UsageFault):
    """The answer makes no sense to us."""
