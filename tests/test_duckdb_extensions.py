"""DuckDB's extensions come from wheels: they load with installing and downloading switched off."""

import duckdb
import duckdb_extensions
import pytest


@pytest.mark.long
@pytest.mark.parametrize("name", ["httpfs", "postgres_scanner", "tpch"])
def test_an_extension_loads_without_a_download(name: str, tmp_path) -> None:
    offline = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "custom_extension_repository": "http://127.0.0.1:1",
        "extension_directory": str(tmp_path),
    }
    with duckdb.connect(config=offline) as connection:
        with pytest.raises(duckdb.Error):
            connection.execute(f"LOAD {name}")
        duckdb_extensions.import_extension(name, con=connection)
        connection.execute(f"LOAD {name}")
        query = "SELECT loaded, extension_version <> '' FROM duckdb_extensions() WHERE extension_name = ?"
        assert connection.execute(query, [name]).fetchone() == (True, True)
