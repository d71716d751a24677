"""A disk that is full, as far as this process can tell."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_space_beyond(size: int) -> Iterator[None]:
    """Let the kernel refuse writes beyond `size` bytes a file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
