"""The process: ``python -m harness.systems.clickhouse.gateway --path DIR --users-file FILE``.

Prints one JSON line when it is ready and nothing else to standard output; ends on SIGTERM and SIGINT with exit code 0.
"""

import argparse
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .engine import Engine
from .errors import ClickHouseError
from .http import HttpConnection
from .http_sessions import NamedSessions
from .native import NativeConnection
from .server import LoopbackServer
from .users import UsersFileError, read_users
from .watch import ClientWatch

_EXIT_CANNOT_START = 2
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m harness.systems.clickhouse.gateway", description="Serve the ClickHouse engine."
    )
    parser.add_argument("--path", required=True, type=Path, help="folder of the data; made when it is missing")
    parser.add_argument("--listen", default="127.0.0.1", help="address to listen on; another one only in a container")
    parser.add_argument("--http-port", type=int, default=0, help="0: any free port")
    parser.add_argument("--native-port", type=int, default=0, help="0: any free port")
    parser.add_argument("--users-file", required=True, type=Path, help='JSON: {"user": "password", ...}')
    parser.add_argument("--max-connections", type=int, default=256, help="for each protocol; more are closed at once")
    parser.add_argument(
        "--greeting-seconds", type=float, default=10.0, help="for a native greeting or an HTTP request's head"
    )
    return parser.parse_args()


def _start(arguments: argparse.Namespace) -> tuple[LoopbackServer, LoopbackServer, Engine]:
    """Bind both ports before the engine starts, so that a port in use is reported at once."""
    users = read_users(arguments.users_file)
    listening = partial(
        LoopbackServer,
        users=users,
        watch=ClientWatch(),
        sessions=NamedSessions(),
        max_connections=arguments.max_connections,
        greeting_seconds=arguments.greeting_seconds,
        address=arguments.listen,
    )
    http, native = listening(HttpConnection, arguments.http_port), listening(NativeConnection, arguments.native_port)
    engine = Engine(arguments.path)
    http.engine = native.engine = engine
    return http, native, engine


def main() -> None:
    """Serve until a signal comes."""
    arguments = _arguments()
    try:
        http, native, engine = _start(arguments)
    except (UsersFileError, ClickHouseError, OSError) as error:
        sys.stderr.write(f"clickhouse gateway: {error}\n")
        sys.stderr.flush()
        os._exit(_EXIT_CANNOT_START)
    for server in (http, native):
        threading.Thread(target=server.serve_forever, name="clickhouse-listen", daemon=True).start()
    ready = {
        "http_port": http.server_address[1],
        "native_port": native.server_address[1],
        "version": engine.version,
    }
    wait = _take_signals()
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    wait()
    # Committed data is already on disk. An orderly shutdown of the engine would wait for running queries.
    os._exit(0)


def _take_signals() -> Callable[[], None]:
    """Replace chdb's handlers of SIGTERM and SIGINT with ours; return a function that waits for a signal.

    Any of the engine's threads may receive the signal; the wake-up descriptor always reaches the main thread.
    """
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.fileno())
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        with sending:
            while receiving.recv(1)[0] not in _STOP_SIGNALS:
                pass

    return wait


if __name__ == "__main__":
    main()
