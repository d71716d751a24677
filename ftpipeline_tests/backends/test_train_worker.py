"""The training worker as its launchers see it: a process with a request, messages, an exit code and an output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster_pipes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ftpipeline.backends import checkpoint
from ftpipeline.backends.protocol import EXIT_INTERRUPTED, command, write_request
from ftpipeline.steps.base_pin import base_tree, trained_on
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline_tests.orchestration.servers import needs_proc, wait_for
from ftpipeline_tests.tiny_model import build_tiny_bert, build_tiny_split, tiny_train_params

MODULE = "ftpipeline.backends.train_worker"
FOR_EVER = 10**5
MEASURED = ("loss", "grad_norm", "learning_rate", "tokens", "accumulation")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_bert(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_split(tmp_path_factory.mktemp("split"))


def make_request(base: Path, split: Path, out: Path, **train: Any) -> WorkerRequest:
    out.mkdir(parents=True)
    return WorkerRequest(MODULE, {"base_model": base, "split": split}, tiny_train_params(base, **train), out)


def start(request: WorkerRequest, **environment: str) -> subprocess.Popen[str]:
    request_file = request.out.with_name(f"{request.out.name}.json")
    write_request(request, request_file)
    return subprocess.Popen(
        command(request, request_file),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | environment,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]]]:
    said, _ = process.communicate()
    return process.returncode, [json.loads(line) for line in said.splitlines()]


def files_of(folder: Path) -> Mapping[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def twice(base: Path, split: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The output folders of one request in two processes that order their sets differently."""
    folder = tmp_path_factory.mktemp("twice")
    outs = (folder / "first", folder / "deeper" / "second")
    for seed, out in enumerate(outs):
        returncode, _ = finish(start(make_request(base, split, out), PYTHONHASHSEED=str(seed)))
        assert returncode == 0
    return outs


def test_equal_requests_give_equal_bytes_in_two_processes(twice: tuple[Path, Path]) -> None:
    first, second = map(files_of, twice)
    assert sorted(first) == [
        "adapter/adapter_config.json",
        "adapter/adapter_model.safetensors",
        "evaluations.jsonl",
        "metrics.jsonl",
        "train.json",
    ]
    assert first == second


def test_the_output_names_no_folder_of_this_machine(twice: tuple[Path, Path], base: Path) -> None:
    places = [str(base).encode(), str(twice[0].parent).encode()]
    assert not [name for name, data in files_of(twice[0]).items() for place in places if place in data]
    assert trained_on(twice[0] / "adapter") == base_tree(base)


def test_training_learns_separable_rows(twice: tuple[Path, Path]) -> None:
    assert json.loads((twice[0] / "train.json").read_text())["validation"]["macro_f1"] > 0.9


def test_every_optimizer_step_is_measured(twice: tuple[Path, Path]) -> None:
    points = [json.loads(line) for line in (twice[0] / "metrics.jsonl").read_text().splitlines()]
    assert [point["step"] for point in points] == list(range(1, 41))
    assert all(set(point) == {"step", "epoch", *MEASURED} for point in points)


def test_saved_modules_and_lora_weights_are_in_the_adapter_and_base_weights_are_not(twice: tuple[Path, Path]) -> None:
    names = set(load_file(twice[0] / "adapter/adapter_model.safetensors"))
    kinds = {name for kind in ("lora_A", "lora_B", "classifier", "pooler") for name in names if kind in name}
    assert kinds == names
    assert {"base_model.model.classifier.weight", "base_model.model.bert.pooler.dense.weight"} <= names


def test_a_diverging_training_is_a_verdict_and_is_not_completed(base: Path, split: Path, tmp_path: Path) -> None:
    request = make_request(base, split, tmp_path / "out", lr=1e12, warmup_steps=0)
    returncode, said = finish(start(request))
    assert returncode == 1
    assert said[-1]["error"]["type"] == "LossExplosionError"
    assert "at step" in said[-1]["error"]["message"]
    assert sorted(files_of(request.out)) == ["evaluations.jsonl", "metrics.jsonl"]
    assert said[-1]["error"]["evidence"]["step"] <= 50


