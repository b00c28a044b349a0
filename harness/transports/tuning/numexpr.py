"""numexpr, expressions over numpy arrays in several threads: https://numexpr.readthedocs.io"""

from contextlib import contextmanager

from harness.registry import Unsupported, transport


@contextmanager
def connect(folder, s3):
    """Yield nothing: there is nothing to connect to."""
    yield None


@transport(
    "job",
    path="a = b + 3 c",
    payload="arrays of float64",
    requires=["numexpr", "numpy"],
    published="STREAM triad",
)
def triad(connection, elements, threads):
    """Return the memory bandwidth by STREAM's triad over three arrays of so many elements, with so many threads.

    As in STREAM (J. McCalpin, https://www.cs.virginia.edu/stream/ref.html) the best of ten rounds counts, and 24 bytes
    for an element: what is read before it is overwritten is not counted. The time of the run is that of all of it, the
    arrays' making too. The answer are the values found in a sample of the result.
    """
    import time

    import numexpr
    import numpy

    elements, threads = int(elements), int(threads)
    if threads > numexpr.MAX_THREADS:
        raise Unsupported(f"numexpr has at most {numexpr.MAX_THREADS} threads; set NUMEXPR_MAX_THREADS={threads}")
    numexpr.set_num_threads(threads)
    arrays = {"b": numpy.full(elements, 2.0), "c": numpy.full(elements, 0.5)}
    result, rounds = numpy.zeros(elements), []
    for _ in range(10):
        started = time.perf_counter()
        numexpr.evaluate("b + 3 * c", local_dict=arrays, out=result)
        rounds.append(time.perf_counter() - started)
    found = numpy.unique(result[::1000]).tolist()
    return {"answer": found, "details": {"bytes_per_s": 24 * elements / min(rounds)}}
