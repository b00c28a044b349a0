import sys

from harness.worker.jobs import main

main(sys.argv[1:])
