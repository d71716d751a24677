"""Opening an object store by its URL, with deadlines of our own: the client's defaults allow minutes of silence."""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from ftpipeline.errors import MissingDependencyError, StoreError

if TYPE_CHECKING:
    from obstore.store import BackoffConfig, ClientConfig, ObjectStore, RetryConfig

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")


@dataclass(frozen=True)
class Limits:
    """How long and how often a request is tried.

    Attributes:
        connect: seconds to wait for a connection.
        request: seconds that one request may take, body included; every request is for a few MiB at most.
        retries: how often a failed request is sent again, with exponential backoff.
        total: seconds after the first try of a request after which it is not sent again.
    """

    connect: float = 5.0
    request: float = 60.0
    retries: int = 4
    total: float = 90.0


DEFAULT_LIMITS = Limits()


def shown(url: str) -> str:
    """Return the URL as it may be shown.

    Raises:
        StoreError: it is no URL of an object store, or holds a secret.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    has_user = parts.username is not None and not parts.scheme.startswith("abfs")  # abfs names the container so
    is_plain = not (has_user or parts.password is not None or parts.query or parts.fragment)
    if parts.scheme not in SCHEMES or not parts.netloc or not is_plain:
        raise StoreError(
            f"FTPIPELINE_STORE={parts.scheme}://... cannot be used as a store; give s3://bucket/prefix, "
            "gs://bucket/prefix or az://container/prefix, and the credentials in the environment"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def open_url(url: str, limits: Limits) -> "ObjectStore":
    """Return the store at `url`; no request is made yet.

    Raises:
        MissingDependencyError: obstore is not installed.
        obstore.exceptions.BaseError: the environment's settings cannot be used.
    """
    try:
        from obstore.store import from_url
    except ModuleNotFoundError as error:
        raise MissingDependencyError("a remote store needs the package obstore; install ftpipeline[remote]") from error

    client: ClientConfig = {
        "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",  # options given here hide the variable
        "connect_timeout": timedelta(seconds=limits.connect),
        "timeout": timedelta(seconds=limits.request),
    }
    backoff: BackoffConfig = {
        "init_backoff": timedelta(milliseconds=200),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    }
    retry: RetryConfig = {
        "max_retries": limits.retries,
        "retry_timeout": timedelta(seconds=limits.total),
        "backoff": backoff,
    }
    return from_url(url, client_options=client, retry_config=retry)
