#!/usr/bin/env bash
# Create pg_parquet in the first database, where the image has it.
set -euo pipefail
if [ -e "/usr/share/postgresql/$PG_MAJOR/extension/pg_parquet.control" ]; then
  psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" --command="CREATE EXTENSION pg_parquet"
fi
