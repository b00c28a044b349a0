"""Bytes between sockets and pipes: all of them, in order, with or without splice, and never for ever."""

import io
import os
import socket
import threading
from collections.abc import Iterator
from email.message import Message

import pytest

from harness.systems.clickhouse.gateway import http_request, wire
from harness.systems.clickhouse.gateway.http_request import Body
from harness.systems.clickhouse.gateway.wire import TimedSocket

DATA = os.urandom(3 << 20)
CHUNKS = (DATA[:10], DATA[10 : 1 << 20], DATA[1 << 20 : (1 << 20) + 1], DATA[(1 << 20) + 1 :])
CHUNKED = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in CHUNKS) + b"0\r\n\r\n"
FRAMINGS = {
    "chunked": ({"Transfer-Encoding": "chunked"}, CHUNKED),
    "counted": ({"Content-Length": str(len(DATA))}, DATA),
}


@pytest.fixture(params=(True, False), ids=("splice", "copies"))
def splices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether this system can move bytes, or a test forbids it."""
    splices = bool(request.param) and wire.CAN_SPLICE
    monkeypatch.setattr(wire, "CAN_SPLICE", splices)
    monkeypatch.setattr(http_request, "CAN_SPLICE", splices)
    return splices


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over TCP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far = listening.accept()[0]
    with near, far:
        yield near, far


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    """Both ends of a pipe; one that a test closes becomes -1."""
    both = list(wire.open_pipe())
    yield both
    for end in both:
        if end >= 0:
            os.close(end)


def _close(pipe: list[int], end: int) -> None:
    os.close(pipe[end])
    pipe[end] = -1


class _Collected(threading.Thread):
    """All bytes out of a descriptor until its other end is closed, taken slowly."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self.descriptor, self.data = descriptor, b""
        self.start()

    def run(self) -> None:
        while piece := os.read(self.descriptor, 50_000):
            self.data += piece

    def all(self) -> bytes:
        self.join(90)
        assert not self.is_alive()
        return self.data


def _body(connection: socket.socket, headers: dict[str, str], idle_seconds: float = 10.0) -> Body:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return Body(io.BufferedReader(TimedSocket(connection, idle_seconds)), message)


@pytest.mark.usefixtures("splices")
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("before", [0, 1, 3], ids=lambda count: f"{count} pieces read before")
def test_a_body_is_poured_as_it_is(
    ends: tuple[socket.socket, socket.socket], pipe: list[int], framing: str, before: int
) -> None:
    headers, sent = FRAMINGS[framing]
    near, far = ends
    sender = threading.Thread(target=lambda: near.sendall(sent), daemon=True)
    sender.start()
    body = _body(far, headers)
    pieces = body.decoded(in_frames=False)
    begun = b"".join(next(pieces) for _ in range(before))
    collected = _Collected(pipe[0])
    body.pour(pipe[1])
    _close(pipe, 1)
    assert begun + collected.all() == DATA
    assert body.drain()
    sender.join(90)


@pytest.mark.usefixtures("splices")
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_body_that_breaks_off_is_no_end(
    ends: tuple[socket.socket, socket.socket], pipe: list[int], framing: str
) -> None:
    headers, sent = FRAMINGS[framing]
    near, far = ends
    collected = _Collected(pipe[0])

    def send_some() -> None:
        near.sendall(sent[:-100_000])
        near.shutdown(socket.SHUT_WR)

    threading.Thread(target=send_some, daemon=True).start()
    body = _body(far, headers)
    body.decoded(in_frames=False)
    with pytest.raises(EOFError, match="before its end"):
        body.pour(pipe[1])
    _close(pipe, 1)
    assert DATA.startswith(collected.all())


@pytest.mark.usefixtures("splices")
def test_a_body_that_stops_coming_is_given_up(ends: tuple[socket.socket, socket.socket], pipe: list[int]) -> None:
    near, far = ends
    near.sendall(DATA[:100_000])
    body = _body(far, {"Content-Length": str(len(DATA))}, idle_seconds=0.2)
    body.decoded(in_frames=False)
    with pytest.raises(TimeoutError):
        body.pour(pipe[1])


@pytest.mark.usefixtures("splices")
def test_a_reader_that_leaves_ends_the_pouring(ends: tuple[socket.socket, socket.socket], pipe: list[int]) -> None:
    near, far = ends
    threading.Thread(target=lambda: near.sendall(DATA), daemon=True).start()
    body = _body(far, {"Content-Length": str(len(DATA))})
    body.decoded(in_frames=False)
    _close(pipe, 0)
    body.pour(pipe[1])
    assert body.drain()


@pytest.mark.long
@pytest.mark.usefixtures("splices")
def test_pieces_are_moved_to_a_client_that_reads_slowly(
    ends: tuple[socket.socket, socket.socket], pipe: list[int]
) -> None:
    near, far = ends
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    near.settimeout(90.0)
    threading.Thread(target=lambda: (wire.write_all(pipe[1], (DATA,)), _close(pipe, 1)), daemon=True).start()
    collected = _Collected(far.fileno())
    sizes = []
    for piece in wire.pieces(pipe[0]):
        sizes.append(len(piece))
        piece.move(near, 90.0)
    near.shutdown(socket.SHUT_WR)
    assert collected.all() == DATA
    assert sum(sizes) == len(DATA)


@pytest.mark.usefixtures("splices")
def test_a_client_that_does_not_read_is_given_up(ends: tuple[socket.socket, socket.socket], pipe: list[int]) -> None:
    near, _ = ends
    near.settimeout(0.2)
    writer = threading.Thread(target=lambda: wire.write_all(pipe[1], (DATA * 10,)), daemon=True)
    writer.start()

    def move_all() -> None:
        for piece in wire.pieces(pipe[0]):
            piece.move(near, 0.2)

    with pytest.raises(TimeoutError):
        move_all()
    _close(pipe, 0)
    writer.join(90)
    assert not writer.is_alive()


def test_a_piece_that_was_not_taken_is_gone_with_the_next(pipe: list[int]) -> None:
    os.write(pipe[1], b"first")
    pieces = wire.pieces(pipe[0])
    next(pieces)
    os.write(pipe[1], b"second")
    assert next(pieces).read() == b"second"
    _close(pipe, 1)
    assert next(pieces, None) is None
