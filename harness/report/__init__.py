"""Reports: everything here reads results/ and writes files or text; it touches no service."""

from harness.report.sections import Report, write

__all__ = ["Report", "write"]
