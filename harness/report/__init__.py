"""Reports: everything here reads results/ and writes files or text; it touches no service."""
