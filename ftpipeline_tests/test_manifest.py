"""The manifest: strict, pinned, and refused with the way to mend it."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from ftpipeline import manifest
from ftpipeline.errors import ManifestError
from ftpipeline_tests.shared import shared

HASH, COMMIT = "ab" * 32, "cd" * 20
GOOD: dict[str, Any] = {
    "run_id": "router-2026-W40",
    "labels": ["billing", "login"],
    "base_model": {"repo": "org/base", "revision": COMMIT, "tree_sha256": f"sha256:{HASH}"},
    "tokenizer_sha256": HASH,
    "data": {"train": f"snap://t/2026-09-28/train@sha256:{HASH}", "val": f"snap://t/2026-09-28/val@sha256:{HASH}"},
    "eval_sets": {role: f"evalset://{role}/v1@sha256:{HASH}" for role in ("task", "regression", "safety")},
    "code": {"git_commit": COMMIT},
    "train": {"seed": 1, "lr": 2.0e-4, "epochs": 2, "lora": {"r": 8, "lora_alpha": 16, "target_modules": ["query"]}},
    "export": {},
    "gates": {"task_min_gain_vs_prod": 0.005, "regression_max_drop": 0.01, "safety_max_drop": 0.0},
}


def _changed(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    section = document
    for name in parents:
        section = section[name]
    section[last] = value
    return document


def test_a_manifest_round_trips_with_its_defaults_written_out() -> None:
    parsed = manifest.parse(GOOD, "m")
    written = parsed.model_dump(mode="json")
    assert manifest.parse(written, "m") == parsed
    assert written["train"]["scheduler"] == "linear"
    assert written["abstention"] == {"max_abstain": 0.05}
    assert manifest.pins(parsed).missing == ()


@pytest.mark.parametrize(
    ("path", "value", "field", "cure"),
    [
        ("base_model.revision", "main", "base_model.revision", "40 hexadecimal digits of the commit"),
        ("base_model.revision", "v1.2", "base_model.revision", "never a branch, tag or short revision"),
        ("base_model.revision", "3f9c2a1", "base_model.revision", "never a branch, tag or short revision"),
        ("base_model.revision", 1234567890, "base_model.revision", "quote it"),
        ("code.git_commit", "HEAD", "code.git_commit", "40 hexadecimal digits"),
        ("tokenizer_sha256", "9b1e...", "tokenizer_sha256", "all 64 hexadecimal digits"),
        ("data.train", "snap://t/latest/train", "data.train", "'sha256:' and all 64 hexadecimal digits"),
        ("data.val", "snap://t/w/val@sha256:41ac...", "data.val", "'sha256:' and all 64 hexadecimal digits"),
        ("eval_sets.task", "evalset://gold/latest", "eval_sets.task", "evalset://<name>/v<number>"),
        ("train.lr", "2e-4", "train.lr", "write 0.0002"),
        ("train.lr", "1e-5", "train.lr", "write 1.0e-05"),
        ("train.lr", float("nan"), "train.lr", "finite"),
        ("train.lr", True, "train.lr", ""),
        ("train.seed", "7", "train.seed", "write 7"),
        ("train.lora.r", 0, "train.lora.r", "greater than or equal to 1"),
        ("train.epochs", None, "train", "epochs or max_steps"),
        ("gates.task_min_gain_vs_prod", -0.005, "gates.task_min_gain_vs_prod", "greater than or equal to 0"),
        ("gates.safety_max_drop", float("inf"), "gates.safety_max_drop", "finite"),
        ("gates.extra_gate", 0.1, "gates.extra_gate", "not a known key"),
        ("labels", ["billing", False], "labels.1", "quote it"),
        ("export.quantize", "int4", "export.quantize", "'int8' or 'none'"),
        ("environment", {"launcher": "ray"}, "(top level)", "pin the image"),
        ("trust_remote_code", True, "trust_remote_code", "not a known key"),
    ],
)
def test_a_bad_field_is_named_with_its_cure(path: str, value: Any, field: str, cure: str) -> None:
    with pytest.raises(ManifestError) as refused:
        manifest.parse(_changed(path, value), "m.yaml")
    message = str(refused.value)
    assert message.startswith(f"m.yaml: {field}")
    assert cure in message
    assert "\n" not in message


def test_every_missing_field_is_named_at_once() -> None:
    document = {key: value for key, value in GOOD.items() if key not in ("gates", "tokenizer_sha256")}
    with pytest.raises(ManifestError, match=r"tokenizer_sha256 is missing.*gates is missing"):
        manifest.parse(document, "m.yaml")


def test_the_cure_for_a_number_reads_back_as_that_number(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as refused:
        manifest.parse(_changed("train.lr", "3e-7"), "m")
    written = str(refused.value).rpartition("write ")[2]
    assert yaml.safe_load(written) == 3e-7


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("train: {seed: 1}\nlabels: []\ntrain: {seed: 2}\n")
    with pytest.raises(ManifestError, match=r"key 'train' stands twice \(line 3\)"):
        manifest.load(path)


@pytest.mark.parametrize("content", [b"- a\n- b\n", b"a: [1\n", b"\xff\xfe", b"", b"7"])
def test_a_file_that_is_no_mapping_is_refused_on_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.yaml"
    path.write_bytes(content)
    with pytest.raises(ManifestError) as refused:
        manifest.load(path)
    assert "\n" not in str(refused.value)


def test_gates_code_and_run_are_in_no_training_projection() -> None:
    base = manifest.parse(GOOD, "m").projection("train")
    for path, value in [
        ("run_id", "router-2026-W41"),
        ("gates.safety_max_drop", 0.5),
        ("code.git_commit", "ef" * 20),
        ("evaluation", {"batch_size": 8}),
        ("abstention", {"max_abstain": 0.1}),
    ]:
        assert manifest.parse(_changed(path, value), "m").projection("train") == base
    assert manifest.parse(_changed("train.seed", 2), "m").projection("train") != base


def test_a_family_shares_everything_but_run_data_seed_gates_code_and_place() -> None:
    family = manifest.parse(GOOD, "m").family()
    for path, value in [
        ("train.seed", 2),
        ("run_id", "x"),
        ("data.train", f"snap://t/w/train@sha256:{'1' * 64}"),
        ("environment", {"python": "3.11"}),
    ]:
        assert manifest.parse(_changed(path, value), "m").family() == family
    assert manifest.parse(_changed("train.lr", 1.0e-3), "m").family() != family


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("manifest_branch_revision.yaml", "base_model.revision"),
        ("manifest_lr_string.yaml", "train.lr"),
        ("manifest_numeric_sha.yaml", "base_model.revision"),
        ("manifest_short_sha.yaml", "base_model.revision"),
        ("manifest_truncated_hash.yaml", "data.train"),
    ],
)
def test_the_shared_bad_manifests_are_refused(name: str, field: str) -> None:
    with pytest.raises(ManifestError, match=f": {field}: "):
        manifest.load(shared("cases", "c", name))


def test_the_shared_good_manifest_is_accepted_and_its_open_pins_are_listed() -> None:
    accepted = manifest.load(shared("cases", "c", "manifest_ok.yaml"))
    assert accepted.train.lr == 2e-4
    assert "base_model.tree_sha256" in manifest.pins(accepted).missing
