//! What Python may call, by ctypes: `arrow_wire/library.py` declares the same signatures.

const std = @import("std");
const postgres_column = @import("postgres_column.zig");
const postgres_encode = @import("postgres_encode.zig");

comptime {
    _ = @import("columns.zig"); // which exports its own
}

/// Encode rows for COPY (FORMAT binary); see `postgres_encode.encode`. `order` may be null: rows as they stand.
export fn arrow_wire_postgres_encode(
    columns: [*]const postgres_column.Column,
    column_count: usize,
    order: ?[*]const u64,
    order_count: usize,
    end: usize,
    out: [*]u8,
    out_size: usize,
    progress: *postgres_encode.Progress,
) void {
    const rows = if (order) |given| given[0..order_count] else null;
    postgres_encode.encode(columns[0..column_count], rows, end, out[0..out_size], progress);
}

/// Return the number of an encoder by its name, or -1.
export fn arrow_wire_postgres_encoder(name: [*]const u8, size: usize) i32 {
    return postgres_encode.numbered(name[0..size]);
}
