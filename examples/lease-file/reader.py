"""Reads a lease file of doyen and acts under the lease: docs/run.md, "The lease file".

    python3 reader.py /run/doyen/orders-n1.lease

Prints the term and the time left and exits with 0; prints "no lease" and exits with 1 if there is none or anything is in
doubt. For a program that doyen does not run itself: it holds a shared lock while it acts, and a transfer waits for it.
"""

import fcntl
import os
import struct
import sys
import time
import uuid

RECORD = struct.Struct("<8s I I Q Q Q Q 16s Q Q")
MOST_TRIES = 1000


def read_record(fd):
    """The whole record: the sequence is even, and the same before and after."""
    for _ in range(MOST_TRIES):
        fields = RECORD.unpack(os.pread(fd, RECORD.size, 0))
        (again,) = struct.unpack("<Q", os.pread(fd, 8, 16))
        if fields[3] % 2 == 0 and fields[3] == again:
            return fields
    raise ValueError("never whole")


def lease(fd):
    """The term of the lease, and the nanoseconds that are left of it."""
    magic, version, _, _, deadline, term, _, boot, time_namespace, _ = read_record(fd)
    if magic != b"doyenLSE" or version != 1:
        raise ValueError("not a lease file of version 1")
    with open("/proc/sys/kernel/random/boot_id") as file:
        own_boot = uuid.UUID(file.read().strip()).bytes
    try:
        own_namespace = os.stat("/proc/self/ns/time").st_ino
    except FileNotFoundError:
        own_namespace = 0
    if boot != own_boot or time_namespace != own_namespace:
        raise ValueError("deadlines count by another clock")
    left = deadline - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if left <= 0:
        raise ValueError("it is over")
    return term, left


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], "rb") as file:
            # The lock first: whatever is read under it holds until it is released, or until the deadline.
            fcntl.flock(file, fcntl.LOCK_SH)
            term, left = lease(file.fileno())
            # Act here, and be done before the deadline.
            print(f"term {term}, {left // 1_000_000} ms left", flush=True)
    except (OSError, ValueError, struct.error):
        print("no lease")
        sys.exit(1)


main()
