//! Blocks of ClickHouse's Native format into columns of Arrow: https://clickhouse.com/docs/interfaces/formats/Native
//!
//! A result comes in pieces, cut anywhere. A column that has begun keeps its position, one state for each type in the
//! column's tree. An incomplete string or number at the end of a piece must come again before the next piece. The
//! decoder trusts nothing in a stream: it takes memory as values arrive, not as they are announced.

const std = @import("std");
const guard = @import("guard.zig");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const states = @import("clickhouse_states.zig");
const Columns = @import("columns.zig").Columns;
const Error = states.Error;
const Input = states.Input;
const Node = states.Node;
const State = states.State;

/// One column of a result: its name and type as in a block, in either of two forms, and how it is decoded.
pub const Column = extern struct { head: arrow.Buffer, other_head: arrow.Buffer, node: *const Node };

pub const Failure = enum(u32) { none, form, range, text, damaged, changed, memory };

/// The outcome of a piece: how much of it is used up, the rows of all complete blocks, whether a block is open.
pub const Result = extern struct {
    consumed: usize = 0,
    rows: usize = 0,
    open: u32 = 0,
    failure: Failure = .none,
    column: usize = 0,
};

const Phase = enum { start, head, prefix, values };

pub const Decoder = struct {
    columns: []const Column,
    targets: []builders.Column,
    all: []State,
    phase: Phase = .start,
    column: usize = 0, // of the block, which is at hand
    block_rows: usize = 0,
    versions: usize = 0, // read of those before the values
    rows: usize = 0, // of complete blocks, not yet taken

    pub fn init(columns: []const Column, targets: *Columns) Error!*Decoder {
        if (targets.all.len != columns.len) return error.Damaged;
        const self = try builders.objects.create(Decoder);
        errdefer builders.objects.destroy(self);
        const all = try builders.objects.alloc(State, columns.len);
        errdefer builders.objects.free(all);
        for (all, columns, targets.all, 0..) |*state, column, *target, i| {
            errdefer for (all[0..i]) |*made| made.deinit();
            state.* = try State.init(column.node, target);
        }
        self.* = .{ .columns = columns, .targets = targets.all, .all = all };
        return self;
    }

    pub fn deinit(self: *Decoder) void {
        for (self.all) |*state| state.deinit();
        builders.objects.free(self.all);
        builders.objects.destroy(self);
    }

    /// Decode a piece, as far as it goes, or until a block ends with which there are `enough` rows.
    pub fn feed(self: *Decoder, piece: []const u8, enough: usize, result: *Result) void {
        var input: Input = .{ .bytes = piece };
        result.* = .{};
        while (self.rows < enough) {
            const done = self.step(&input) catch |failure| {
                result.failure = switch (failure) {
                    error.Form => .form,
                    error.Range => .range,
                    error.Text => .text,
                    error.Damaged => .damaged,
                    error.Changed => .changed,
                    error.OutOfMemory, error.TooLarge => .memory,
                };
                break;
            };
            if (!done) break;
        }
        result.consumed = input.at;
        result.rows = self.rows;
        result.open = @intFromBool(self.phase != .start);
        result.column = @min(self.column, self.columns.len -| 1);
    }

    /// Do the next step; false if the piece ends before it.
    fn step(self: *Decoder, input: *Input) Error!bool {
        switch (self.phase) {
            .start => {
                const before = input.at;
                const count = try input.varint() orelse return back(input, before);
                const rows = try input.varint() orelse return back(input, before);
                if (count != self.columns.len) return error.Changed;
                self.block_rows = rows;
                self.column = 0;
                self.phase = if (count > 0) .head else .start;
            },
            .head => {
                if (!try self.head(input)) return false;
                self.versions = 0;
                self.phase = if (self.block_rows > 0) .prefix else .values;
            },
            .prefix => {
                while (self.versions < states.versions(self.columns[self.column].node)) : (self.versions += 1) {
                    const version = input.number(u64) orelse return false;
                    if (version != 1) return error.Damaged;
                }
                self.all[self.column].begin(self.block_rows);
                self.phase = .values;
            },
            .values => {
                if (self.block_rows > 0 and !try self.all[self.column].run(input)) return false;
                self.column += 1;
                self.phase = .head;
                if (self.column == self.columns.len) {
                    self.phase = .start;
                    self.rows = std.math.add(usize, self.rows, self.block_rows) catch return error.TooLarge;
                }
            },
        }
        return true;
    }

    /// Read name and type of a column, which have to be the ones that are expected.
    fn head(self: *Decoder, input: *Input) Error!bool {
        const before = input.at;
        for (0..2) |_| {
            const size = try input.varint() orelse return back(input, before);
            _ = input.take(size) orelse return back(input, before);
        }
        const found = input.bytes[before..input.at];
        const column = self.columns[self.column];
        if (std.mem.eql(u8, found, column.head.bytes())) return true;
        return if (std.mem.eql(u8, found, column.other_head.bytes())) true else error.Changed;
    }

    fn back(input: *Input, before: usize) bool {
        input.at = before;
        return false;
    }
};

/// Make a decoder into `targets`. `columns` and `targets` must outlive it; null if memory is short, or they do not fit.
export fn arrow_wire_clickhouse_decoder_new(columns: [*]const Column, count: usize, targets: *Columns, made: *?*Decoder) bool {
    return guard.call(new, .{ columns[0..count], targets, made });
}

fn new(columns: []const Column, targets: *Columns, made: *?*Decoder) void {
    made.* = Decoder.init(columns, targets) catch null;
}

export fn arrow_wire_clickhouse_decoder_free(decoder: *Decoder) bool {
    return guard.call(Decoder.deinit, .{decoder});
}

pub export fn arrow_wire_clickhouse_decode(
    decoder: *Decoder,
    piece: ?[*]const u8,
    size: usize,
    enough: usize,
    result: *Result,
) bool {
    return guard.call(Decoder.feed, .{ decoder, if (piece) |bytes| bytes[0..size] else &.{}, enough, result });
}

/// Say that the rows were taken out of the columns.
pub export fn arrow_wire_clickhouse_decoder_taken(decoder: *Decoder) void {
    decoder.rows = 0;
}
