"""The inside of an embedded lab, and its remains: its processes, its folders, the rows of its databases."""

from pathlib import Path

import httpx
import psutil
import psycopg

from harness.lab.embedded import EmbeddedLab


def processes_in(folder: Path) -> list[psutil.Process]:
    """Every process that works inside a folder: services, their backends, initdb."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def labs_in(folder: Path) -> list[Path]:
    return list(folder.glob("lab-*"))


def nothing_is_left_in(folder: Path) -> bool:
    return not labs_in(folder) and not processes_in(folder)


def postgres(lab: EmbeddedLab, sql: str) -> list[tuple]:
    with psycopg.connect(lab.endpoints["postgres"], autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def clickhouse(lab: EmbeddedLab, sql: str) -> str:
    return httpx.post(lab.endpoints["clickhouse_http"], content=sql).raise_for_status().text
