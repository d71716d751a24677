"""Receipts: what was signed reads back, everything else is refused; keys are private, stable and never shown."""

import base64
import multiprocessing
import os
import pickle
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import canonical_json, of_bytes, parse_json
from ftpipeline.errors import CanonicalFormError, EnvironmentProblemError, InputError
from ftpipeline.receipts import PublicKey, SigningKey, Statement, Subject, VerificationError, sign, verify

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
STATEMENT = Statement((Subject("model", of_bytes(b"model")),), "ftpipeline:test/v1", {"verdict": "pass", "count": 3})
ENVELOPE = sign(STATEMENT, KEY)

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_subjects = st.builds(Subject, st.text(min_size=1), st.binary(max_size=8).map(of_bytes))
statements = st.builds(
    Statement,
    st.lists(_subjects, min_size=1, max_size=4, unique_by=lambda subject: subject.name).map(tuple),
    st.text(min_size=1),
    st.dictionaries(st.text(), _json, max_size=4),
)


def _pem(key: Any, password: bytes | None = None) -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    data: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return data


def _edited(**changes: Any) -> bytes:
    return canonical_json(parse_json(ENVELOPE) | changes)


def _resigned(payload: bytes) -> bytes:
    """Return an envelope whose signature is good, whatever the payload is."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(payload, "application/vnd.in-toto+json", {})
    envelope.sign(KEY.signer())
    return canonical_json(envelope.to_dict())


def _refused(envelope: bytes, problem: str | None = None) -> None:
    with pytest.raises(VerificationError, match=problem) as refused:
        verify(envelope, KEY.public, "gate receipt")
    assert refused.value.where == "gate receipt"
    assert "\n" not in str(refused.value)


# --- statements and envelopes ---------------------------------------------------------------------------------------


@given(statements)
def test_what_was_signed_reads_back(statement: Statement) -> None:
    assert verify(sign(statement, KEY), KEY.public) == statement


@given(statements)
def test_signing_a_statement_again_gives_the_same_receipt(statement: Statement) -> None:
    assert of_bytes(sign(statement, KEY)) == of_bytes(sign(statement, KEY))


def test_a_receipt_is_an_in_toto_statement_in_a_dsse_envelope() -> None:
    document = parse_json(ENVELOPE)
    assert document.keys() == {"payload", "payloadType", "signatures"}
    assert document["payloadType"] == "application/vnd.in-toto+json"
    assert parse_json(base64.b64decode(document["payload"])) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "model", "digest": {"sha256": of_bytes(b"model").removeprefix("sha256:")}}],
        "predicateType": "ftpipeline:test/v1",
        "predicate": {"verdict": "pass", "count": 3},
    }


def test_the_bytes_of_a_receipt_are_frozen() -> None:
    assert of_bytes(ENVELOPE) == "sha256:20f355ac354cbfe7fa7bfecc8debf4ba3e4e72951585c10be07f7ce5dd0c2c0c"


def test_every_flipped_bit_of_a_receipt_is_refused() -> None:
    for offset in range(len(ENVELOPE)):
        for bit in range(8):
            changed = bytes([ENVELOPE[offset] ^ 1 << bit])
            _refused(ENVELOPE[:offset] + changed + ENVELOPE[offset + 1 :])


@given(st.binary() | _json.map(canonical_json))
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    _refused(data)


@given(st.binary() | _json.map(canonical_json))
def test_a_signed_payload_that_is_no_statement_is_refused(payload: bytes) -> None:
    _refused(_resigned(payload))


def test_a_receipt_of_another_key_is_refused_and_both_keys_are_named() -> None:
    _refused(sign(STATEMENT, OTHER), f"{OTHER.public.keyid}, not by {KEY.public.keyid}")


def test_a_signature_of_another_key_under_the_name_of_this_one_is_refused() -> None:
    [signature] = parse_json(sign(STATEMENT, OTHER))["signatures"]
    _refused(_edited(signatures=[signature | {"keyid": KEY.public.keyid}]), "was altered")


def test_none_and_several_signatures_are_refused() -> None:
    [signature] = parse_json(ENVELOPE)["signatures"]
    _refused(_edited(signatures=[]), "0 signatures")
    _refused(_edited(signatures=[signature, signature]), "2 signatures")
    [second] = parse_json(sign(STATEMENT, OTHER))["signatures"]
    _refused(_edited(signatures=[signature, second]), "2 signatures")


def test_another_payload_type_and_an_unknown_field_are_refused() -> None:
    _refused(_edited(payloadType="application/json"), "payloadType")
    _refused(_edited(note="trust me"), "note")


def test_base64_in_another_form_is_refused() -> None:
    [signature] = parse_json(ENVELOPE)["signatures"]
    text = signature["sig"]
    spare_bits = text[:-3] + chr(ord(text[-3]) + 1) + "=="
    assert base64.b64decode(spare_bits) == base64.b64decode(text)
    for other in (spare_bits, text + "\n", text.rstrip("="), "é" + text, text.replace("+", "-"), "*" + text):
        _refused(_edited(signatures=[signature | {"sig": other}]), "base64")


def test_a_key_that_stands_twice_is_refused() -> None:
    _refused(ENVELOPE.replace(b'{"payload"', b'{"payload":"","payload"'), "twice")


def test_json_in_another_than_its_canonical_form_is_refused() -> None:
    _refused(ENVELOPE + b"\n", "canonical")
    _refused(_resigned(STATEMENT.encode().replace(b":", b": ", 1)), "canonical")


def test_json_that_is_nested_beyond_reading_is_refused() -> None:
    _refused(b"[" * 100_000, "can be read")
    _refused(_resigned(b"[" * 5_000 + b"]" * 5_000), "can be read")


@pytest.mark.parametrize(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"subject": []},
        {"subject": [{"name": "a", "digest": {"sha256": "0" * 63}}]},
        {"subject": [{"name": "a", "digest": {"sha256": "0" * 64, "md5": "0"}}]},
        {"subject": [{"name": "a", "digest": {"sha256": "0" * 64}}] * 2},
        {"subject": [{"name": "", "digest": {"sha256": "0" * 64}}]},
        {"predicateType": ""},
        {"predicate": []},
        {"note": "trust me"},
    ],
)
def test_a_signed_statement_of_another_form_is_refused(change: dict[str, Any]) -> None:
    _refused(_resigned(canonical_json(parse_json(STATEMENT.encode()) | change)))


def test_a_statement_that_could_not_be_verified_cannot_be_made() -> None:
    subject = Subject("model", of_bytes(b"model"))
    for subjects, kind in (
        ((), "t"),
        ((subject, subject), "t"),
        ((Subject("", subject.digest),), "t"),
        ((subject,), ""),
    ):
        with pytest.raises(InputError):
            Statement(subjects, kind, {})
    with pytest.raises(CanonicalFormError):
        sign(Statement((subject,), "t", {"loss": float("nan")}), KEY)


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_home_makes_its_key_once_for_its_owner_alone(tmp_path: Path) -> None:
    made = SigningKey.of_home(tmp_path / "home")
    again = SigningKey.of_home(tmp_path / "home")
    assert made.public.keyid == again.public.keyid
    private, public = tmp_path / "home/keys/signing.pem", tmp_path / "home/keys/signing.pub.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in private.parent.iterdir()) == [private.name, public.name]
    assert verify(sign(STATEMENT, made), PublicKey.read(public)) == STATEMENT


def test_a_public_key_file_that_is_not_of_the_home_s_key_is_put_right(tmp_path: Path) -> None:
    made = SigningKey.of_home(tmp_path)
    public = tmp_path / "keys/signing.pub.pem"
    public.write_text(OTHER.public.pem)
    SigningKey.of_home(tmp_path)
    assert PublicKey.read(public).keyid == made.public.keyid


def _keyid_of_home(home: Path) -> str:
    return SigningKey.of_home(home).public.keyid


def test_processes_that_make_a_home_s_key_at_once_get_the_same_one(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert len(set(pool.map(_keyid_of_home, [tmp_path / "home"] * 6))) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(_pem(Ed25519PrivateKey.generate()))
    path.chmod(mode)
    with pytest.raises(EnvironmentProblemError, match="chmod 600"):
        SigningKey.from_uri(f"file:{path}")


def test_a_key_is_given_by_file_or_by_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = Ed25519PrivateKey.generate()
    path = tmp_path / "key.pem"
    path.write_bytes(_pem(key))
    path.chmod(0o600)
    monkeypatch.setenv("SIGNING_KEY", _pem(key).decode())
    expected = SigningKey(key).public.keyid
    assert SigningKey.from_uri(f"file:{path}").public.keyid == expected
    assert SigningKey.from_uri("env:SIGNING_KEY").public.keyid == expected


def test_a_key_that_is_not_there_is_a_problem_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIGNING_KEY", raising=False)
    for uri in (f"file:{tmp_path / 'none.pem'}", f"file:{tmp_path}", "env:SIGNING_KEY"):
        with pytest.raises(EnvironmentProblemError):
            SigningKey.from_uri(uri)
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblemError, match="cannot be made"):
        SigningKey.of_home(tmp_path / "file")


def test_what_is_no_ed25519_key_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = _pem(Ed25519PrivateKey.generate()).decode().splitlines()[1]
    keys = [
        secret,
        _pem(generate_ec_key(SECP256R1())).decode(),
        _pem(Ed25519PrivateKey.generate(), b"password").decode(),
    ]
    for text in (*keys, ""):
        monkeypatch.setenv("SIGNING_KEY", text)
        with pytest.raises(InputError, match="holds no signing key") as refused:
            SigningKey.from_uri("env:SIGNING_KEY")
        assert secret not in str(refused.value)
        assert refused.value.__cause__ is None
    for uri in (secret, f"vault:{secret}", "file:", "env:", ""):
        with pytest.raises(InputError, match="neither file:PATH nor env:NAME") as refused:
            SigningKey.from_uri(uri)
        assert secret not in str(refused.value)


def test_a_signing_key_shows_its_public_half_only_and_is_not_pickled() -> None:
    assert repr(KEY) == f"SigningKey({KEY.public.keyid})"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(KEY)


def test_the_id_of_a_key_is_stable() -> None:
    assert KEY.public.keyid == "63d00ee3cf4f5c61ad94efa696c68f13b608fe56ecea13fb144a6fd18e9235b9"
    assert PublicKey.from_pem(KEY.public.pem).keyid == KEY.public.keyid


def test_a_public_key_reads_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    for key in (OTHER.public, KEY.public):
        key.write(path)
        assert PublicKey.read(path).pem == key.pem
    assert os.listdir(tmp_path) == ["key.pem"]
    with pytest.raises(EnvironmentProblemError, match="cannot be written"):
        KEY.public.write(tmp_path / "none" / "key.pem")


def test_what_is_no_public_ed25519_key_is_refused_and_not_shown(tmp_path: Path) -> None:
    private = _pem(Ed25519PrivateKey.generate())
    elliptic = generate_ec_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for data in (private, elliptic, b"", b"\xff\xfe"):
        (tmp_path / "key.pem").write_bytes(data)
        with pytest.raises(InputError, match="holds no public Ed25519 key") as refused:
            PublicKey.read(tmp_path / "key.pem")
        assert private.decode().splitlines()[1] not in str(refused.value)
    with pytest.raises(InputError, match="cannot be read"):
        PublicKey.read(tmp_path / "none.pem")
