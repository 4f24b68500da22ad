// SYSCALL-BOUND: a tracer that notes for each span of a request how much processor time its thread
// took. The clock for that is not in the vDSO: to read it is a call into the kernel, twice for
// each span, and a span does less than that.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 802,607 spans, 1.36 s system,
// 0.12 s user, 17 switches. `strace -c`: two clock_gettime for each span, and no other call in the
// loop. With the wall clock, which the vDSO has (`span_clock wall 1.5`), 13,715,247 spans.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPANS = 1 << 12, HEADERS = 12 };

struct span {
    const char *name;
    int64_t start_ns, end_ns;
};

static struct span spans[SPANS];
static long spans_all;
static clockid_t span_clock = CLOCK_THREAD_CPUTIME_ID;

static int64_t read_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct span *enter(const char *name) {
    struct span *span = &spans[spans_all++ % SPANS];
    span->name = name;
    span->start_ns = read_ns(span_clock);
    return span;
}

static void leave(struct span *span) {
    span->end_ns = read_ns(span_clock);
}

static uint32_t hash(const char *text) {
    uint32_t sum = 2166136261u;
    for (; *text; text++)
        sum = (sum ^ (uint8_t)*text) * 16777619u;
    return sum;
}

// A request with a span for each of its headers.
static uint32_t handle(long request) {
    static const char *const names[] = {"host", "accept", "cookie", "trace-id"};
    char value[32];
    uint32_t sum = 0;
    struct span *whole = enter("request");
    for (int header = 0; header < HEADERS; header++) {
        struct span *span = enter(names[header % 4]);
        memset(value, 'a' + (int)(request + header) % 26, sizeof value - 1);
        value[sizeof value - 1] = 0;
        sum += hash(names[header % 4]) ^ hash(value);
        leave(span);
    }
    leave(whole);
    return sum;
}

int main(int count, char **arguments) {
    // The wall clock, which the vDSO has, is the check of it.
    if (count > 2 && strcmp(arguments[1], "wall") == 0)
        span_clock = CLOCK_MONOTONIC;
    int64_t end = read_ns(CLOCK_MONOTONIC) +
                  (int64_t)((count > 1 ? atof(arguments[count - 1]) : 1.5) * 1e9);
    long requests = 0;
    uint32_t sum = 0;
    for (; read_ns(CLOCK_MONOTONIC) < end; requests++)
        sum += handle(requests);
    printf("%ld requests, %ld spans, sum %u\n", requests, spans_all, sum);
    return 0;
}
