//! A check that fails ends the call that it is in, and not the process. Python then raises an exception.
//!
//! Every function that Python calls runs inside of `call`, which notes the registers that a callee has to preserve. When
//! a check fails, `failed` puts them back, so that it is as if that call had returned 1 instead of 0. To the compiler
//! both are calls of code that it does not see, which may have changed any memory. Memory that the call had allocated
//! by then is lost. Objects that it was changing cannot be used again: Python lets go of them.

const std = @import("std");
const builtin = @import("builtin");

/// The registers of the call: as many as the widest of the conventions below takes.
const Context = extern struct { registers: [32]u64 align(16) };

threadlocal var landing: ?*Context = null;
threadlocal var said: [200]u8 = undefined;
threadlocal var said_size: usize = 0;

const Enter = *const fn (*Context, *const fn (*anyopaque) callconv(.c) void, *anyopaque) callconv(.c) u32;
const Leave = *const fn (*Context) callconv(.c) noreturn;
const enter: Enter = @ptrCast(&code.enter);
const leave: Leave = @ptrCast(&code.leave);

/// Call a function that returns nothing; return false if a check in it failed: see `message`.
pub fn call(comptime function: anytype, arguments: std.meta.ArgsTuple(@TypeOf(function))) bool {
    const Inner = struct {
        fn run(given: *anyopaque) callconv(.c) void {
            const taken: *std.meta.ArgsTuple(@TypeOf(function)) = @ptrCast(@alignCast(given));
            @call(.auto, function, taken.*);
        }
    };
    var given = arguments;
    var context: Context = undefined;
    const before = landing;
    landing = &context;
    const failure = enter(&context, Inner.run, @ptrCast(&given));
    landing = before;
    return failure == 0;
}

/// The handler of checks that fail. Outside of a call by Python it ends the process, as by default.
pub fn failed(text: []const u8, address: ?usize) noreturn {
    const context = landing orelse std.debug.defaultPanic(text, address);
    said_size = @min(text.len, said.len);
    @memcpy(said[0..said_size], text[0..said_size]);
    leave(context);
}

/// Copy the message of the last check that failed on this thread, and return its length.
pub fn message(out: []u8) usize {
    const size = @min(said_size, out.len);
    @memcpy(out[0..size], said[0..size]);
    return size;
}

/// For tests: a check that fails, or an access that none allows.
pub fn fail(out: []const u8) void {
    _ = @as(*const volatile u8, &out[out.len + 1]).*;
}

const code = switch (builtin.cpu.arch) {
    .x86_64 => if (builtin.os.tag == .windows) windows_x86_64 else x86_64,
    .aarch64 => aarch64,
    else => @compileError("expected x86_64 or aarch64; write down the registers of others here"),
};

const x86_64 = struct {
    fn enter() callconv(.naked) void {
        asm volatile (
            \\ movq %rbx, 0(%rdi)
            \\ movq %rbp, 8(%rdi)
            \\ movq %r12, 16(%rdi)
            \\ movq %r13, 24(%rdi)
            \\ movq %r14, 32(%rdi)
            \\ movq %r15, 40(%rdi)
            \\ movq %rsp, 48(%rdi)
            \\ movq %rdx, %rdi
            \\ subq $8, %rsp
            \\ callq *%rsi
            \\ addq $8, %rsp
            \\ xorl %eax, %eax
            \\ retq
        );
    }
    fn leave() callconv(.naked) void {
        asm volatile (
            \\ movq 0(%rdi), %rbx
            \\ movq 8(%rdi), %rbp
            \\ movq 16(%rdi), %r12
            \\ movq 24(%rdi), %r13
            \\ movq 32(%rdi), %r14
            \\ movq 40(%rdi), %r15
            \\ movq 48(%rdi), %rsp
            \\ movl $1, %eax
            \\ retq
        );
    }
};

