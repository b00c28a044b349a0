"""Compression: HTTP bodies (gzip, deflate, lz4, zstd) and the compressed frames of the native protocol."""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import lz4.block
import lz4.frame
import zstandard
from clickhouse_cityhash.cityhash import CityHash128

from .errors import Code, refusal
from .wire import Reader, receiver

_GZIP_WINDOW = 31
_SLICE_BYTES = 1 << 11  # decompressed at a time: for zeros zstd returns 64 MB, gzip 2 MB
_PIECE_BYTES = 1 << 20  # passed on together
_LOW_64_BITS = (1 << 64) - 1

# ---------------------------------------------------------------- HTTP bodies

NO_ENCODING = frozenset({"", "none", "auto"})
_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP_WINDOW),
    "deflate": zlib.decompressobj,
    "lz4": lz4.frame.LZ4FrameDecompressor,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj(),
}
_FAILURES = {
    "gzip": Code.ZLIB_INFLATE_FAILED,
    "deflate": Code.ZLIB_INFLATE_FAILED,
    "lz4": Code.LZ4_DECODER_FAILED,
    "zstd": Code.ZSTD_DECODER_FAILED,
}
_DECODING_ERRORS = (zlib.error, zstandard.ZstdError, RuntimeError, EOFError)


def decode_body(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Decompress a request's body. Raises ClickHouseError for an unknown encoding and for damaged or truncated data."""
    if encoding in NO_ENCODING:
        yield from chunks
        return
    if encoding not in _DECODERS:
        known = ", ".join(f"'{name}'" for name in ("auto", "none", *_DECODERS))
        text = f"Unknown compression method '{encoding}'. Only {known} are supported as compression methods"
        raise refusal(Code.NOT_IMPLEMENTED, text)
    decoder = _DECODERS[encoding]()
    started = False
    ready: list[bytes] = []
    size = 0
    for data in _slices(chunks):
        while data:
            if decoder.eof:  # one body may hold several consecutive streams
                decoder = _DECODERS[encoding]()
            try:
                out = decoder.decompress(data)
            except _DECODING_ERRORS as error:
                raise refusal(_FAILURES[encoding], f"Cannot decompress the {encoding} body: {error}") from error
            started = True
            data = (decoder.unused_data or b"") if decoder.eof else b""
            ready.append(out)
            size += len(out)
        if size >= _PIECE_BYTES:
            yield b"".join(ready)
            ready, size = [], 0
    if started and not decoder.eof:
        raise refusal(_FAILURES[encoding], f"Cannot decompress the {encoding} body: it ends before its last byte")
    if size:
        yield b"".join(ready)


def _slices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _SLICE_BYTES):
            yield chunk[start : start + _SLICE_BYTES]


class Encoder(Protocol):
    """Compresses a response piece by piece."""

    def compress(self, data: bytes | memoryview) -> bytes | memoryview:
        """Return compressed bytes, perhaps none yet."""

    def flush(self) -> bytes:
        """Return the remaining compressed bytes."""


class Lz4Encoder:
    """One lz4 frame."""

    def __init__(self, level: int) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor(compression_level=level)
        self._begun = False

    def _begin(self) -> bytes:
        head = b"" if self._begun else self._frame.begin()
        self._begun = True
        return head

    def compress(self, data: bytes | memoryview) -> bytes:
        """Return compressed bytes, with the frame's head before the first."""
        return self._begin() + self._frame.compress(data)

    def flush(self) -> bytes:
        """Return the rest of the frame."""
        return self._begin() + self._frame.flush()


class FrameEncoder:
    """The native protocol's compressed frames, as an HTTP response with compress=1 has them."""

    def __init__(self, method: int) -> None:
        self._method = method

    def compress(self, data: bytes | memoryview) -> bytes:
        """Return the data as frames."""
        return compress_frames(data, self._method)

    def flush(self) -> bytes:
        """Return nothing: every frame is complete."""
        return b""


# Content-Encoding -> its encoder, by level (http_zlib_compression_level), from the most to the least preferred:
# chooseHTTPCompressionMethod of a ClickHouse server, without br, snappy, xz, bz2.
ENCODERS: dict[str, Callable[[int], Encoder]] = {
    "zstd": lambda level: zstandard.ZstdCompressor(level=level).compressobj(),
    "lz4": Lz4Encoder,
    "gzip": lambda level: zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW),
    "deflate": zlib.compressobj,
}


