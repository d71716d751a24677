"""The identity of a tokenizer: the bytes of its pristine files.

A tokenizer that is loaded and saved again has other bytes, and a template edit changes only `chat_template.jinja`; so
the files are hashed, and copied, as they came with the base model.
"""

from pathlib import Path

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError

TOKENIZER_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
TEMPLATE_FOLDERS = ("additional_chat_templates", "chat_templates")


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the tokenizer's files that stand in a model folder, relative to it and sorted."""
    files = [folder / name for name in TOKENIZER_FILES]
    for name in TEMPLATE_FOLDERS:
        files += (folder / name).rglob("*")
    return sorted(file.relative_to(folder) for file in files if file.is_file())


def tokenizer_sha256(folder: Path) -> Digest:
    """Return the digest over names and bytes of the tokenizer's files in a model folder.

    Raises:
        InputError: the folder holds none.
    """
    files = tokenizer_files(folder)
    if not files:
        raise InputError(f"{folder.name} holds no tokenizer file; add tokenizer.json of the base model")
    return digest.of_json({file.as_posix(): digest.of_file(folder / file) for file in files})
