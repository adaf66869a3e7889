# SPDX-License-Identifier: Apache-2.0
"""Signed envelopes: DSSE version 1 around statements of in-toto, with Ed25519 keys in PEM files.

Tools that read DSSE (cosign, in-toto, securesystemslib) read these. The text of an envelope has one form only, so that
each byte of the file matters: the signature itself covers the payload alone.
Sources: Dead Simple Signing Envelope, protocol.md and envelope.md, version 1.0.2; in-toto attestation framework,
Statement v1; RFC 8032 (Ed25519).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError, needs_extra
from mt_nodes.base.record_shapes import Shape, mismatch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_SHAPE: Shape = {"payload": str, "payloadType": str, "signatures": [{"keyid": str, "sig": str}]}
_MAKE_KEY = "`openssl genpkey -algorithm ed25519 -out key.pem` makes one"
_MAKE_PUBLIC = "`openssl pkey -in key.pem -pubout -out key.pub.pem` makes one"


class EnvelopeError(UsageError):
    """A file is no envelope of this form, byte for byte."""


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return what is signed: the pre-authentication encoding of a payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


@dataclass(frozen=True)
class SignedStatement:
    """An envelope: the bytes of a statement, and signatures by key id (SHA-256 of the public key in DER)."""

    payload: bytes
    signatures: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, predicate_type: str, predicate: Mapping[str, Any], subjects: Mapping[str, str]) -> SignedStatement:
        """Return one without signatures; ``subjects``: name -> SHA-256 of each file that it is about."""
        statement = {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(subjects.items())],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
        return cls(json.dumps(statement, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: Path) -> SignedStatement:
        """Read the file of an envelope; no signature is checked. Raises UsageError: it cannot be read, or is none."""
        try:
            return cls.parse(path.read_bytes(), str(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a signed plan or bundle") from error

    @classmethod
    def parse(cls, data: bytes, where: str) -> SignedStatement:
        """Read an envelope. Raises EnvelopeError: it is none, or its bytes are not those that :meth:`text` writes."""
        try:
            plain = json.loads(data)
            if problem := mismatch(plain, _SHAPE):
                raise EnvelopeError(f"{where}: is no signed plan or bundle (DSSE envelope): {problem}")
            rows = tuple((row["keyid"], base64.b64decode(row["sig"])) for row in plain["signatures"])
            found = cls(base64.b64decode(plain["payload"]), rows)
        except (ValueError, RecursionError, binascii.Error) as error:
            raise EnvelopeError(f"{where}: is no signed plan or bundle (DSSE envelope): {error}") from error
        if found.text.encode() != data:
            raise EnvelopeError(f"{where}: damaged or edited: not the bytes that this envelope is written with")
        return found

    @property
    def text(self) -> str:
        """The envelope as JSON."""
        rows = [{"keyid": name, "sig": base64.b64encode(sig).decode()} for name, sig in self.signatures]
        payload = base64.b64encode(self.payload).decode()
        return json.dumps({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": rows}, indent=1) + "\n"

    @property
    def sha256(self) -> str:
        """Of the payload: what others refer to; signatures that are added later do not change it."""
        return hashlib.sha256(self.payload).hexdigest()

    def predicate(self, predicate_type: str, where: str) -> dict[str, Any]:
        """Return what the statement says. Raises EnvelopeError: it is another kind of statement."""
        found = _json(self.payload)
        if not isinstance(found, dict) or found.get("predicateType") != predicate_type:
            got = found.get("predicateType") if isinstance(found, dict) else found
            raise EnvelopeError(f"{where}: got a statement of type {got!r}, expected {predicate_type}")
        if not isinstance(found.get("predicate"), dict):
            raise EnvelopeError(f"{where}: the statement has no predicate")
        return dict(found["predicate"])

    @property
    def subjects(self) -> dict[str, str]:
        """Name -> SHA-256 of each file that the statement is about."""
        return {row["name"]: row["digest"]["sha256"] for row in _json(self.payload)["subject"]}

    def signed(self, key: Ed25519PrivateKey) -> SignedStatement:
        """Return it with the signature of one more key; one key signs once."""
        name = key_id(key.public_key())
        others = tuple(row for row in self.signatures if row[0] != name)
        return SignedStatement(self.payload, (*others, (name, key.sign(pae(PAYLOAD_TYPE, self.payload)))))

    def signed_by(self, key: Ed25519PublicKey) -> bool:
        """Whether one of the signatures is by this key, and each that says so is."""
        from cryptography.exceptions import InvalidSignature

        own = [sig for name, sig in self.signatures if name == key_id(key)]
        try:
            for sig in own:
                key.verify(sig, pae(PAYLOAD_TYPE, self.payload))
        except InvalidSignature:
            return False
        return bool(own)


def private_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key. Raises UsageError: there is none, or it is of another kind."""
    return _key(path, private=True)


def public_key(path: Path) -> Ed25519PublicKey:
    """Read a public key. Raises UsageError: there is none, or it is of another kind."""
    return _key(path, private=False)


def public_pem(key: Ed25519PublicKey) -> bytes:
    """Return a public key as a PEM file."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def key_id(key: Ed25519PublicKey) -> str:
    """Return the id of a key: SHA-256 of its DER encoding (SubjectPublicKeyInfo), in hexadecimal digits."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _key(path: Path, *, private: bool) -> Any:
    with needs_extra("evidence", "signatures need the package cryptography; type"):
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
    what, hint = ("private", _MAKE_KEY) if private else ("public", _MAKE_PUBLIC)
    try:
        data = path.read_bytes()
        key = load_pem_private_key(data, None) if private else load_pem_public_key(data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; expected a {what} Ed25519 key; {hint}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        encrypted = "; it is encrypted: `openssl pkey -in FILE` decrypts it" if isinstance(error, TypeError) else ""
        raise UsageError(f"{path}: expected a PEM file of a {what} Ed25519 key{encrypted}; {hint}") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey):
        raise UsageError(f"{path}: got another kind of {what} key, expected Ed25519; {hint}")
    return key


def _json(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except ValueError as error:
        raise EnvelopeError(f"the payload of an envelope is no JSON: {error}") from error
