//! Numbers at any address, in one load or store. The compiler makes single bytes of `std.mem.readInt` in loops that check.

const std = @import("std");

/// As `std.mem.readInt`.
pub inline fn read(comptime T: type, from: *const [@sizeOf(T)]u8, endian: std.builtin.Endian) T {
    return std.mem.toNative(T, @as(*align(1) const T, @ptrCast(from)).*, endian);
}

/// As `std.mem.writeInt`.
pub inline fn write(comptime T: type, to: *[@sizeOf(T)]u8, value: T, endian: std.builtin.Endian) void {
    @as(*align(1) T, @ptrCast(to)).* = std.mem.nativeTo(T, value, endian);
}
