"""Spark on local workers or on a master's workers: https://spark.apache.org/docs/latest/spark-standalone.html"""

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from subprocess import TimeoutExpired

from harness.registry import Unsupported
from harness.transports.workers import refuse_others, versions

MEMORY_MIB = 1_024  # JVM heap of each executor and of the driver
STOP_SECONDS = 30
# Log only errors, to stderr. Otherwise warnings about missing Hadoop libraries come first.
QUIET = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@contextmanager
def spark_session(workers, packages):
    """Yield a Spark session with one-core executors; everything it started ends with it.

    Without the address of a master, executors are local processes (`local-cluster`), and the driver's threads act as
    master and workers. Spark replaces an executor that dies and repeats its work. Raises RuntimeError for every Spark
    error, and if an executor has other versions of Python, PySpark or `packages`.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-", dir=workers.folder or None))
        stack.enter_context(_environment(_variables(workers, folder)))
        stack.callback(_end)
        builder = SparkSession.builder.master(workers.address or f"local-cluster[{workers.number},1,{MEMORY_MIB}]")
        try:
            session = builder.config(map=_options(workers, folder)).getOrCreate()
            names = ["pyspark", *packages]
            refuse_others(names, _versions_there(session, workers.number, names))
            yield session
        except (Py4JError, PySparkException) as error:  # its message comes from the JVM, which ends here
            raise RuntimeError(_said(error)) from None


def _variables(workers, folder):
    """Return environment variables that a driver and its executors need in addition to the existing ones.

    A cluster's executors run the Python that PYSPARK_PYTHON names, by default the same path as here.
    """
    if workers.address:
        return {} if "PYSPARK_PYTHON" in os.environ else {"PYSPARK_PYTHON": sys.executable}
    home = _home(folder)
    return {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": os.path.join(home, "conf"),
        "SPARK_HOME": home,
        "SPARK_LOCAL_DIRS": folder,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _home(folder):
    """Make a Spark home that links to PySpark's, because workers write below it and the package must not change."""
    import pyspark

    installed, home = os.path.dirname(pyspark.__file__), os.path.join(folder, "home")
    os.makedirs(os.path.join(home, "conf"))
    for name in ("bin", "jars"):
        os.symlink(os.path.join(installed, name), os.path.join(home, name))
    with open(os.path.join(home, "conf", "log4j2.properties"), "w") as file:
        file.write(QUIET)
    return home


def _options(workers, folder):
    """Return the session's options: memory, folders, Arrow, and one time zone on every machine."""
    of_driver = "-Duser.timezone=UTC"
    return {
        "spark.app.name": "dataframe-io-lab",
        "spark.cores.max": workers.number,
        "spark.driver.extraJavaOptions": f'{of_driver} "-Djava.io.tmpdir={folder}"',
        "spark.driver.memory": f"{MEMORY_MIB}m",
        "spark.executor.cores": 1,
        "spark.executor.extraJavaOptions": of_driver if workers.address else f'{of_driver} "-Djava.io.tmpdir={folder}"',
        "spark.executor.memory": f"{MEMORY_MIB}m",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": 120,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def _environment(variables):
    """Set variables in this process's environment for the block, so that child processes inherit them."""
    before = os.environ.copy()
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _versions_there(session, number, names):
    """Return each executor's versions; a barrier starts once all are there, with one task on each."""
    tasks = session.sparkContext.parallelize(range(number), number).barrier()
    return tasks.mapPartitions(lambda _: [versions(names)]).collect()


def _said(error):
    """Return the line of an error that names the cause: the last line of a task's traceback if it has one."""
    text = str(error.java_exception.getMessage() if hasattr(error, "java_exception") else error)
    before, traced, after = text.partition("Traceback (most recent call last):")
    lines = (after if traced else before).splitlines()
    return next((line for line in lines if line[:1].strip()), text)


def _end():
    """End the session, its executors and the driver's JVM, which would otherwise live as long as this process."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if context is not None:
        with suppress(Py4JError, OSError):  # the driver is already dead
            context.stop()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # it takes this as its end
        try:
            gateway.proc.wait(STOP_SECONDS)
        except TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()


def need_driver(session, driver):
    """Raise Unsupported if Spark has no jar with a JDBC driver."""
    from py4j.protocol import Py4JJavaError

    try:
        session._jvm.java.lang.Class.forName(driver)
    except Py4JJavaError:
        raise Unsupported(f"no jar of PySpark has {driver}; run python -m harness.lab.jars") from None


def in_tasks(session, parts, work):
    """Have executors process each part in a separate task; Spark repeats a task that dies with its executor."""
    if parts := list(parts):
        session.sparkContext.parallelize(parts, len(parts)).foreach(work)
