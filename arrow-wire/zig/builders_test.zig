//! The builders alone: `python -m ziglang test zig/builders_test.zig`.

const std = @import("std");
const builders = @import("builders.zig");
const exported = @import("exported.zig");
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;

fn columnOf(layout: @import("arrow.zig").Layout, width: u32, children: []const builders.Shape) !builders.Column {
    const shape: builders.Shape = .{
        .layout = layout,
        .width = width,
        .children = if (children.len > 0) children.ptr else null,
        .child_count = children.len,
    };
    return builders.Column.init(&shape);
}

test "a null in the middle makes a bitmap of the rows before and behind it" {
    var column = try columnOf(.fixed, 4, &.{});
    defer column.deinit();
    @memset(try column.add(13), 7);
    try column.setNull(11);
    @memset(try column.add(30), 8);
    try column.setNull(40);
    try expectEqual(43, column.length);
    try expectEqual(@as(u8, 0xff & ~@as(u8, 8)), column.validity.memory[1]);
    try expectEqual(@as(u8, 0xfe), column.validity.memory[5]);
}

test "strings of all layouts, short, long and larger than a block" {
    inline for (.{ .text32, .text64, .view }) |layout| {
        var column = try columnOf(layout, 0, &.{});
        defer column.deinit();
        const long = try std.testing.allocator.alloc(u8, 9_000_000);
        defer std.testing.allocator.free(long);
        @memset(long, 'x');
        for (0..3) |_| {
            var texts = try column.texts(4, 3 + 13 + long.len);
            texts.put("abc");
            texts.put("");
            texts.put("thirteen byte");
            texts.put(long);
            texts.finish();
        }
        try expectEqual(12, column.length);
        var array: exported.ArrowArray = undefined;
        try exported.exported(&column, &array);
        try expectEqual(12, array.length);
        array.release.?(&array);
        try expect(array.release == null);
    }
}

test "lists of lists, whose child may be taken before" {
    const inner = [_]builders.Shape{.{ .layout = .fixed, .width = 8, .children = null, .child_count = 0 }};
    var column = try columnOf(.list64, 0, &inner);
    defer column.deinit();
    const ends = try column.add(2);
    _ = try column.children[0].add(3);
    try column.endList(ends, 0);
    try column.endList(ends, 1);
    var array: exported.ArrowArray = undefined;
    try exported.exported(&column, &array);
    var child = array.children.?[0].*;
    array.children.?[0].release = null;
    array.release.?(&array);
    child.release.?(&child);
}

test "strings of no row have all their buffers, for which there is room" {
    inline for (.{ .text32, .text64, .view }) |layout| {
        var column = try columnOf(layout, 0, &.{});
        defer column.deinit();
        var array: exported.ArrowArray = undefined;
        try exported.exported(&column, &array);
        try expectEqual(3, array.n_buffers);
        array.release.?(&array);
    }
}
