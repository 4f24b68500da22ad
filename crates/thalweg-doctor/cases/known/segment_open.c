// PAGE-FAULTS: opens a segment of a store for each query. It maps the index of 32 MB privately, and
// turns the offset at the start of each block into an address; the kernel copies every page for it.
//
// Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 61 queries,
// 499,776 faults (8,193 for a query of 8,192 blocks), 1.42 s system, 0.07 s user. `perf record`: 95
// % in the kernel, the copy and the entry of the fault lead. `strace -c`: no call in the loop but
// mmap and munmap.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 8192, STEPS = 64 };

struct block {
    uint64_t next;
    uint64_t value;
    char rest[BLOCK - 16];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// A file of blocks; each has the offset of another one.
static int make_segment(void) {
    static struct block block;
    int file = open("segment.index", O_CREAT | O_TRUNC | O_RDWR, 0644);
    if (file < 0 || unlink("segment.index") != 0)
        return -1;
    for (uint64_t number = 0; number < BLOCKS; number++) {
        block.next = (number * 4099 + 17) % BLOCKS * BLOCK;
        block.value = number;
        if (write(file, &block, BLOCK) != BLOCK)
            return -1;
    }
    return file;
}

static uint64_t query(int file, uint64_t start) {
    struct block *blocks =
        mmap(NULL, sizeof *blocks * BLOCKS, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (blocks == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    for (int number = 0; number < BLOCKS; number++)
        blocks[number].next += (uintptr_t)blocks;
    const struct block *at = &blocks[start % BLOCKS];
    uint64_t sum = 0;
    for (int step = 0; step < STEPS; step++, at = (const struct block *)(uintptr_t)at->next)
        sum += at->value;
    munmap(blocks, sizeof *blocks * BLOCKS);
    return sum;
}

int main(int count, char **arguments) {
    double end = now() + (count > 1 ? atof(arguments[1]) : 1.5);
    int file = make_segment();
    if (file < 0)
        return 1;
    uint64_t queries = 0, sum = 0;
    for (; now() < end; queries++)
        sum += query(file, queries * 31);
    printf("%lu queries, sum %lu\n", (unsigned long)queries, (unsigned long)sum);
    return 0;
}
