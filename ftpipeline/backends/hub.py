"""Base models from the Hugging Face hub."""

import os
import shutil
from pathlib import Path

from ftpipeline.steps.ports import ModelHub

_WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "LICENSE*", "NOTICE*")
"""No pickled weights, which run code when they are loaded, and no second copies in other formats."""


class HuggingFaceHub(ModelHub):
    """Fetches a repository at a commit; the token comes from HF_TOKEN and nowhere else.

    Args:
        endpoint: base URL of a mirror; the public hub if None.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint

    def _fetch(self, repo: str, revision: str, target: Path) -> None:
        from huggingface_hub import snapshot_download  # the other sources of base models need no hub client

        snapshot_download(
            repo,
            revision=revision,
            local_dir=target,
            endpoint=self._endpoint,
            token=os.environ.get("HF_TOKEN") or False,
            allow_patterns=list(_WANTED),
        )
        shutil.rmtree(target / ".cache")  # the client's bookkeeping, with times of now
