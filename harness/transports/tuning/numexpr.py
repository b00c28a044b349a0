"""numexpr, expressions over numpy arrays in several threads: https://numexpr.readthedocs.io"""

from contextlib import contextmanager

from harness.registry import Unsupported, transport


@contextmanager
def connect(folder, s3):
    """Yield None: there is nothing to connect to."""
    yield None


@transport("a = b + 3 c", "arrays of float64", operation="job", published="STREAM triad")
def triad(connection, elements, threads):
    """Return the memory bandwidth of STREAM's triad over three arrays of this many elements, with this many threads.

    As in STREAM (J. McCalpin, https://www.cs.virginia.edu/stream/ref.html), the best of ten rounds counts, with 24
    bytes per element. Reading the result's old memory before overwriting it does not count. The run's time also
    includes creating the arrays. The answer is the distinct values in a sample of the result.
    """
    import time

    import numexpr
    import numpy

    elements, threads = int(elements), int(threads)
    if threads > numexpr.MAX_THREADS:
        raise Unsupported(f"{threads} threads: numexpr allows {numexpr.MAX_THREADS}; set NUMEXPR_MAX_THREADS={threads}")
    numexpr.set_num_threads(threads)
    arrays = {"b": numpy.full(elements, 2.0), "c": numpy.full(elements, 0.5)}
    result, rounds = numpy.zeros(elements), []
    for _ in range(10):
        started = time.perf_counter()
        numexpr.evaluate("b + 3 * c", local_dict=arrays, out=result)
        rounds.append(time.perf_counter() - started)
    found = numpy.unique(result[::1000]).tolist()
    return {"answer": found, "details": {"bytes_per_s": 24 * elements / min(rounds)}}
