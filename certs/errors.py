"""What can go wrong with a pair, as one tree.

CertsError                   all of them; `problem` is the named reason
├── Missing                  a file of the folder is not there
├── Unusable                 a file is there and is not what its name says
└── Unwritable               the folder refuses the new files; what was there is still there
"""

from certs.problem import Problem


class CertsError(Exception):
    """Something about a certificate folder that its caller has to know; the text is one sentence."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.says)
        self.problem = problem


class Missing(CertsError):
    """A file that must be there is not."""


class Unusable(CertsError):
    """A file holds something else than what is expected in it."""


class Unwritable(CertsError):
    """The folder could not be written; files already renamed stay, `status` tells what is out of step."""