const windows_x86_64 = struct {
    fn enter() callconv(.naked) void {
        asm volatile (
            \\ movq %rbx, 0(%rcx)
            \\ movq %rbp, 8(%rcx)
            \\ movq %rdi, 16(%rcx)
            \\ movq %rsi, 24(%rcx)
            \\ movq %r12, 32(%rcx)
            \\ movq %r13, 40(%rcx)
            \\ movq %r14, 48(%rcx)
            \\ movq %r15, 56(%rcx)
            \\ movq %rsp, 64(%rcx)
            \\ movups %xmm6, 80(%rcx)
            \\ movups %xmm7, 96(%rcx)
            \\ movups %xmm8, 112(%rcx)
            \\ movups %xmm9, 128(%rcx)
            \\ movups %xmm10, 144(%rcx)
            \\ movups %xmm11, 160(%rcx)
            \\ movups %xmm12, 176(%rcx)
            \\ movups %xmm13, 192(%rcx)
            \\ movups %xmm14, 208(%rcx)
            \\ movups %xmm15, 224(%rcx)
            \\ movq %r8, %rcx
            \\ subq $40, %rsp
            \\ callq *%rdx
            \\ addq $40, %rsp
            \\ xorl %eax, %eax
            \\ retq
        );
    }
    fn leave() callconv(.naked) void {
        asm volatile (
            \\ movq 0(%rcx), %rbx
            \\ movq 8(%rcx), %rbp
            \\ movq 16(%rcx), %rdi
            \\ movq 24(%rcx), %rsi
            \\ movq 32(%rcx), %r12
            \\ movq 40(%rcx), %r13
            \\ movq 48(%rcx), %r14
            \\ movq 56(%rcx), %r15
            \\ movq 64(%rcx), %rsp
            \\ movups 80(%rcx), %xmm6
            \\ movups 96(%rcx), %xmm7
            \\ movups 112(%rcx), %xmm8
            \\ movups 128(%rcx), %xmm9
            \\ movups 144(%rcx), %xmm10
            \\ movups 160(%rcx), %xmm11
            \\ movups 176(%rcx), %xmm12
            \\ movups 192(%rcx), %xmm13
            \\ movups 208(%rcx), %xmm14
            \\ movups 224(%rcx), %xmm15
            \\ movl $1, %eax
            \\ retq
        );
    }
};

const aarch64 = struct {
    fn enter() callconv(.naked) void {
        asm volatile (
            \\ stp x19, x20, [x0, #0]
            \\ stp x21, x22, [x0, #16]
            \\ stp x23, x24, [x0, #32]
            \\ stp x25, x26, [x0, #48]
            \\ stp x27, x28, [x0, #64]
            \\ stp x29, x30, [x0, #80]
            \\ mov x9, sp
            \\ str x9, [x0, #96]
            \\ stp d8, d9, [x0, #104]
            \\ stp d10, d11, [x0, #120]
            \\ stp d12, d13, [x0, #136]
            \\ stp d14, d15, [x0, #152]
            \\ stp x29, x30, [sp, #-16]!
            \\ mov x0, x2
            \\ blr x1
            \\ ldp x29, x30, [sp], #16
            \\ mov w0, #0
            \\ ret
        );
    }
    fn leave() callconv(.naked) void {
        asm volatile (
            \\ ldp x19, x20, [x0, #0]
            \\ ldp x21, x22, [x0, #16]
            \\ ldp x23, x24, [x0, #32]
            \\ ldp x25, x26, [x0, #48]
            \\ ldp x27, x28, [x0, #64]
            \\ ldp x29, x30, [x0, #80]
            \\ ldr x9, [x0, #96]
            \\ mov sp, x9
            \\ ldp d8, d9, [x0, #104]
            \\ ldp d10, d11, [x0, #120]
            \\ ldp d12, d13, [x0, #136]
            \\ ldp d14, d15, [x0, #152]
            \\ mov w0, #1
            \\ ret
        );
    }
};
