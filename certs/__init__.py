"""The serving certificate: issue, due, renew, watch a folder. A leaf: knows nothing of the rest."""

from certs.due import due, due_folder
from certs.errors import CertsError, Missing, Unusable, Unwritable
from certs.folder import CA_KEY, CERTIFICATE, Folder, read, read_authority, write
from certs.loader import Loader
from certs.pair import Pair
from certs.problem import Problem
from certs.renew import issue, renew, renew_if_due
from certs.rotation import Publish, Rest, Seen, Step, Store, alone, may_serve, next_step, signed_anew, successor, usable
from certs.status import Status, judged, status

__all__ = [
    "CA_KEY",
    "CERTIFICATE",
    "CertsError",
    "Folder",
    "Loader",
    "Missing",
    "Pair",
    "Problem",
    "Publish",
    "Rest",
    "Seen",
    "Status",
    "Step",
    "Store",
    "Unusable",
    "Unwritable",
    "alone",
    "due",
    "due_folder",
    "issue",
    "judged",
    "may_serve",
    "next_step",
    "read",
    "read_authority",
    "renew",
    "renew_if_due",
    "signed_anew",
    "status",
    "successor",
    "usable",
    "write",
]
