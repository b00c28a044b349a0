"""Ray, whose workers run tasks for transports of several databases: a local instance or a running cluster.

https://docs.ray.io/en/latest/data/data.html
"""

import logging
import os
import secrets
import sys
import tempfile
from contextlib import ExitStack, contextmanager

from harness.transports.workers import refuse_others, versions

# Shared memory of a local Ray, by default a third of the machine's. Ray spills the rest to its folder.
OBJECT_STORE_BYTES = 512 << 20


@contextmanager
def ray_of(workers, packages):
    """Start a Ray with this many one-core workers, or join the one at the address; end all that was started.

    Raises RuntimeError if its workers have other versions of Python, Ray or the packages than this process.
    """
    import ray
    from ray.data import DataContext, ExecutionResources

    context = DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context.execution_options.resource_limits = ExecutionResources.for_limits(cpu=workers.number)
    if "harness" in sys.modules:  # workers then need not import what a script defines itself
        ray.cloudpickle.register_pickle_by_value(sys.modules["harness"])
    with ExitStack() as stack:
        options = of_our_own(stack, workers.number) if not workers.address else {"address": workers.address}
        stack.callback(ray.shutdown)
        try:
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError as error:  # a wrong token raises this as well
            hint = "check the address, and RAY_AUTH_TOKEN if it needs a token"
            raise RuntimeError(f"no Ray answers at {workers.address}: {error}; {hint}") from error
        refuse_others(["ray", *packages], on_every_node(versions, ["ray", *packages]))
        yield


def of_our_own(stack, number):
    """Return options for a local Ray that takes orders only from this process; the stack removes its files."""
    # Ray listens on all addresses, so it requires a token. By default it stores the token in the user's home.
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's processes set their titles, which would overwrite the environment that other processes see.
    os.environ.setdefault("SPT_NOENV", "1")
    # A socket path has at most 107 bytes, and Ray needs 64 of them.
    folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)
    return {
        "address": "local",
        "num_cpus": number,
        "include_dashboard": False,
        "object_store_memory": OBJECT_STORE_BYTES,
        "_temp_dir": stack.enter_context(folder),
    }


def on_every_node(call, *arguments):
    """Call a function once on every Ray node that has cores, and return the results."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    there = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    remote = ray.remote(num_cpus=0)(call)
    return ray.get([remote.options(scheduling_strategy=strategy).remote(*arguments) for strategy in there])


def drive(call):
    """Call a function that drives Ray Data: here, or in a cluster task if this process is a client (ray://).

    Ray Data does not support the client (ray-project/ray #48682). Ray does not repeat the task, because it may already
    have written rows.
    """
    import ray
    from ray.data import DataContext

    if not ray.util.client.ray.is_connected():
        return call()
    context = DataContext.get_current()

    def there():
        DataContext._set_current(context)
        return call()

    return ray.get(ray.remote(num_cpus=0, max_retries=0)(there).remote())


def on_workers(call, parts):
    """Call a function with each part (a tuple of arguments) in a separate Ray Data task on a worker.

    Ray repeats a task whose worker dies.
    """
    import ray

    def with_part(batch):
        call(*parts[batch["id"][0]])
        return batch

    def all_parts():
        numbers = ray.data.range(len(parts), override_num_blocks=len(parts))
        numbers.map_batches(with_part, batch_size=1).materialize()

    if parts:
        drive(all_parts)
