#!/usr/bin/python3
"""no_uring.py PROGRAM [ARGUMENT]...: runs a program to which the kernel refuses io_uring, as the
filters of most containers do."""
import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
SYS_IO_URING_SETUP = 425  # on every architecture
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_ALLOW = 0x7fff0000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of the packet filter


def instruction(code, true_skip, false_skip, value):
    return struct.pack("HBBI", code, true_skip, false_skip, value)


def main():
    program = b"".join([
        instruction(LOAD_WORD, 0, 0, 0),  # the number of the call
        instruction(JUMP_IF_EQUAL, 0, 1, SYS_IO_URING_SETUP),
        instruction(RETURN, 0, 0, SECCOMP_RET_ERRNO | errno.EPERM),
        instruction(RETURN, 0, 0, SECCOMP_RET_ALLOW),
    ])
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0)):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
