"""The load test of an exported causal model: `python -m ftpipeline.backends.causal_load FOLDER MAX_LENGTH`.

Loads the model in the runtime that serves it and lets it answer one prompt of the greatest length; exits with 0 when
every number was finite.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from ftpipeline.backends.causal_prompt import load_chat_tokenizer
from ftpipeline.backends.causal_scorer import open_runtime


def main(argv: Sequence[str]) -> None:
    """Load the export named in `argv` and ask it once."""
    folder, max_length = Path(argv[0]), int(argv[1])
    end = int(load_chat_tokenizer(folder).eos_token_id)
    open_runtime(folder, max_length).log_likelihoods([end] * (max_length - 1), [[end]])


if __name__ == "__main__":
    main(sys.argv[1:])
