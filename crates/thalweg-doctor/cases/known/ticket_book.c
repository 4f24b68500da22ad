// SPIN-STARVES-PEER: five sessions change an order book under a ticket lock, which goes to them in
// turn. On two cores the next in turn is often one that has no core, and then nobody gets on: the
// others spin through their time slices. The loop has no `pause`, so it looks like computing.
//
// Checked on 2 cores of a virtual machine that others used too, in 1.5 s: 6,228 orders, and
// 626,375 of two sessions, one for each core (`ticket_book 2 1.5`); another time 661 and 191,647.
// `perf annotate`: 99 % in `trade`, 91 % of that at the compare and the jump of `lock`.
// `schedstat`: each session has run for 0.4 to 0.5 of 1.2 s, and waited for a core in the rest.
// `strace -f -c`: no call in the loop.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SESSIONS_MAX = 16, LEVELS = 64 };

static _Alignas(64) atomic_uint next_ticket;
static _Alignas(64) atomic_uint serving;
static uint32_t sizes[LEVELS];
static double end;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void lock(void) {
    // ORDERING: Relaxed; it only gives out numbers.
    unsigned mine = atomic_fetch_add_explicit(&next_ticket, 1, memory_order_relaxed);
    // ORDERING: Acquire, pairs with the Release in `unlock`; shows what the holder before wrote.
    while (atomic_load_explicit(&serving, memory_order_acquire) != mine)
        ;
}

static void unlock(void) {
    // ORDERING: Relaxed; only the holder writes it.
    unsigned mine = atomic_load_explicit(&serving, memory_order_relaxed);
    // ORDERING: Release, pairs with the Acquire in `lock`.
    atomic_store_explicit(&serving, mine + 1, memory_order_release);
}

// Reads an order from the session's text: work that needs no lock.
static uint64_t decode(uint64_t state) {
    for (int byte = 0; byte < 3000; byte++)
        state = state * 6364136223846793005u + 1;
    return state;
}

static void *trade(void *count) {
    uint64_t state = (uintptr_t)count;
    long orders = 0;
    for (; now() < end; orders++) {
        state = decode(state);
        lock();
        for (int level = 0; level < LEVELS; level++)
            sizes[level] += (uint32_t)(state >> level);
        unlock();
    }
    *(long *)count = orders;
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[SESSIONS_MAX];
    long orders[SESSIONS_MAX], all = 0;
    // Two sessions, one for each core, are the check of it.
    int sessions = count > 2 ? atoi(arguments[1]) : 5;
    if (sessions < 1 || sessions > SESSIONS_MAX)
        return 2;
    end = now() + (count > 1 ? atof(arguments[count - 1]) : 1.5);
    for (int session = 0; session < sessions; session++)
        pthread_create(&threads[session], NULL, trade, &orders[session]);
    for (int session = 0; session < sessions; session++) {
        pthread_join(threads[session], NULL);
        all += orders[session];
    }
    printf("%ld orders, size %u\n", all, sizes[0]);
    return 0;
}
