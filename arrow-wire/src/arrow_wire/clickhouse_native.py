"""Arrow to and from ClickHouse's Native format: https://clickhouse.com/docs/interfaces/formats/Native"""

from arrow_wire.clickhouse_blocks import Columns, Room
from arrow_wire.clickhouse_results import Result, batches
from arrow_wire.clickhouse_types import Type, parsed

__all__ = ["Columns", "Result", "Room", "Type", "batches", "parsed"]
