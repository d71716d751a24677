"""The half of an Ed25519 key that verifies."""

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ftpipeline.errors import EnvironmentProblemError, InputError
from ftpipeline.receipts.key_files import SIZE_LIMIT, write_new
from ftpipeline.store.durable import staged

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # public, but in no __all__


class PublicKey:
    """The half of a key that verifies, and may be given to anybody."""

    def __init__(self, key: "Ed25519PublicKey") -> None:
        self._key = key

    def __repr__(self) -> str:
        return f"PublicKey({self.keyid})"

    @classmethod
    def from_pem(cls, text: str, where: str = "public key") -> "PublicKey":
        """Return the key in a PEM text; `pem` gives the text back.

        Raises:
            InputError: it is not a public Ed25519 key.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        unusable = InputError(f"{where} holds no public Ed25519 key; give the PEM file that the signer published")
        try:
            key = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm):
            raise unusable from None  # the cause may quote the text, and that may be a private key given by mistake
        if not isinstance(key, Ed25519PublicKey):
            raise unusable
        return cls(key)

    @classmethod
    def read(cls, path: Path) -> "PublicKey":
        """Return the key in the PEM file `path`.

        Raises:
            InputError: the file cannot be read, or holds no public Ed25519 key.
        """
        try:
            with path.open("rb") as file:
                data = file.read(SIZE_LIMIT)
        except OSError as error:
            raise InputError(f"public key {str(path)!r} cannot be read ({error.strerror}); check the path") from error
        return cls.from_pem(data.decode(errors="replace"), repr(str(path)))

    @property
    def pem(self) -> str:
        """The key as PEM text."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self._key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    @cached_property
    def keyid(self) -> str:
        """64 hexadecimal digits that depend on the key alone."""
        return str(self.verifier().keyid)

    def verifier(self) -> "SSlibKey":
        """Return the key as securesystemslib takes it."""
        from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # public, but in no __all__

        return SSlibKey.from_crypto(self._key)

    def write(self, path: Path) -> None:
        """Write the key to a PEM file, whole or not at all, in place of what stands there.

        Raises:
            EnvironmentProblemError: it cannot be written.
        """
        try:
            with staged(path) as new:
                write_new(new, self.pem.encode(), mode=0o644)
                os.replace(new, path)
        except OSError as error:
            raise EnvironmentProblemError(
                f"public key {str(path)!r} cannot be written ({error.strerror}); check the path and its permissions"
            ) from error
