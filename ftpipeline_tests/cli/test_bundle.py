"""The verb `verify`: the same proof for people and for scripts, and an error that says what does not verify."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ftpipeline.cli.bundle import verify
from ftpipeline.cycle.bundle import BundleInfo, export_bundle
from ftpipeline.cycle.bundle_verify import verify_bundle
from ftpipeline.receipts import PublicKey, VerificationError
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import QUERY, make_report, new_key

APP = typer.Typer()
APP.command()(verify)


@pytest.fixture
def bundle(store: Store, tmp_path: Path) -> BundleInfo:
    key = new_key()
    key.public.write(tmp_path / "key.pem")
    return export_bundle(store, make_report(store), tmp_path / "bundle.tar", key)


def _verify(bundle: BundleInfo, *options: str) -> Result:
    key = bundle.path.with_name("key.pem")
    return CliRunner().invoke(APP, [str(bundle.path), "--key", str(key), *options])


def test_a_person_reads_the_artifact_its_signer_and_the_source_query(bundle: BundleInfo) -> None:
    shown = _verify(bundle)
    assert shown.exit_code == 0
    assert f"verified: {bundle.root}" in shown.output
    assert bundle.keyid in shown.output
    assert shown.output.endswith(f"{QUERY}\n")


def test_a_script_reads_the_proof(bundle: BundleInfo) -> None:
    key = PublicKey.read(bundle.path.with_name("key.pem"))
    assert json.loads(_verify(bundle, "--json").stdout) == verify_bundle(bundle.path, key).to_json()


def test_an_altered_bundle_is_a_verdict_against(bundle: BundleInfo) -> None:
    altered = bundle.path.read_bytes()[:-1] + b"x"
    bundle.path.unlink()
    bundle.path.write_bytes(altered)
    refused = _verify(bundle).exception
    assert isinstance(refused, VerificationError)
    assert (refused.exit_code, refused.where) == (1, "the container")
