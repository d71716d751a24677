"""Score texts with an export folder in ONNX Runtime on the CPU, as a server does: without torch or transformers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from ftpipeline.backends.probabilities import softmax
from ftpipeline.backends.threads import serving_threads
from ftpipeline.errors import ExportCheckError
from ftpipeline.steps.artifact import MODEL_FILE, read_export_record
from ftpipeline.steps.ports import Progress, Scorer, Scores
from ftpipeline.steps.tokenizer import check_tokenizer


class OnnxScorer(Scorer):
    """Runs `model.onnx` on one text at a time.

    Dynamic int8 quantization scales activations by the range of the whole batch, so in a batch of several texts each
    answer would depend on its neighbours and on their padding. One text at a time gives the answers that a single
    request gets, and is faster, because nothing is padded. `batch_size` is how many texts are tokenized together.
    """

    code_version = "1"

    def runtime(self, artifact: Path) -> str:
        """Return ONNX Runtime's name and version."""
        return f"onnxruntime {onnxruntime.__version__}"

    def _score(self, artifact: Path, texts: Sequence[str], batch_size: int, progress: Progress) -> Scores:
        record = read_export_record(artifact)
        tokenizer = _tokenizer(artifact, record.max_length)
        check_tokenizer(artifact, record.tokenizer_sha256, "artifact")
        session = open_session(artifact / MODEL_FILE)
        predicted: list[int] = []
        confidence: list[float] = []
        for batch in _batches(texts, batch_size):
            for encoding in tokenizer.encode_batch(batch):
                probabilities = softmax(_logits(session, encoding, len(record.labels)))
                predicted.append(int(probabilities.argmax()))
                confidence.append(float(probabilities.max()))
            progress(len(predicted), len(texts), "texts scored")
        return Scores(predicted, confidence)


def _tokenizer(artifact: Path, max_length: int) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(artifact / "tokenizer.json"))
    tokenizer.no_padding()  # the pristine file may ask for a fixed length
    tokenizer.enable_truncation(max_length)
    return tokenizer


def open_session(model: Path) -> onnxruntime.InferenceSession:
    """Load an ONNX file for the CPU.

    Raises:
        EnvironmentProblemError: FTPIPELINE_THREADS is set, but to no number of threads.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = serving_threads()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])


def _logits(session: onnxruntime.InferenceSession, encoding: Encoding, labels: int) -> NDArray[Any]:
    ids, mask, types = encoding.ids, encoding.attention_mask, encoding.type_ids
    columns = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    feed = {node.name: np.array([columns[node.name]], dtype=np.int64) for node in session.get_inputs()}
    logits: NDArray[Any] = session.run(["logits"], feed)[0]
    if logits.shape != (1, labels):
        raise ExportCheckError(
            f"the model answers shape {logits.shape} for one text, {labels} labels are declared; export it again"
        )
    return logits.reshape(labels)
