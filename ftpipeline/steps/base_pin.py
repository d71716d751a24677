"""Which base model an adapter belongs to: its configuration names the base by tree digest.

peft writes a path there and no hash; an adapter of one base then loads on another of equal shapes without a word. The
tree digest covers every file of the base: all shards, configuration, tokenizer and chat template.
"""

import json
from pathlib import Path

from ftpipeline.digest import Digest, of_bytes, of_file, parse
from ftpipeline.errors import BaseModelMismatchError, DigestError
from ftpipeline.steps.train_output import CONFIG_FILE
from ftpipeline.tree_format import TreeEntry, encode

BASE_FIELD = "base_model_name_or_path"
"""The field of peft's configuration that holds the digest."""


def base_tree(folder: Path) -> Digest:
    """Return the tree digest of a base model's folder, over the bytes that stand there now."""
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return of_bytes(encode([TreeEntry(name, (folder / name).stat().st_size, of_file(folder / name)) for name in names]))


def trained_on(adapter: Path) -> Digest:
    """Return the base that an adapter was trained on.

    Raises:
        BaseModelMismatchError: the adapter does not say.
    """
    try:
        return parse(json.loads((adapter / CONFIG_FILE).read_text(encoding="utf-8"))[BASE_FIELD])
    except (OSError, ValueError, KeyError, TypeError, DigestError) as error:
        raise BaseModelMismatchError(
            f"{CONFIG_FILE} does not say by digest which base model the adapter was trained on ({error!r}); train again"
        ) from error


def check_base(base_model: Path, adapter: Path) -> Digest:
    """Return the tree digest of `base_model` if `adapter` was trained on it; nothing is loaded.

    Raises:
        BaseModelMismatchError: it is another base, or the adapter does not say.
    """
    expected, found = trained_on(adapter), base_tree(base_model)
    if found != expected:
        raise BaseModelMismatchError(
            f"adapter was trained on base model {expected}, this one is {found}; use the base it was trained on"
        )
    return found
