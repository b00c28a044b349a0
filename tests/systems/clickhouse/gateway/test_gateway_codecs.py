"""Compression of HTTP bodies and of native frames."""

import gzip
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from harness.systems.clickhouse.gateway import codecs
from harness.systems.clickhouse.gateway.errors import ClickHouseError
from harness.systems.clickhouse.gateway.wire import Reader, receiver

COMPRESS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "lz4": lz4.frame.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}

# Of a server.
CODES = {"gzip": 354, "deflate": 354, "lz4": 618, "zstd": 561}


@pytest.mark.parametrize("encoding", COMPRESS)
@given(st.lists(st.binary(max_size=500), min_size=1, max_size=3), st.integers(1, 100))
def test_a_body_of_one_or_more_streams_is_decompressed_however_it_arrives(encoding, values, piece):
    body = b"".join(COMPRESS[encoding](value) for value in values)
    pieces = [body[start : start + piece] for start in range(0, len(body), piece)]
    assert b"".join(codecs.decode_body(pieces, encoding)) == b"".join(values)


@pytest.mark.parametrize("encoding", COMPRESS)
def test_a_body_that_ends_too_early_is_an_error(encoding):
    body = COMPRESS[encoding](bytes(range(256)) * 100)
    with pytest.raises(ClickHouseError, match=rf"^Code: {CODES[encoding]}\."):
        list(codecs.decode_body([body[:-3]], encoding))


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", ""),
        ("identity", ""),
        ("br", ""),
        ("gzip, deflate", "gzip"),
        ("gzip;q=1.0, zstd;q=0.5, lz4", "zstd"),
        ("zstd;q=0, LZ4", "lz4"),
    ],
)
def test_the_servers_preferred_encoding_is_chosen(accepted, encoding):
    assert codecs.choose_encoding(accepted) == encoding


@pytest.mark.parametrize("method", [codecs.METHOD_NONE, codecs.METHOD_LZ4, codecs.METHOD_ZSTD])
@pytest.mark.parametrize("size", [1, 1000, (1 << 20) + 1])
def test_frames_give_back_what_went_in(method, size):
    data = bytes(range(256)) * (size // 256 + 1)
    frames = codecs.compress_frames(data[:size], method)
    assert b"".join(codecs.decode_frames([frames])) == data[:size]


def test_a_flipped_bit_in_a_frame_is_found():
    frame = bytearray(codecs.compress_frames(b"some data" * 100, codecs.METHOD_LZ4))
    frame[-1] ^= 1
    with pytest.raises(ClickHouseError, match=r"^Code: 271\."):
        codecs.read_frame(Reader(receiver([bytes(frame)])))


@given(st.binary(min_size=25, max_size=200))
def test_any_bytes_are_refused_as_a_frame(data):
    with pytest.raises((ClickHouseError, EOFError)):
        codecs.read_frame(Reader(receiver([data])))


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "lz4", "zstd"])
def test_a_body_that_swells_comes_in_pieces(encoding):
    """For any number of zeros, memory holds no more than one slice of the body can become."""
    zeros, encoder = bytes(1 << 20), codecs.ENCODERS[encoding](1)
    body = b"".join([*(bytes(encoder.compress(zeros)) for _ in range(256)), encoder.flush()])
    whole = [len(piece) for piece in codecs.decode_body([body], encoding)]
    assert sum(whole) == 256 << 20
    assert max(whole) <= 66 << 20
