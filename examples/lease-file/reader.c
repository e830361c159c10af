/* Reads a lease file of doyen and acts under the lease: docs/run.md, "The lease file".
 *
 *   cc -O2 -o reader reader.c && ./reader /run/doyen/orders-n1.lease
 *
 * Prints the term and the time left and exits with 0; prints "no lease" and exits with 1 if there is none or anything is in
 * doubt. For a program that doyen does not run itself: it holds a shared lock while it acts, and a transfer waits for it. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 80, MOST_TRIES = 1000 };

static uint64_t number(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    while (count-- > 0)
        value = value << 8 | bytes[count];
    return value;
}

/* The whole record: the sequence is even, and the same before and after. */
static bool read_record(int fd, uint8_t record[LENGTH]) {
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        uint8_t again[8];
        if (pread(fd, record, LENGTH, 0) != LENGTH || pread(fd, again, 8, 16) != 8)
            return false;
        uint64_t sequence = number(record + 16, 8);
        if (sequence % 2 == 0 && number(again, 8) == sequence)
            return true;
    }
    return false;
}

/* Whether deadlines count by the clock of this process: the same boot, the same time namespace. */
static bool is_own_clock(const uint8_t record[LENGTH]) {
    char text[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return false;
    close(fd);
    uint8_t boot[16] = {0};
    int digits = 0;
    for (const char *at = text; *at && digits < 32; at++) {
        if (!isxdigit((unsigned char)*at))
            continue;
        int digit = isdigit((unsigned char)*at) ? *at - '0' : tolower((unsigned char)*at) - 'a' + 10;
        boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | digit);
        digits++;
    }
    struct stat space;
    uint64_t time_namespace = stat("/proc/self/ns/time", &space) == 0 ? space.st_ino : 0;
    return digits == 32 && memcmp(boot, record + 48, 16) == 0 && number(record + 64, 8) == time_namespace;
}

/* The nanoseconds that are left of the lease, 0 if there is none. */
static uint64_t lease_left(int fd, uint64_t *term) {
    uint8_t record[LENGTH];
    if (!read_record(fd, record) || memcmp(record, "doyenLSE", 8) != 0 || number(record + 8, 4) != 1)
        return 0;
    if (!is_own_clock(record))
        return 0;
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t deadline = number(record + 24, 8);
    *term = number(record + 32, 8);
    return deadline > nanoseconds ? deadline - nanoseconds : 0;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: reader LEASE-FILE\n");
        return 2;
    }
    int fd = open(arguments[1], O_RDONLY | O_CLOEXEC);
    uint64_t term = 0, left = 0;
    /* The lock first: whatever is read under it holds until it is released, or until the deadline. */
    if (fd >= 0 && flock(fd, LOCK_SH) == 0)
        left = lease_left(fd, &term);
    if (left == 0) {
        puts("no lease");
        return 1;
    }
    /* Act here, and be done before the deadline. */
    printf("term %" PRIu64 ", %" PRIu64 " ms left\n", term, left / 1000000);
    fflush(stdout);
    close(fd); /* which releases the lock; so does the end of the process */
    return 0;
}
