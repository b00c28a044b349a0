"""Compile the programs of the S3 cases where there is a Go for it: the S3 server that runs have, and what makes links.

Usage: programs.py [all]. all: MinIO as well, which takes minutes.
"""

import sys

from harness import settings
from harness.lab import go_programs
from harness.lab.s3_servers import SERVERS

chosen = settings.load()
servers = SERVERS if sys.argv[1:] == ["all"] else [chosen.s3_server]
for program in (*(SERVERS[name].program for name in servers), go_programs.TOXIPROXY):
    try:
        print(go_programs.program(program, chosen.cache_dir, print))
    except go_programs.NotThere as error:
        print(error)
