"""The identity of a tokenizer: what its pristine files hold, and how a fixed conversation reads in its chat template.

A tokenizer that is loaded and saved again has other bytes, so the files are copied as they came with the base model. A
chat template stands in `tokenizer_config.json`, in `chat_template.jinja` or in a folder of templates; moving it from
one to the other changes nothing that a model reads, an edit of one character does. So templates are hashed by name and
text, wherever they stand, together with their rendering.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError, TokenizerMismatchError
from ftpipeline.steps.chat_template import render
from ftpipeline.steps.weight_files import read_object

CONFIG, TEMPLATE, TEMPLATE_JSON = "tokenizer_config.json", "chat_template.jinja", "chat_template.json"
TOKENIZER_FILES = (
    "added_tokens.json",
    TEMPLATE,
    TEMPLATE_JSON,
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    CONFIG,
    "vocab.json",
    "vocab.txt",
)
TEMPLATE_FOLDERS = ("additional_chat_templates", "chat_templates")

_FIELD = "chat_template"
_DEFAULT = "default"


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the tokenizer's files that stand in a model folder, relative to it and sorted."""
    files = [folder / name for name in TOKENIZER_FILES]
    for name in TEMPLATE_FOLDERS:
        files += (folder / name).rglob("*")
    return sorted(file.relative_to(folder) for file in files if file.is_file())


def tokenizer_sha256(folder: Path) -> Digest:
    """Return the digest of the tokenizer in a model folder: its files, its configuration, its templates as rendered.

    Law: two folders that differ only in where a template stands have one digest; any other difference in the bytes of a
    file, in a value of the configuration or in the text of a template shows.

    Raises:
        InputError: the folder holds no tokenizer file, or one that cannot be read.
    """
    files = tokenizer_files(folder)
    if not files:
        raise InputError(f"{folder.name} holds no tokenizer file; add tokenizer.json of the base model")
    config = read_object(folder, CONFIG) if (folder / CONFIG).is_file() else {}
    templates = chat_templates(folder)
    held = {CONFIG, TEMPLATE, TEMPLATE_JSON}
    plain = [file for file in files if file.as_posix() not in held and file.parts[0] not in TEMPLATE_FOLDERS]
    return digest.of_json(
        {
            "files": {file.as_posix(): digest.of_file(folder / file) for file in plain},
            "configuration": _config_digest(config),
            "templates": {name: sorted(texts) for name, texts in templates.items()},
            "rendered": {name: [render(text, config) for text in sorted(texts)] for name, texts in templates.items()},
        }
    )


def check_tokenizer(folder: Path, pinned: str, role: str) -> None:
    """Return if the tokenizer in `folder` is the pinned one.

    Args:
        folder: of a model or an export.
        pinned: 64 hexadecimal digits.
        role: what the folder is, for the message.

    Raises:
        TokenizerMismatchError: it is another.
        InputError: the folder holds none, or one that cannot be read.
    """
    found = digest.hex_of(tokenizer_sha256(folder))
    if found != pinned:
        raise TokenizerMismatchError(
            f"tokenizer of the {role} is {found}, the manifest pins {pinned}; restore its files or pin again"
        )


def chat_templates(folder: Path) -> dict[str, set[str]]:
    """Return the texts of every chat template by its name; more than one where two files disagree.

    Raises:
        InputError: a file cannot be read, or holds a template of another form.
    """
    found: dict[str, set[str]] = {}
    for name in (CONFIG, TEMPLATE_JSON):
        declared = read_object(folder, name).get(_FIELD) if (folder / name).is_file() else None
        for key, text in _named(declared, name).items():
            found.setdefault(key, set()).add(text)
    for file in tokenizer_files(folder):
        if file.name == TEMPLATE or file.parts[0] in TEMPLATE_FOLDERS:
            name = _DEFAULT if file.as_posix() == TEMPLATE else file.relative_to(file.parts[0]).as_posix()
            found.setdefault(name.removesuffix(".jinja"), set()).add(_read_text(folder, file))
    return found


def _config_digest(config: Mapping[str, Any]) -> Digest:
    """Digest a configuration without its template; its `model_max_length` is often 10^30, which RFC 8785 cannot say."""
    others = {name: value for name, value in config.items() if name != _FIELD}
    return digest.of_bytes(json.dumps(others, sort_keys=True).encode())


def _named(declared: Any, where: str) -> Mapping[str, str]:
    """Return the templates that a field holds: none, one text, or a list of texts with names."""
    if declared is None:
        return {}
    named = {_DEFAULT: declared} if isinstance(declared, str) else declared
    if isinstance(named, list) and all(isinstance(item, dict) for item in named):
        named = {item.get("name"): item.get("template") for item in named}
    if not isinstance(named, dict) or not all(isinstance(text, str) for pair in named.items() for text in pair):
        raise InputError(f"{_FIELD} in {where} is neither a text nor a list of named texts; restore the model's file")
    return named


def _read_text(folder: Path, file: Path) -> str:
    try:
        return (folder / file).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"chat template {file.as_posix()} cannot be read ({error!r}); restore the model's file"
        ) from error
