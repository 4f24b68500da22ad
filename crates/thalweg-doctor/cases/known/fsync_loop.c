// BLOCKING-IO: every 512-byte record is synced before the next one is written, as a careless log
// does it. Nearly all of the time passes inside fsync, asleep until the disk has answered.
//
// Checked on 2 cores of a virtual machine: `strace -c -w ./fsync_loop`: 93 % of the time in fsync,
// 150 µs each; without strace 10,971 records, 0.5 s of processor time in 1.5 s.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    double end = now() + (count > 1 ? atof(arguments[1]) : 1.5);
    char record[512];
    memset(record, 'r', sizeof record);
    int file = open("records.log", O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (file < 0) {
        perror("records.log");
        return 1;
    }
    long records = 0;
    while (now() < end) {
        if (write(file, record, sizeof record) != sizeof record || fsync(file) != 0) {
            perror("records.log");
            return 1;
        }
        records++;
    }
    unlink("records.log");
    printf("%ld records\n", records);
    return 0;
}
