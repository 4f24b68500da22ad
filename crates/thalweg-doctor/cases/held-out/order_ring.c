/* An order path cut into processes: gateway -> risk -> journal -> gateway, one pipe between
 * each two. One small order at a time goes round; each step is a few instructions.
 * Cause: SCHED-CHURN (three context switches for each order, hardly any work in between).
 * check by hand: perf stat gave 3.7 context switches an order at 23 to 31 us an order; perf gave
 * 47% in schedule, the rest mostly wake-ups in pipe write and read, main 1.4%; wchan
 * anon_pipe_read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct order {
    uint64_t id;
    int64_t price;
    int32_t size;
    uint16_t account;
    uint8_t accepted;
    uint8_t logged;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int get(int fd, struct order *o) { return read(fd, o, sizeof *o) == sizeof *o; }
static void put(int fd, const struct order *o) {
    if (write(fd, o, sizeof *o) != sizeof *o)
        _exit(1);
}

static void risk(int in, int out) {
    static int64_t used[1024];
    struct order o;
    while (get(in, &o)) {
        int64_t need = o.price * o.size;
        int64_t *u = &used[o.account & 1023];
        o.accepted = *u + need < 1000000000;
        *u = o.accepted ? *u + need : 0;
        put(out, &o);
    }
}

static void journal(int in, int out) {
    static struct order log[4096];
    uint64_t n = 0;
    struct order o;
    while (get(in, &o)) {
        log[n++ & 4095] = o;
        o.logged = 1;
        put(out, &o);
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[argc - 1]) : 1.5;
    int a[2], b[2], c[2];
    if (pipe(a) || pipe(b) || pipe(c))
        return 1;
    if (fork() == 0) {
        close(a[1]), close(b[0]), close(c[0]), close(c[1]);
        risk(a[0], b[1]);
        _exit(0);
    }
    if (fork() == 0) {
        close(a[0]), close(a[1]), close(b[1]), close(c[0]);
        journal(b[0], c[1]);
        _exit(0);
    }
    close(a[0]), close(b[0]), close(b[1]), close(c[1]);

    uint64_t id = 0, accepted = 0;
    double end = now() + seconds;
    while (now() < end) {
        struct order o = {.id = ++id, .price = 100 + id % 50, .size = 10, .account = id * 7};
        put(a[1], &o);
        if (!get(c[0], &o) || o.id != id)
            return 1;
        accepted += o.accepted & o.logged;
    }
    close(a[1]);
    while (wait(NULL) > 0)
        ;
    printf("%lu orders, %lu accepted, %.1f us each\n", id, accepted, seconds * 1e6 / id);
    return 0;
}
