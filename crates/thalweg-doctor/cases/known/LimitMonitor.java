// RPC server with eight handlers. The cache of credit limits is guarded by "synchronized",
// and on a miss the limit is fetched from the remote store (about 1 ms) with the monitor held.
// Nearly each call misses, so all handlers queue at the monitor: eight do no more than one.
// check by hand: jstack gave 7 of 8 handlers BLOCKED on the monitor of limitOf, one sleeping in
// fetch under it; time 0.2 s CPU (mostly JVM start); with the fetch outside of the monitor, put in
// for the check, 9192 instead of about 1150 calls in 1.5 s.
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

public class LimitMonitor {
    static final int HANDLERS = 8;

    static final class LimitCache {
        private final Map<Long, Long> lru = new LinkedHashMap<>(64, 0.75f, true) {
            @Override protected boolean removeEldestEntry(Map.Entry<Long, Long> e) { return size() > 32; }
        };

        synchronized long limitOf(long account) throws InterruptedException {
            Long hit = lru.get(account);
            if (hit != null) return hit;
            long limit = fetch(account);               // should be outside of the monitor
            lru.put(account, limit);
            return limit;
        }

        // Stub of the remote store: a round trip of a millisecond.
        private long fetch(long account) throws InterruptedException {
            Thread.sleep(1);
            return 1_000_000 + account % 1_000;
        }
    }

    public static void main(String[] args) throws Exception {
        double secs = args.length > 0 ? Double.parseDouble(args[args.length - 1]) : 1.5;
        long end = System.nanoTime() + (long) (secs * 1e9);
        LimitCache cache = new LimitCache();
        AtomicLong served = new AtomicLong(), accepted = new AtomicLong();
        Thread[] handlers = new Thread[HANDLERS];
        for (int i = 0; i < HANDLERS; i++) {
            final long seed = 1 + i;
            handlers[i] = new Thread(() -> {
                long x = seed * 0x9e3779b97f4a7c15L;
                try {
                    while (System.nanoTime() < end) {
                        x ^= x << 13; x ^= x >>> 7; x ^= x << 17;
                        long account = (x >>> 1) % 100_000;
                        if (cache.limitOf(account) > (x & 0xfffff)) accepted.incrementAndGet();
                        served.incrementAndGet();
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }, "handler-" + i);
            handlers[i].start();
        }
        for (Thread h : handlers) h.join();
        System.out.println("served " + served + " accepted " + accepted);
    }
}
