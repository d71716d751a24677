"""The container: one encoding for given members, refused in every other form, opened by any tar program."""

import io
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.cycle.bundle_format import (
    BUNDLE_LIMIT,
    CONTAINER,
    LINEAGE,
    MEMBER_LIMIT,
    STATEMENT,
    blob_name,
    decode,
    encode,
)
from ftpipeline.digest import of_bytes
from ftpipeline.receipts import VerificationError

NAMES = [LINEAGE, STATEMENT, *(blob_name(of_bytes(bytes([number]))) for number in range(4))]
MEMBERS = {LINEAGE: b"x" * 700, STATEMENT: b"", NAMES[2]: b"y" * 512}

members_of_bundles = st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=1100))


def _archive(*infos: tuple[tarfile.TarInfo, bytes], format: int = tarfile.USTAR_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for info, content in infos:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


@given(members_of_bundles)
def test_a_container_reads_back_as_the_members_it_was_made_of(members: dict[str, bytes]) -> None:
    assert decode(encode(members)) == members


@given(members_of_bundles)
def test_the_order_of_the_members_changes_no_byte(members: dict[str, bytes]) -> None:
    assert encode(dict(reversed(members.items()))) == encode(members)


@given(members_of_bundles, st.data())
def test_a_flipped_bit_is_refused_or_changes_the_content_of_a_member(
    members: dict[str, bytes], data: st.DataObject
) -> None:
    container = bytearray(encode(members))
    container[data.draw(st.integers(0, len(container) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(VerificationError):
        decoded = decode(bytes(container))
        assert decoded.keys() == members.keys()
        assert decoded != members


@given(st.binary(max_size=2000))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(VerificationError) as refused:
        decode(data)
    assert refused.value.where == CONTAINER


@given(st.integers(0, len(encode(MEMBERS)) - 1))
def test_a_container_that_is_cut_short_is_refused(length: int) -> None:
    with pytest.raises(VerificationError):
        decode(encode(MEMBERS)[:length])


def test_any_tar_program_lists_a_container() -> None:
    with tarfile.open(fileobj=io.BytesIO(encode(MEMBERS)), mode="r:") as archive:
        found = {info.name: archive.extractfile(info) for info in archive.getmembers()}
    assert {name: file.read() for name, file in found.items() if file} == MEMBERS


def test_the_format_of_the_container_is_frozen() -> None:
    assert of_bytes(encode(MEMBERS)) == "sha256:e4ecc6e72a60812e64b29da16dbde1d5c84be1e1a921c959749a015391162558"


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../lineage.json", "blobs/../lineage.json", "lineage.json/", "Lineage.json", "", "blobs/x"]
)
def test_a_name_that_no_bundle_has_is_refused(name: str) -> None:
    with pytest.raises(VerificationError, match="which no bundle has"):
        encode({name: b""})
    with pytest.raises(VerificationError):
        decode(_archive((tarfile.TarInfo(name), b"")))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_what_is_no_regular_file_is_refused(kind: bytes) -> None:
    info = tarfile.TarInfo(LINEAGE)
    info.type, info.linkname = kind, STATEMENT
    with pytest.raises(VerificationError, match="container"):
        decode(_archive((info, b"")))


def test_two_members_of_one_name_are_refused() -> None:
    twice = _archive((tarfile.TarInfo(LINEAGE), b"first"), (tarfile.TarInfo(LINEAGE), b"second"))
    with pytest.raises(VerificationError, match="twice"):
        decode(twice)


def test_members_in_another_order_are_refused() -> None:
    first, second = encode({LINEAGE: b"a"})[:1024], encode({STATEMENT: b"b"})
    assert decode(first + second) == {LINEAGE: b"a", STATEMENT: b"b"}
    with pytest.raises(VerificationError, match="damaged"):
        decode(second[:1024] + encode({LINEAGE: b"a"}))


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(VerificationError, match="damaged"):
        decode(encode(MEMBERS) + bytes(512))


def test_a_member_larger_than_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(VerificationError, match="holds at most"):
        encode({LINEAGE: bytes(MEMBER_LIMIT + 1)})
    info = tarfile.TarInfo(LINEAGE)
    info.size = MEMBER_LIMIT + 1
    with pytest.raises(VerificationError, match="holds at most"):
        decode(info.tobuf(tarfile.USTAR_FORMAT))


def test_a_bundle_larger_than_the_limit_is_refused() -> None:
    with pytest.raises(VerificationError, match="larger than"):
        decode(bytes(BUNDLE_LIMIT + 1))
