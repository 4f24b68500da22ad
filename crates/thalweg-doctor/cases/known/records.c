// CPU-COMPUTE: records of 28 bytes are copied into a buffer
// that the cache holds, and each copy is read back at once. The copy is two stores of 16 bytes, at 0
// and 12; each load needs both of them, and the processor waits until they are in the cache. With
// 32 bytes the stores are at 0 and 16, and each load is forwarded from one.
// `records 28|32 SECONDS [RECORDS]`
//
// Checked on 2 cores of a virtual machine: `objdump -d` has `movups` to 0 and 0xc and `movdqu` from 0
// and 0xc, for 32 bytes 0 and 0x10; a record of 28 bytes takes 6.8 ns, one of 32 takes 1.2.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORDS = 512, TURN = 1 << 20 };

static char buffer[RECORDS * 32];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// All that the compiler knows of a record afterwards is where it is.
#define HIDE(place) __asm__ volatile("" : : "r"(place) : "memory")

#define APPEND(size)                                                                              \
    __attribute__((noinline)) static void append_##size(void) {                                   \
        char record[size] = {1}, back[size];                                                      \
        for (int number = 0; number < TURN; number++) {                                           \
            char *slot = buffer + number % RECORDS * size;                                        \
            HIDE(record);                                                                         \
            memcpy(slot, record, size);                                                           \
            HIDE(slot);                                                                           \
            memcpy(back, slot, size);                                                             \
            HIDE(back);                                                                           \
        }                                                                                         \
    }
APPEND(28)
APPEND(32)

int main(int count, char **arguments) {
    int size = count > 1 ? atoi(arguments[1]) : 28;
    double end = now() + (count > 2 ? atof(arguments[2]) : 1.5);
    double most = count > 3 ? atof(arguments[3]) : 1e18, done = 0;
    for (; done < most && now() < end; done += TURN)
        size == 28 ? append_28() : append_32();
    printf("%.0f records of %d bytes\n", done, size);
    return 0;
}
