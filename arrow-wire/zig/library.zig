//! What Python may call, by ctypes: `arrow_wire/library.py` declares the same signatures.

const std = @import("std");
const columns = @import("columns.zig");
const postgres_column = @import("postgres_column.zig");
const postgres_decode = @import("postgres_decode.zig");
const postgres_encode = @import("postgres_encode.zig");
const postgres_fields = @import("postgres_fields.zig");

comptime {
    _ = columns; // which exports its own
    _ = @import("clickhouse_decode.zig");
    _ = @import("clickhouse_encode.zig");
}

/// Encode rows for COPY (FORMAT binary); see `postgres_encode.encode`. `order` may be null: rows as they stand.
export fn arrow_wire_postgres_encode(
    all: [*]const postgres_column.Column,
    column_count: usize,
    order: ?[*]const u64,
    order_count: usize,
    end: usize,
    out: [*]u8,
    out_size: usize,
    progress: *postgres_encode.Progress,
) void {
    const rows = if (order) |given| given[0..order_count] else null;
    postgres_encode.encode(all[0..column_count], rows, end, out[0..out_size], progress);
}

/// Return the number of an encoder by its name, or -1.
export fn arrow_wire_postgres_encoder(name: [*]const u8, size: usize) i32 {
    return postgres_encode.numbered(name[0..size]);
}

/// Return the number of a decoder by its name, or -1.
export fn arrow_wire_postgres_decoder(name: [*]const u8, size: usize) i32 {
    return postgres_decode.numbered(name[0..size]);
}

/// Decode rows that have arrived; see `postgres_decode.decode`.
export fn arrow_wire_postgres_decode(
    all: [*]const postgres_fields.Column,
    column_count: usize,
    into: *columns.Columns,
    framing: postgres_decode.Framing,
    data: [*]const u8,
    data_size: usize,
    limit: usize,
    progress: *postgres_decode.Progress,
) void {
    postgres_decode.decode(all[0..column_count], into, framing, data[0..data_size], limit, progress);
}

/// Set a number for every row of a column by which rows are in order; false where the array is damaged.
export fn arrow_wire_postgres_keys(column: *const postgres_column.Column, out: [*]i64, count: usize) bool {
    postgres_encode.keys(column, out[0..count]) catch return false;
    return true;
}
