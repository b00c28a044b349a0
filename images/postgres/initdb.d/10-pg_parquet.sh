#!/usr/bin/env bash
# Create pg_parquet in the first database, if the image has it: at the first start, and after each `make up`.
set -euo pipefail
if [ -e "/usr/share/postgresql/$PG_MAJOR/extension/pg_parquet.control" ]; then
  PGOPTIONS=--client-min-messages=warning psql --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
    --command="CREATE EXTENSION IF NOT EXISTS pg_parquet"
fi
