"""What Daft's transports have in common: Ray for its workers, and sinks, sources and functions of Python in its plans.

Daft on Ray: https://docs.daft.ai/en/stable/distributed/ray/, sinks: https://docs.daft.ai/en/stable/connectors/custom/
"""

import logging
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

from harness.transports.parts import row_groups
from harness.transports.ray import of_our_own, on_every_node
from harness.transports.workers import refuse_others, versions

STORE_BYTES = 200_000_000  # of memory that a node shares: what crosses it here is less than a row for each part
START_SECONDS = 120  # for nodes, on a machine that is busy with other things


@contextmanager
def daft_on_ray(workers, packages):
    """Have Daft work on Ray: on the cluster at `workers.address`, else on nodes of our own on this machine.

    Daft has one process on every node of Ray, with a thread for each of its cores: so many workers are so many nodes
    of one core, beside one of none for what plans the work. The first query starts them, therefore one is run here.
    Raises RuntimeError where the workers have other versions of Python or of the packages than this process.
    """
    import daft
    import ray
    from daft.pickle import cloudpickle

    if "harness" in sys.modules:  # then workers need not have what a script has in itself
        for pickle in (cloudpickle, ray.cloudpickle):
            pickle.register_pickle_by_value(sys.modules["harness"])
    with ExitStack() as stack:
        options = {"address": workers.address} if workers.address else of_our_own(stack, 0)
        stack.callback(ray.shutdown)  # before its files go
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        if not workers.address:
            _start_nodes(stack, workers.number)
        refuse_others(["daft", "ray", *packages], on_every_node(versions, ["daft", "ray", *packages]))
        daft.set_runner_ray(noop_if_initialized=True)
        done_by_parts(len, ["first", "query"])
        yield


def _start_nodes(stack, number):
    """Start so many nodes of one core beside the head, one after the other; they end with the stack.

    Two that start at the same time take the same names for their sockets.
    """
    import ray

    here = ray.get_runtime_context().gcs_address
    # By default all nodes of a machine listen on the same port.
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--address={here}", "--num-cpus=1", "--block"]
    command += [f"--object-store-memory={STORE_BYTES}", "--disable-usage-stats", "--dashboard-agent-listen-port=0"]
    settings = {"RAY_AUTH_MODE": "token", "RAY_raylet_start_wait_time_s": f"{START_SECONDS}"}
    settings["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"] = "0"  # by default a node takes 30 seconds to end
    for expected in range(2, number + 2):
        node = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.DEVNULL)
        stack.callback(node.wait)
        stack.callback(node.terminate)
        deadline = time.monotonic() + START_SECONDS
        while sum(each["Alive"] for each in ray.nodes()) < expected:
            if node.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"expected a node of Ray within {START_SECONDS} s, found none; the log says why")
            time.sleep(0.05)


def done_by_parts(work, parts):
    """Have Daft do `work` with each part, as a task of its own; return what it returned, a whole number each.

    A task whose worker dies is given to another one: whatever `work` had done by then it does again.
    """
    import daft

    if not parts:
        return []

    @daft.func(return_dtype=daft.DataType.int64())
    def worked(part):
        return work(part)

    frame = daft.from_pydict({"part": list(parts)}).into_partitions(len(parts))
    return frame.select(worked(frame["part"]).alias("done")).to_pydict()["done"]


def sink_of(send):
    """Return a sink of Daft that gives each of its micropartitions to `send` as Arrow record batches.

    `send` returns the number of rows.
    """
    from daft.io.sink import DataSink, WriteResult
    from daft.recordbatch import MicroPartition

    class Sink(DataSink):
        def schema(self):
            return self.finalize([]).schema()

        def write(self, micropartitions):
            for part in micropartitions:
                rows = send(part.to_arrow().to_batches())
                yield WriteResult(result=None, bytes_written=part.size_bytes() or 0, rows_written=rows)

        def finalize(self, write_results):
            return MicroPartition.from_pydict({"rows": [sum(each.rows_written for each in write_results)]})

    return Sink()


def in_row_groups(source):
    """Return the rows of a Parquet file as a frame of Daft, of which each row group is a task of its own."""
    import daft

    groups = row_groups(source)
    return daft.read_parquet([source] * len(groups), row_groups=[[group] for group in groups])


def read_by_parts(read, parts, schema):
    """Return a frame of Daft, of which each part is a task of its own; `read` yields its Arrow record batches.

    `schema` is that of Arrow. Of uuids Daft makes a type that it cannot write (0.7.26): they become 16 bytes.
    """
    import pyarrow as pa
    from daft import Schema
    from daft.io.source import DataSource, DataSourceTask
    from daft.recordbatch import RecordBatch

    stored = pa.schema([(each.name, getattr(each.type, "storage_type", each.type)) for each in schema])
    of_daft = Schema.from_pyarrow_schema(stored)

    class OnePart(DataSourceTask):
        schema = of_daft

        def __init__(self, part):
            self.part = part

        async def read(self):
            for batch in read(self.part):
                columns = [getattr(column, "storage", column) for column in batch.columns]
                yield RecordBatch.from_arrow_record_batches([pa.record_batch(columns, schema=stored)], stored)

    class Parts(DataSource):
        name = "parts"
        schema = of_daft

        async def get_tasks(self, pushdowns):
            for part in parts:
                yield OnePart(part)

    return Parts().read()
