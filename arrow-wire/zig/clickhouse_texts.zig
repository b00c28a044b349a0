//! Strings and bytes for ClickHouse, and the types that frames have as strings: UUID, IP addresses, enums.

const std = @import("std");
const arrow = @import("arrow.zig");
const builders = @import("builders.zig");
const readers = @import("clickhouse_readers.zig");
const shared = @import("clickhouse_rows.zig");
const unaligned = @import("unaligned.zig");
const Error = shared.Error;
const Node = shared.Node;
const Out = shared.Out;
const Reader = readers.Reader;
const Rows = shared.Rows;
const Text = readers.Text;
const block = readers.block;

/// Encode strings in several arrays: those that follow each other in one of them at a time.
fn inPieces(comptime encoder: fn (comptime arrow.Layout) type, node: *const Node, rows: Rows, out: *Out) Error!void {
    var done: usize = 0;
    while (done < rows.count) {
        const run = try readers.run(node.array, rows, done);
        switch (run.piece.layout) {
            inline .text32, .text64, .view => |layout| {
                try encoder(layout).add(&.within(run.piece, node.array, run.first), node, run.rows, out);
            },
            .pieces => try encoder(.text32).add(&.within(run.piece, node.array, 0), node, run.rows, out), // rows nowhere
            else => return error.Damaged,
        }
        done += run.rows.count;
    }
}

/// String: the size, in seven bits a byte, and the bytes.
pub fn strings(comptime layout: arrow.Layout) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            if (layout == .pieces) return inPieces(strings, node, rows, out);
            try add(&.of(node.array), node, rows, out);
        }

        fn add(reader: *const Reader(layout), _: *const Node, rows: Rows, out: *Out) Error!void {
            if (layout == .view) return views(reader, rows, out);
            var texts: [block]Text = undefined;
            var done: usize = 0;
            while (done < rows.count) {
                const part = texts[0..@min(block, rows.count - done)];
                const total = try readers.find(layout, reader, rows, done, part);
                const before = out.used;
                const to = try out.more(total + part.len * shared.varint_most + Text.move);
                var place: usize = 0;
                for (part) |text| {
                    place = shared.putVarint(to, place, text.size);
                    text.putAt(to, place);
                    place += text.size;
                }
                out.used = before + place;
                done += part.len;
            }
        }
    };
}

/// As `strings`, for views: one of 12 bytes at most is moved as it is, and no other line of the cache is touched.
fn views(reader: *const Reader(.view), rows: Rows, out: *Out) Error!void {
    var all: [block]u128 = undefined;
    var done: usize = 0;
    while (done < rows.count) {
        const part = all[0..@min(block, rows.count - done)];
        const total = try readers.findViews(reader, rows, done, part);
        const before = out.used;
        const to = try out.more(total + part.len * shared.varint_most + Text.move);
        var place: usize = 0;
        for (part) |view| {
            const size: usize = @as(u32, @truncate(view));
            place = shared.putVarint(to, place, size);
            if (size <= 12) {
                unaligned.write(u128, to[place..][0..16], view >> 32, .little);
            } else {
                (try reader.behind(view)).putAt(to, place);
            }
            place += size;
        }
        out.used = before + place;
        done += part.len;
    }
}

/// Values of a fixed size that `Form.put` makes of strings or bytes.
fn made(comptime layout: arrow.Layout, comptime Form: type) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            if (layout == .pieces) return inPieces(ofForm(Form), node, rows, out);
            try add(&.of(node.array), node, rows, out);
        }

        fn add(reader: *const Reader(layout), node: *const Node, rows: Rows, out: *Out) Error!void {
            const width = node.width;
            const to = try out.more(rows.count * width);
            var texts: [block]Text = undefined;
            var done: usize = 0;
            while (done < rows.count) {
                const part = texts[0..@min(block, rows.count - done)];
                _ = try readers.find(layout, reader, rows, done, part);
                for (part, done..) |text, i| {
                    const place = to[i * width ..][0..width];
                    if (reader.nulls.absent(rows.at(i))) @memset(place, 0) else try Form.put(text.bytes(), place, node);
                }
                done += part.len;
            }
        }
    };
}

fn ofForm(comptime Form: type) fn (comptime arrow.Layout) type {
    return struct {
        fn of(comptime layout: arrow.Layout) type {
            return made(layout, Form);
        }
    }.of;
}

/// The encoder of a form for strings and bytes in each of their layouts.
pub fn inLayouts(comptime Form: type) [5]*const fn (*const Node, Rows, *Out) Error!void {
    return .{
        made(.text32, Form).put, made(.text64, Form).put, made(.view, Form).put,
        made(.fixed, Form).put,  made(.pieces, Form).put,
    };
}

/// Enum8 and Enum16: the number of a label; in the place of a null the first label's.
pub fn enums(comptime layout: arrow.Layout) type {
    return struct {
        pub fn put(node: *const Node, rows: Rows, out: *Out) Error!void {
            const labels = node.labels orelse return error.Damaged;
            const numbers = node.numbers.bytes();
            if (labels.length == 0 or numbers.len < 2 * labels.length) return error.Damaged;
            var known: std.StringHashMapUnmanaged(i16) = .empty;
            defer known.deinit(builders.objects);
            const names: Reader(.text32) = .of(labels);
            for (0..labels.length) |i| {
                const name = (try names.text(i)).bytes();
                try known.put(builders.objects, name, unaligned.read(i16, numbers[2 * i ..][0..2], .little));
            }
            const reader: Reader(layout) = .of(node.array);
            const width = node.width;
            const to = try out.more(rows.count * width);
            for (0..rows.count) |i| {
                const row = rows.at(i);
                const found = if (reader.nulls.absent(row))
                    unaligned.read(i16, numbers[0..2], .little)
                else
                    known.get((try reader.text(row)).bytes()) orelse return error.Form;
                if (width == 1) {
                    to[i] = @bitCast(std.math.cast(i8, found) orelse return error.Damaged);
                } else {
                    unaligned.write(i16, to[2 * i ..][0..2], found, .little);
                }
            }
        }
    };
}
