"""The serving certificate: issues, checks, renews and rotates it, and loads it from a folder. Imports no other
package."""

from certs.ca import issue, renew, renew_if_due
from certs.expiry import CertificateStatus, certificate_status, is_certificate_due, is_folder_due, read_status
from certs.files import CA_KEY, CERTIFICATE, CertificateFiles, KeyPair, read_authority, read_folder, write_folder
from certs.problems import CertsError, MissingFile, Problem, UnusableFile, UnwritableFile
from certs.rotation import (
    PatchCABundle,
    RotationState,
    RotationStep,
    WaitUntil,
    WriteSecret,
    is_usable,
    may_serve,
    next_pair,
    next_step,
    reissued_pair,
    sole_authority,
)
from certs.tls_context import CertificateLoader

__all__ = [
    "CA_KEY",
    "CERTIFICATE",
    "CertsError",
    "CertificateFiles",
    "CertificateLoader",
    "MissingFile",
    "KeyPair",
    "Problem",
    "PatchCABundle",
    "WaitUntil",
    "RotationState",
    "CertificateStatus",
    "RotationStep",
    "WriteSecret",
    "UnusableFile",
    "UnwritableFile",
    "sole_authority",
    "is_certificate_due",
    "is_folder_due",
    "issue",
    "certificate_status",
    "may_serve",
    "next_step",
    "read",
    "read_authority",
    "renew",
    "renew_if_due",
    "reissued_pair",
    "status",
    "next_pair",
    "is_usable",
    "write",
]
