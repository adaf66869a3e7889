# SPDX-License-Identifier: Apache-2.0
"""Tokens of a time stamp authority (RFC 3161): that a plan existed at a time, by somebody else's clock and key."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path

from mt_nodes.base.errors import UsageError, needs_extra


def witnessed_time(token: Path, roots: Iterable[Path], sha256: str) -> datetime.datetime:
    """Return the time at which an authority saw a SHA-256; nothing is asked of the network.

    ``token``: its response in DER, as ``openssl ts`` and ``curl`` write it. ``roots``: certificates in PEM files that
    the caller trusts.
    Raises UsageError: the token is none, is of something else, or is not signed by an authority of these roots.
    """
    with needs_extra("evidence", "time stamps need rfc3161-client; type"):
        from cryptography.x509 import load_pem_x509_certificates
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response
    builder = VerifierBuilder()
    for path in roots:
        try:
            for certificate in load_pem_x509_certificates(path.read_bytes()):
                builder = builder.add_root_certificate(certificate)
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: cannot be read as certificates in PEM: {error}") from error
    try:
        response = decode_timestamp_response(token.read_bytes())
        builder.build().verify(response, bytes.fromhex(sha256))
        at: datetime.datetime = response.tst_info.gen_time
    except (OSError, ValueError, VerificationError) as error:
        raise UsageError(f"{token}: proves no time of {sha256[:12]}…: {error}") from error
    return at
