"""Shared by Daft's transports: Ray workers, and Python sinks, sources and functions in Daft's plans.

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

STORE_BYTES = 200_000_000  # shared memory of a node: each part sends less than a row through it
START_SECONDS = 120  # limit for a node to start on a busy machine


@contextmanager
def daft_on_ray(workers, packages):
    """Run Daft on Ray: on the cluster at `workers.address`, otherwise on nodes started on this machine.

    Daft runs one process on every Ray node, with a thread for each of the node's cores. Each worker is therefore a node
    of one core, and the planner runs on a head node without cores. The first query starts the processes, so this
    function runs one. Raises RuntimeError if a worker has other versions of Python or of the packages than this
    process.
    """
    import daft
    import ray
    from daft.pickle import cloudpickle

    if "harness" in sys.modules:  # workers then need not import what a script defines itself
        for pickle in (cloudpickle, ray.cloudpickle):
            pickle.register_pickle_by_value(sys.modules["harness"])
    with ExitStack() as stack:
        options = {"address": workers.address} if workers.address else of_our_own(stack, 0)
        stack.callback(ray.shutdown)  # before its files are removed
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        if not workers.address:
            _start_nodes(stack, workers.number)
        refuse_others(["daft", "ray", *packages], on_every_node(versions, ["daft", "ray", *packages]))
        daft.set_runner_ray(noop_if_initialized=True)
        done_by_parts(len, ["first", "query"])
        yield


def _start_nodes(stack, number):
    """Start this many one-core nodes next to the head, one after the other; they end with the stack.

    Two nodes that start at the same time choose the same socket names.
    """
    import ray

    here = ray.get_runtime_context().gcs_address
    # By default all nodes on a machine listen on the same port.
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--address={here}", "--num-cpus=1", "--block"]
    command += [f"--object-store-memory={STORE_BYTES}", "--disable-usage-stats", "--dashboard-agent-listen-port=0"]
    settings = {"RAY_AUTH_MODE": "token", "RAY_raylet_start_wait_time_s": f"{START_SECONDS}"}
    settings["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"] = "0"  # by default a node takes 30 seconds to shut down
    for expected in range(2, number + 2):
        node = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.DEVNULL)
        stack.callback(node.wait)
        stack.callback(node.terminate)
        deadline = time.monotonic() + START_SECONDS
        while sum(each["Alive"] for each in ray.nodes()) < expected:
            if node.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no node of Ray started within {START_SECONDS} s; the log says why")
            time.sleep(0.05)


def done_by_parts(work, parts):
    """Have Daft run `work` on each part in a separate task; return the results, one integer per part.

    If a worker dies, Daft gives its task to another worker, which repeats everything `work` had already done.
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
    """Return a Daft sink that passes each micropartition to `send` as Arrow record batches.

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
    """Return the rows of a Parquet file as a Daft frame with one task per row group."""
    import daft

    groups = row_groups(source)
    return daft.read_parquet([source] * len(groups), row_groups=[[group] for group in groups])


def read_by_parts(read, parts, schema):
    """Return a Daft frame with one task per part; `read` yields the part's Arrow record batches.

    `schema` is an Arrow schema. Daft 0.7.26 turns uuids into a type that it cannot write, so they become 16 bytes.
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
