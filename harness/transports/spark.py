"""Spark on workers of its own, or on those of a master: https://spark.apache.org/docs/latest/spark-standalone.html"""

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from subprocess import TimeoutExpired

from harness.registry import Unsupported
from harness.transports.workers import refuse_others, versions

MEMORY_MIB = 1_024  # of each executor, and of the driver: the heaps of their JVMs
STOP_SECONDS = 30
# Nothing but errors, on stderr: a warning about every library of Hadoop's that is not there would come before them.
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
    """Yield a session of Spark with executors of one core each; all that it started ends with it.

    Where there is no address of a master, executors are processes of this machine (`local-cluster`, whose master and
    workers are threads of the driver): one that dies is replaced, and what it was doing done again. Raises RuntimeError
    where an executor has other versions of Python, of PySpark or of `packages`, and in place of every error of Spark's.
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
        except (Py4JError, PySparkException) as error:  # which asks the JVM for its text, and that ends here
            raise RuntimeError(_said(error)) from None


def _variables(workers, folder):
    """Return what a driver and its executors find in their environment, beside what is there.

    Those of a cluster run the Python that PYSPARK_PYTHON names; by default it lies where this one does.
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
    """Make a home for Spark that refers to PySpark's: workers write below it, and that is an installed package."""
    import pyspark

    installed, home = os.path.dirname(pyspark.__file__), os.path.join(folder, "home")
    os.makedirs(os.path.join(home, "conf"))
    for name in ("bin", "jars"):
        os.symlink(os.path.join(installed, name), os.path.join(home, name))
    with open(os.path.join(home, "conf", "log4j2.properties"), "w") as file:
        file.write(QUIET)
    return home


def _options(workers, folder):
    """Return the options of the session: its memory, its folders, Arrow, and one time zone whatever the machine's."""
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
    """Have variables in this process's environment meanwhile: what it starts inherits them."""
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
    """Return the versions that each executor has: a barrier begins when all of them are there, one task on each."""
    tasks = session.sparkContext.parallelize(range(number), number).barrier()
    return tasks.mapPartitions(lambda _: [versions(names)]).collect()


def _said(error):
    """Return the line of an error that says what is wrong: where a task's traceback is in it, what that ends with."""
    text = str(error.java_exception.getMessage() if hasattr(error, "java_exception") else error)
    before, traced, after = text.partition("Traceback (most recent call last):")
    lines = (after if traced else before).splitlines()
    return next((line for line in lines if line[:1].strip()), text)


def _end():
    """End the session and the driver's JVM, which would live as long as this process, and with it the executors."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if context is not None:
        with suppress(Py4JError, OSError):  # of a driver that is dead
            context.stop()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # which it takes for the end
        try:
            gateway.proc.wait(STOP_SECONDS)
        except TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()


def need_driver(session, driver):
    """Raise Unsupported where Spark has no jar with a JDBC driver."""
    from py4j.protocol import Py4JJavaError

    try:
        session._jvm.java.lang.Class.forName(driver)
    except Py4JJavaError:
        raise Unsupported(f"expected {driver} in a jar of PySpark, found none; python -m harness.lab.jars") from None


def in_tasks(session, parts, work):
    """Have executors do something with each part, in a task of its own: one that dies with its executor is repeated."""
    if parts := list(parts):
        session.sparkContext.parallelize(parts, len(parts)).foreach(work)
