// SPIN-STARVES-PEER: a ring with one publisher, and a subscriber for each core and one more. All
// wait by `Thread.onSpinWait`, as the Disruptor's BusySpinWaitStrategy does: who spins has the core
// that the publisher, or the subscriber that is behind, needs to get on.
//
// Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 10,561
// events, 2.98 s user, 0.05 s system, 1,125 switches. `/proc/PID/task/*/schedstat`: each of the
// four threads has waited for a core as long as it has run. With one subscriber (second argument 1)
// 1,824,400 events; with three that yield (`3 yield`) 1,887,801.
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

public class SpinFanOut {
    static final int SLOTS = 64;
    static final long STOP = -1;

    final long[] ring = new long[SLOTS];
    final AtomicLong published = new AtomicLong();
    final AtomicLong[] consumed;
    // Not the program's bottleneck but the check of it: wait by `Thread.yield`.
    final boolean yields;

    SpinFanOut(int subscribers, boolean yields) {
        consumed = new AtomicLong[subscribers];
        for (int number = 0; number < subscribers; number++) {
            consumed[number] = new AtomicLong();
        }
        this.yields = yields;
    }

    void await(BooleanSupplier there) {
        while (!there.getAsBoolean()) {
            if (yields) {
                Thread.yield();
            } else {
                Thread.onSpinWait();
            }
        }
    }

    static long work(long value, int rounds) {
        for (int round = 0; round < rounds; round++) {
            value = value * 6364136223846793005L + 1;
        }
        return value >>> 1;
    }

    void publish(long value) {
        long next = published.get();
        for (AtomicLong subscriber : consumed) {
            await(() -> next - subscriber.get() < SLOTS);
        }
        ring[(int) (next % SLOTS)] = value;
        published.set(next + 1);
    }

    void subscribe(AtomicLong own) {
        long value = 0;
        for (long next = 0; value != STOP; next++) {
            long wanted = next;
            await(() -> published.get() > wanted);
            value = ring[(int) (next % SLOTS)];
            if (work(value, 200) == 1) {
                System.out.println("a rare value");
            }
            own.set(next + 1);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        double seconds = arguments.length > 0 ? Double.parseDouble(arguments[0]) : 1.5;
        int cores = Runtime.getRuntime().availableProcessors();
        int subscribers = arguments.length > 1 ? Integer.parseInt(arguments[1]) : cores + 1;
        boolean yields = arguments.length > 2 && arguments[2].equals("yield");
        long end = System.nanoTime() + (long) (seconds * 1e9);
        SpinFanOut ring = new SpinFanOut(subscribers, yields);
        Thread[] threads = new Thread[subscribers];
        for (int number = 0; number < subscribers; number++) {
            AtomicLong own = ring.consumed[number];
            threads[number] = new Thread(() -> ring.subscribe(own), "subscriber-" + number);
            threads[number].start();
        }
        long events = 0;
        for (long value = 1; System.nanoTime() < end; events++) {
            value = work(value, 1000);
            ring.publish(value);
        }
        ring.publish(STOP);
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(events + " events to " + subscribers + " subscribers");
    }
}
