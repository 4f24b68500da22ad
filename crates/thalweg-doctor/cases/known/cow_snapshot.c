// PAGE-FAULTS: a store in memory that forks a child for each snapshot, as Redis does, and goes on
// to update its records. Each first write to a page after the fork makes the kernel copy the page.
// The child holds the old pages until its parent has gone over all records.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 442,761 faults for 17 snapshots
// of 24,576 pages, 1.51 s system, 0.05 s user. `perf record`: the page copied in the fault and the
// fault itself lead; `copy_page_range` (the fork) has 2 % and `unmap_page_range` 3 %.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 24 * 1024 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// A child with the store as it is now; it ends when the pipe is closed.
static pid_t snapshot(int pipe_ends[2]) {
    char byte;
    if (pipe(pipe_ends) != 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        close(pipe_ends[1]);
        _exit(read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    return child;
}

int main(int count, char **arguments) {
    double end = now() + (count > 1 ? atof(arguments[1]) : 1.5);
    char *store = mmap(NULL, (size_t)PAGE * PAGES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED || madvise(store, (size_t)PAGE * PAGES, MADV_NOHUGEPAGE) != 0)
        return 1;
    memset(store, 'r', (size_t)PAGE * PAGES);
    long snapshots = 0;
    while (now() < end) {
        int ends[2];
        pid_t child = snapshot(ends);
        for (long page = 0; page < PAGES; page++)
            store[page * PAGE + snapshots % PAGE]++;
        close(ends[0]);
        close(ends[1]);
        waitpid(child, NULL, 0);
        snapshots++;
    }
    printf("%ld snapshots of %d pages\n", snapshots, PAGES);
    return 0;
}
