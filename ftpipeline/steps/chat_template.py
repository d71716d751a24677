"""How a chat template reads a fixed conversation, rendered as transformers renders it."""

import json
from collections.abc import Mapping
from typing import Any

from ftpipeline.errors import InputError

_TURNS = (
    {"role": "user", "content": "Where is my parcel?\n  It was due on Monday."},
    {"role": "assistant", "content": "It is on its way."},
    {"role": "user", "content": 'Thanks & "goodbye" <end>'},
)
PROBES: tuple[tuple[Mapping[str, str], ...], ...] = (_TURNS, ({"role": "system", "content": "Be brief."}, *_TURNS))
"""Conversations without and with a system message, which some templates refuse."""

_SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_FIXED_DATE = "2026-01-05"


def render(template: str, config: Mapping[str, Any]) -> list[str]:
    """Return what a template makes of each probe, with and without a prompt for an answer after it.

    Args:
        template: its Jinja text.
        config: the tokenizer's configuration, for its special tokens.

    Returns:
        The renderings; for a conversation that the template refuses, that it does.

    Raises:
        InputError: the text is no template.
    """
    import jinja2

    try:
        compiled = _environment().from_string(template)
    except jinja2.TemplateError as error:
        raise InputError(f"chat template is no Jinja template ({error}); restore the model's file") from error
    tokens = {name: _text(config[name]) for name in _SPECIAL_TOKENS if config.get(name) is not None}
    asked = [{"messages": probe, "add_generation_prompt": prompt} for probe in PROBES for prompt in (False, True)]
    return [_rendered(compiled, {**tokens, **arguments, "tools": None, "documents": None}) for arguments in asked]


def _rendered(compiled: Any, arguments: Mapping[str, Any]) -> str:
    """Render one conversation. A template is a foreign program: whatever it raises is its refusal."""
    try:
        return str(compiled.render(**arguments))
    except Exception as error:
        return f"refused: {type(error).__name__}"


def _environment() -> Any:
    """Return the sandbox that transformers renders in; the clock stands still."""
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class GenerationBlocks(Extension):
        """Reads `{% generation %}`, which marks an answer for a mask, as what it encloses."""

        tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlocks, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals |= {"raise_exception": refuse, "strftime_now": lambda form: _FIXED_DATE}
    return environment


def _text(token: Any) -> str:
    """Return a special token's text; a configuration holds it plain or with its flags."""
    return str(token["content"] if isinstance(token, dict) else token)