def choose_encoding(accepted: str) -> str:
    """Choose the encoding of a response as a server does, from an Accept-Encoding header; "" means no compression."""
    names = set()
    for item in accepted.split(","):
        name, _, quality = item.strip().partition(";")
        if quality.replace(" ", "") not in ("q=0", "q=0.0"):
            names.add(name.strip().lower())
    return next((name for name in ENCODERS if name in names), "")


# ---------------------------------------------------------------- native frames

METHOD_NONE, METHOD_LZ4, METHOD_ZSTD = 0x02, 0x82, 0x90
_METHODS_OF_SETTING = {"NONE": METHOD_NONE, "LZ4": METHOD_LZ4, "LZ4HC": METHOD_LZ4, "ZSTD": METHOD_ZSTD}
_FRAME_HEAD = struct.Struct("<BII")  # method, size with this head, size of the data
_FRAME_CHECKSUM = struct.Struct("<QQ")
_FRAME_DATA_BYTES = 1 << 20
_MAX_FRAME_BYTES = 1 << 30  # DBMS_MAX_COMPRESSED_SIZE
_METHODS: dict[int, tuple[Callable[[bytes], bytes], Callable[[bytes, int], bytes]]] = {
    METHOD_NONE: (lambda data: data, lambda data, size: data),
    METHOD_LZ4: (
        lambda data: lz4.block.compress(data, store_size=False),
        lambda data, size: lz4.block.decompress(data, uncompressed_size=size),
    ),
    METHOD_ZSTD: (
        lambda data: zstandard.ZstdCompressor(level=1).compress(data),
        lambda data, size: zstandard.ZstdDecompressor().decompress(data, max_output_size=size),
    ),
}


def method_of_setting(name: str) -> int:
    """Return the method for a value of network_compression_method. Raises ClickHouseError (36) for an unknown one."""
    if name not in _METHODS_OF_SETTING:
        raise refusal(Code.BAD_ARGUMENTS, "Setting 'network_compression_method' must be NONE, ZSTD, LZ4 or LZ4HC.")
    return _METHODS_OF_SETTING[name]


def compress_frames(data: bytes | memoryview, method: int) -> bytes:
    """Compress data into frames of at most a megabyte of data each, with their checksums."""
    compress = _METHODS[method][0]
    frames = []
    view = memoryview(data)
    for start in range(0, len(data), _FRAME_DATA_BYTES):
        piece = bytes(view[start : start + _FRAME_DATA_BYTES])
        body = compress(piece)
        frame = _FRAME_HEAD.pack(method, _FRAME_HEAD.size + len(body), len(piece)) + body
        frames += [_checksum(frame), frame]
    return b"".join(frames)


def read_frame(reader: Reader) -> bytes:
    """Read and decompress one frame.

    Raises ClickHouseError for a wrong checksum or data that does not decompress (271), an unknown method (432) and a
    size out of range (39). The stream behind the frame cannot be trusted after any of them.
    """
    checksum = reader.exact(_FRAME_CHECKSUM.size)
    head = reader.exact(_FRAME_HEAD.size)
    method, size, data_size = _FRAME_HEAD.unpack(head)
    if not _FRAME_HEAD.size <= size <= _MAX_FRAME_BYTES or data_size > _MAX_FRAME_BYTES:
        limit = _MAX_FRAME_BYTES
        raise refusal(Code.TOO_LARGE_SIZE_COMPRESSED, f"Compressed frame of {size} bytes: longer than {limit}")
    body = reader.exact(size - _FRAME_HEAD.size)
    if _checksum(head + body) != checksum:
        raise refusal(Code.CANNOT_DECOMPRESS, "Checksum doesn't match: corrupted data in a compressed frame")
    if method not in _METHODS:
        raise refusal(Code.UNKNOWN_CODEC, f"Unknown codec family code: {method}: use none, LZ4 or ZSTD")
    try:
        data = _METHODS[method][1](body, data_size)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError) as error:
        raise refusal(Code.CANNOT_DECOMPRESS, f"Cannot decompress a frame: {error}") from error
    if len(data) != data_size:
        raise refusal(
            Code.CANNOT_DECOMPRESS, f"Cannot decompress a frame: it has {len(data)} bytes, its head says {data_size}"
        )
    return data


def decode_frames(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a body of frames, as in an HTTP request with decompress=1."""
    reader = Reader(receiver(chunks))
    while reader.more():
        try:
            yield read_frame(reader)
        except EOFError:
            raise refusal(Code.CANNOT_READ_ALL_DATA, "Cannot read all data: the body ends inside a frame") from None


def _checksum(frame: bytes) -> bytes:
    value = CityHash128(frame)
    return _FRAME_CHECKSUM.pack(value >> 64, value & _LOW_64_BITS)
