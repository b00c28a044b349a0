"""The folder that a Postgres server shares with this machine."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from harness.model import LabError, SharedFolder, first_line
from harness.systems.postgres.client import open_connection
from harness.transports.postgres.sql import literal


def check(endpoints: dict[str, str], io: SharedFolder) -> None:
    """Let each side write a file that the other reads. Raises LabError with the cause of a failure."""
    from adbc_driver_manager import Error

    ours, theirs = (f"doctor-{uuid.uuid4().hex}" for _ in range(2))
    try:
        Path(io.here, ours).write_text("lab")
        with open_connection(endpoints) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_read_file({literal(f'{io.there}/{ours}')})")
            cursor.fetchall()
            cursor.execute(f"COPY (SELECT 1) TO {literal(f'{io.there}/{theirs}')}")
        Path(io.here, theirs).read_text()
    except (OSError, Error) as error:
        raise LabError(
            f"{io.here}: {first_line(error)}; the server and uid {os.getuid()} must both write and read it"
        ) from None
    finally:
        for name in (ours, theirs):
            Path(io.here, name).unlink(missing_ok=True)
