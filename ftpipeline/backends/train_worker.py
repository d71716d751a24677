"""The training worker: `python -m ftpipeline.backends.train_worker REQUEST.json` (contract C13).

Started by a launcher; what it says and how it exits is in `ftpipeline.backends.protocol`. Under the request's output
folder it writes `metrics.jsonl` while it trains, then `adapter/`, and last `train.json`, which completes the output.
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from ftpipeline.backends.channel import Channel, open_channel
from ftpipeline.backends.lifetime import StopRequest, end_with
from ftpipeline.backends.protocol import EXIT_INTERRUPTED, read_request
from ftpipeline.errors import FtpipelineError, WorkerError, WorkerInterruptedError


def main(argv: Sequence[str]) -> int:
    """Train as the request file named in `argv` says.

    Returns:
        The exit code.
    """
    if len(argv) != 1:
        print("usage: python -m ftpipeline.backends.train_worker REQUEST.json", file=sys.stderr)
        return FtpipelineError.exit_code
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    _seal_environment()
    with open_channel() as channel:
        return _run(Path(argv[0]), channel)


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: before the training nothing is written, and an exception would be lost in some library's import."""
    os._exit(EXIT_INTERRUPTED)


def _run(request_file: Path, channel: Channel) -> int:
    try:
        request, parent = read_request(request_file)
        end_with(parent)
        from ftpipeline.backends.training import train  # slow, and only right in the sealed environment

        stop = StopRequest()
        stop.listen()
        train(request, channel, stop)
    except FtpipelineError as error:
        channel.error(error)
        return EXIT_INTERRUPTED if isinstance(error, WorkerInterruptedError) else error.exit_code
    except Exception as error:
        traceback.print_exc()
        summary = " ".join(f"{type(error).__name__}: {error}".split())
        channel.error(WorkerError(f"training worker failed: {summary:.500}; see its standard error"))
        return WorkerError.exit_code
    return 0


def _seal_environment() -> None:
    """Leave the libraries no network, no secret and no setting of their own; they read these at import."""
    for name in [name for name in os.environ if name == "HF_TOKEN" or name.startswith("ACCELERATE_")]:
        del os.environ[name]
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    # With more than one visible device the Trainer multiplies the batch size that the manifest states.
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
