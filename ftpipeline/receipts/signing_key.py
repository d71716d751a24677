"""The half of an Ed25519 key that signs: where it is kept, and what of it may be shown.

A home makes its key on first use: `<home>/keys/signing.pem`, readable by its owner only, and beside it
`signing.pub.pem`, which is what others verify with. Another key is named by URI: `file:PATH` or `env:NAME`, both
holding an unencrypted PKCS#8 PEM. No message and no representation shows anything of a private key.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ftpipeline.errors import EnvironmentProblemError, InputError
from ftpipeline.receipts.key_files import keep_private, read_private
from ftpipeline.receipts.public_key import PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]  # public, but in no __all__

_FOLDER, _PRIVATE, _PUBLIC = "keys", "signing.pem", "signing.pub.pem"


class SigningKey:
    """The half of a key that signs. It is never shown, pickled or written anywhere but to its own file."""

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self._key = key

    def __repr__(self) -> str:
        return f"SigningKey({self.public.keyid})"

    def __reduce__(self) -> str:
        raise TypeError("a signing key is not pickled; give the other process its URI")

    @classmethod
    def of_home(cls, home: Path) -> "SigningKey":
        """Return the home's key, made on first use; processes that make it at once all get the same one.

        Raises:
            EnvironmentProblemError: it cannot be made or read, or others may read it.
            InputError: the file holds no Ed25519 key.
        """
        folder = home / _FOLDER
        if not os.path.exists(folder / _PRIVATE):  # unlike Path.exists, False also where it may not look
            keep_private(folder / _PRIVATE, _new_pem())
        key = cls.from_uri(f"file:{folder / _PRIVATE}")
        if not _holds(folder / _PUBLIC, key.public.pem):
            key.public.write(folder / _PUBLIC)
        return key

    @classmethod
    def from_uri(cls, uri: str) -> "SigningKey":
        """Return the key that a URI names.

        Args:
            uri: `file:PATH`, readable by its owner only, or `env:NAME` of an environment variable.

        Raises:
            EnvironmentProblemError: the file cannot be read or others may read it, or the variable is not set.
            InputError: another URI, or not an unencrypted Ed25519 key.
        """
        scheme, _, name = uri.partition(":")
        if scheme == "file" and name:
            return cls._from_pem(read_private(Path(name)), f"file {name!r}")
        if scheme == "env" and name:
            if name not in os.environ:
                raise EnvironmentProblemError(f"environment variable {name!r} is not set; put the signing key there")
            return cls._from_pem(os.fsencode(os.environ[name]), f"environment variable {name!r}")
        # What was given is not shown: it may be the key itself.
        raise InputError("the signing key is given by neither file:PATH nor env:NAME; give one of them")

    @property
    def public(self) -> PublicKey:
        """The half that verifies."""
        return PublicKey(self._key.public_key())

    def signer(self) -> "CryptoSigner":
        """Return the key as securesystemslib takes it."""
        from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]  # public, but in no __all__

        return CryptoSigner(self._key)

    @classmethod
    def _from_pem(cls, data: bytes, where: str) -> "SigningKey":
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        unusable = InputError(f"{where} holds no signing key; put an Ed25519 key there, as unencrypted PKCS#8 PEM")
        try:
            key = load_pem_private_key(data, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
            raise unusable from None  # the cause may quote the secret
        if not isinstance(key, Ed25519PrivateKey):
            raise unusable
        return cls(key)


def _new_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise EnvironmentProblemError(f"{str(path)!r} cannot be read ({error.strerror}); make it readable") from error
