import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import EvalSetError
from ftpipeline.store.database import Database
from ftpipeline.store.eval_sets import EvalSetVersions

OLD, NEW = of_bytes(b"old"), of_bytes(b"new")


@pytest.fixture
def eval_sets(database: Database) -> EvalSetVersions:
    return EvalSetVersions(database)


def test_a_version_that_was_never_used_is_not_found(eval_sets: EvalSetVersions) -> None:
    assert eval_sets.find("gold", "v1") is None


def test_the_first_claim_of_a_version_stands(eval_sets: EvalSetVersions) -> None:
    eval_sets.claim("gold", "v1", OLD)
    eval_sets.claim("gold", "v1", OLD)
    assert eval_sets.find("gold", "v1") == OLD


def test_other_content_under_a_known_version_is_refused(eval_sets: EvalSetVersions) -> None:
    eval_sets.claim("gold", "v1", OLD)
    with pytest.raises(EvalSetError, match=r"'gold' v1.*new version") as caught:
        eval_sets.claim("gold", "v1", NEW)
    assert caught.value.exit_code == 2
    assert eval_sets.find("gold", "v1") == OLD


def test_a_new_version_and_another_set_may_hold_anything(eval_sets: EvalSetVersions) -> None:
    eval_sets.claim("gold", "v1", OLD)
    eval_sets.claim("gold", "v2", NEW)
    eval_sets.claim("safety", "v1", NEW)
    assert [eval_sets.find(*key) for key in (("gold", "v1"), ("gold", "v2"), ("safety", "v1"))] == [OLD, NEW, NEW]


def test_versions_are_told_oldest_first_by_their_number(eval_sets: EvalSetVersions) -> None:
    for version in ("v10", "v2", "v1"):
        eval_sets.claim("gold", version, OLD)
    eval_sets.claim("safety", "v3", NEW)
    assert list(eval_sets.versions("gold").items()) == [("v1", OLD), ("v2", OLD), ("v10", OLD)]
    assert eval_sets.versions("unheard-of") == {}
