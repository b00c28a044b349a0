"""Made-up transports of a database, for tests of the worker: each does, or says, one thing."""

from pathlib import Path

import polars as pl

from harness.worker.contracts.databases import Addresses, DatabaseAnswer, DatabaseJob
from harness.worker.messages import Failed
from tests.made_up import MadeUp

LOGICAL_TYPES = {"k": "uuid", "i": "int32"}
UP = """
@contextmanager
def connect(uri):
    log("connect", uri)
    yield "connection"
    log("close")

@transport("", "", requires=["needed"])
def write_polars(connection, frame, table):
    log("write", connection, len(frame), table)

@transport("", "")
def write_pandas(connection, frame, table):
    log("write", type(frame).__module__, len(frame), table)

@transport("", "", requires=["needed"])
def read_polars(connection, table):
    import polars
    log("read", connection, table)
    return polars.DataFrame({"k": ["a"], "i": [7]})

@transport("", "", frame="polars")
def read_arrow(connection, table):
    import polars
    return polars.DataFrame({"k": ["a"], "i": [7]}).to_arrow()

@transport("", "", frame="polars")
def read_half(connection, table):
    import polars
    return polars.DataFrame({"k": ["a"], "i": [7.5]})

@transport("", "", frame="polars")
def read_unsupported(connection, table):
    raise Unsupported("no such format")

@transport("", "", frame="polars")
def read_error(connection, table):
    raise RuntimeError("server said: \\udcff no")

class Panic(BaseException):
    pass

@transport("", "", frame="polars")
def read_panic(connection, table):
    raise Panic("out of range")

@transport("", "", frame="polars")
def read_exit(connection, table):
    raise SystemExit("left")

@transport("", "", frame="polars", requires=["no_such_package"])
def read_missing(connection, table):
    pass

@transport("", "", frame="polars")
def read_noisy(connection, table):
    print("from Python")
    os.system("echo from a child")
    os.write(1, b"from C\\n")
    return read_polars(connection, table)

@transport("", "", frame="polars")
def read_forever(connection, table):
    pipe = open(os.environ["LAB_ALIVE"], "w")
    print(os.getpid(), file=pipe, flush=True)
    time.sleep(60)

@transport("", "", frame="polars")
def read_in_phases(connection, table):
    import polars
    from harness.phases import phase
    with phase("encode" if table == "warmup" else "decode"):
        return polars.DataFrame({"k": ["a"], "i": [7]})
"""
UP_ASYNC = """
@asynccontextmanager
async def connect(uri):
    log("connect", uri)
    yield "connection"
    log("close")

@transport("", "", requires=["needed"])
async def read_polars(connection, table):
    import asyncio, polars
    await asyncio.sleep(0)
    log("read", connection, table)
    return polars.DataFrame({"k": ["a"], "i": [7]})

@transport("", "", frame="polars")
async def read_watched(connection, table):
    import polars
    polars.DataFrame.__repr__ = lambda frame: log("printed") or "a frame"
    return polars.DataFrame({"k": ["a"], "i": [7]})

@transport("", "", frame="polars")
async def read_in_phases(connection, table):
    import polars
    from harness.phases import phase
    with phase("encode" if table == "warmup" else "decode"):
        return polars.DataFrame({"k": ["a"], "i": [7]})
"""


class Lab(MadeUp):
    """Made-up transports of a database, and the frame that writes are given."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, up=UP, up_async=UP_ASYNC)
        frame = pl.DataFrame({"k": [str(n) for n in range(1_500)], "i": range(1_500)}, schema_overrides={"i": pl.Int32})
        frame.write_parquet(folder / "data.parquet")

    def job(self, function: str, module: str = "up") -> DatabaseJob:
        return DatabaseJob(
            transport=f"made.{module}.{function}",
            dataset=str(self.folder / "data.parquet"),
            logical_types=LOGICAL_TYPES,
            addresses=Addresses("made://up"),
            table="measured",
            warmup_table="warmup",
        )

    def measure(self, function: str, module: str = "up") -> DatabaseAnswer | Failed:
        return self.run(self.job(function, module))
