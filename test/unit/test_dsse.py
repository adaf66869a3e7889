# SPDX-License-Identifier: Apache-2.0
"""Signed envelopes: the encoding of DSSE, keys, and that each byte of a file matters."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.dsse import (
    PAYLOAD_TYPE,
    EnvelopeError,
    SignedStatement,
    key_id,
    pae,
    private_key,
    public_key,
    public_pem,
)
from mt_nodes.base.errors import UsageError

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
SIGNED = SignedStatement.of("urn:x", {"a": 1, "ü": "é"}, {"b": "22", "a": "11"}).signed(KEY)


def test_the_encoding_is_that_of_the_protocol() -> None:
    # The vector of protocol.md of DSSE; and that lengths count bytes, not letters.
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("", b"") == b"DSSEv1 0  0 "
    assert pae("é", "ü".encode()) == "DSSEv1 2 é 2 ü".encode()


def test_a_statement_is_one_of_in_toto() -> None:
    plain = json.loads(SIGNED.text)
    assert plain["payloadType"] == "application/vnd.in-toto+json" == PAYLOAD_TYPE
    statement = json.loads(base64.b64decode(plain["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1" and statement["predicateType"] == "urn:x"
    assert statement["subject"][0] == {"name": "a", "digest": {"sha256": "11"}}
    KEY.public_key().verify(base64.b64decode(plain["signatures"][0]["sig"]), pae(PAYLOAD_TYPE, SIGNED.payload))


def test_a_signature_is_of_one_key_and_one_payload() -> None:
    assert SIGNED.signed_by(KEY.public_key()) and not SIGNED.signed_by(OTHER.public_key())
    both = SIGNED.signed(OTHER)
    assert both.signed_by(OTHER.public_key()) and both.sha256 == SIGNED.sha256 and len(both.signatures) == 2
    assert both.signed(OTHER) == both, "one key signs once"
    other = SignedStatement(SIGNED.payload.replace(b'"a":1', b'"a":2'), SIGNED.signatures)
    assert not other.signed_by(KEY.public_key())
    name, sig = SIGNED.signatures[0]
    borrowed = SignedStatement(SIGNED.payload, ((key_id(OTHER.public_key()), sig), (name, sig)))
    assert not borrowed.signed_by(OTHER.public_key())


@given(st.integers(0, len(SIGNED.text.encode()) - 1), st.integers(1, 255))
def test_each_byte_of_an_envelope_matters(place: int, change: int) -> None:
    data = bytearray(SIGNED.text.encode())
    data[place] ^= change
    try:
        assert not SignedStatement.parse(bytes(data), "x").signed_by(KEY.public_key())
    except EnvelopeError:
        return


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"payload": 1, "payloadType": "x", "signatures": []}', "[" * 10_000])
def test_what_is_no_envelope_is_refused(text: str) -> None:
    with pytest.raises(EnvelopeError, match="no signed plan or bundle"):
        SignedStatement.parse(text.encode(), "x")
    with pytest.raises(EnvelopeError, match="not the bytes"):
        SignedStatement.parse(SIGNED.text.replace("\n", "\n ", 1).encode(), "x")
    with pytest.raises(EnvelopeError, match="expected urn:y"):
        SIGNED.predicate("urn:y", "x")


def test_keys_are_read_from_pem_and_others_are_refused(tmp_path: Path) -> None:
    pem = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    (tmp_path / "key.pub.pem").write_bytes(public_pem(KEY.public_key()))
    assert key_id(private_key(tmp_path / "key.pem").public_key()) == key_id(public_key(tmp_path / "key.pub.pem"))
    for wrong, words in (("none.pem", "cannot be read"), ("key.pub.pem", "expected a PEM file of a private")):
        with pytest.raises(UsageError, match=words):
            private_key(tmp_path / wrong)
    with pytest.raises(UsageError, match="expected a PEM file of a public"):
        public_key(tmp_path / "key.pem")
    curve = generate_private_key(SECP256R1())
    (tmp_path / "ec.pem").write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(UsageError, match="another kind of private key, expected Ed25519"):
        private_key(tmp_path / "ec.pem")
