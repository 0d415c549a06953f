"""The serving certificate: issues, checks, renews and rotates it, and loads it from a folder. Imports no other
package."""

from certs.ca import issue, renew, renew_if_due
from certs.expiry import CertificateStatus, certificate_status, is_certificate_due, is_folder_due, read_status
from certs.pem_files import CA_KEY, CERTIFICATE, CertificateFiles, KeyPair, read_authority, read_folder, write_folder
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
    "CertificateFiles",
    "CertificateLoader",
    "CertificateStatus",
    "CertsError",
    "KeyPair",
    "MissingFile",
    "PatchCABundle",
    "Problem",
    "RotationState",
    "RotationStep",
    "UnusableFile",
    "UnwritableFile",
    "WaitUntil",
    "WriteSecret",
    "certificate_status",
    "is_certificate_due",
    "is_folder_due",
    "is_usable",
    "issue",
    "may_serve",
    "next_pair",
    "next_step",
    "read_authority",
    "read_folder",
    "read_status",
    "reissued_pair",
    "renew",
    "renew_if_due",
    "sole_authority",
    "write_folder",
]