def test_nan_in_the_base_model_fails_at_the_first_step(base: Path, split: Path, tmp_path: Path) -> None:
    broken = build_tiny_bert(tmp_path / "base")
    weights = load_file(broken / "model.safetensors")
    weights["pooler.dense.weight"] = np.full_like(weights["pooler.dense.weight"], np.nan)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    returncode, said = finish(start(make_request(broken, split, tmp_path / "out")))
    assert returncode == 1
    assert "loss is nan at step 1;" in said[-1]["error"]["message"]
    assert said[-1]["error"]["type"] == "NonFiniteError"
    assert "non_finite" in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_asked_to_stop_saves_says_so_and_leaves_nothing_complete(
    base: Path, split: Path, tmp_path: Path, number: signal.Signals
) -> None:
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    request = replace(make_request(base, split, tmp_path / "out", max_steps=FOR_EVER), exchange=exchange)
    process = start(request)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(number)
    returncode, said = finish(process)
    assert returncode == EXIT_INTERRUPTED
    saved = said[-2]["checkpoint"]
    assert checkpoint.verify(exchange / saved["folder"]).step == saved["step"]
    assert said[-1]["error"]["type"] == "WorkerInterruptedError"
    assert sorted(files_of(request.out)) == ["evaluations.jsonl", "metrics.jsonl"]


@needs_proc
def test_a_worker_that_is_still_importing_stops_at_once_and_without_a_word(
    base: Path, split: Path, tmp_path: Path
) -> None:
    request = make_request(base, split, tmp_path / "out", max_steps=FOR_EVER)
    process = start(request)
    wait_for(lambda: is_taken(process.pid, signal.SIGTERM) or None, 60, "the worker's handler")
    process.send_signal(signal.SIGTERM)
    assert finish(process) == (EXIT_INTERRUPTED, [])
    assert files_of(request.out) == {}


def is_taken(pid: int, number: signal.Signals) -> bool:
    """Tell whether a process has a handler for a signal."""
    (line,) = (x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("SigCgt:"))
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)


def test_a_worker_ends_with_the_process_that_started_it(base: Path, split: Path, tmp_path: Path) -> None:
    request = make_request(base, split, tmp_path / "out", max_steps=FOR_EVER)
    script = (
        "import subprocess, sys\n"
        "from pathlib import Path\n"
        "from ftpipeline.backends.protocol import command, read_request, write_request\n"
        "request, _ = read_request(Path(sys.argv[1]))\n"
        "write_request(request, Path(sys.argv[1]))\n"
        "subprocess.run(command(request, Path(sys.argv[1])), check=True)\n"
    )
    write_request(request, tmp_path / "request.json")
    arguments = [sys.executable, "-c", script, str(tmp_path / "request.json")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as launcher:
        assert launcher.stdout is not None
        launcher.stdout.readline()  # the worker trains
        launcher.kill()
        launcher.stdout.read()  # ends when the worker, the last to hold the pipe, has ended


def test_under_dagster_pipes_the_same_messages_are_sent_as_custom_messages(
    base: Path, split: Path, tmp_path: Path
) -> None:
    context, messages = tmp_path / "context.json", tmp_path / "messages.jsonl"
    context.write_text(json.dumps({"extras": {}, "job_name": None, "run_id": "r", "retry_number": 0}))
    returncode, printed = finish(
        start(
            make_request(base, split, tmp_path / "out", max_steps=2),
            DAGSTER_PIPES_CONTEXT=dagster_pipes.encode_param({"path": str(context)}),
            DAGSTER_PIPES_MESSAGES=dagster_pipes.encode_param({"path": str(messages)}),
        )
    )
    sent = [json.loads(line) for line in messages.read_text().splitlines()]
    payloads = [message["params"]["payload"] for message in sent if message["method"] == "report_custom_message"]
    assert (returncode, printed) == (0, [])
    assert [payload["metric"]["step"] for payload in payloads if "metric" in payload] == [1, 2]
    assert [payload["progress"][:2] for payload in payloads if "progress" in payload] == [[1, 2], [2, 2]]
