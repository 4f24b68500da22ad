// An exchange where all that touches the book runs on one "book thread". The session threads
// hand over each little request with submit() and wait in get(): two parks and two wakes for
// a map update of less than a microsecond.
// Cause: FUTEX-PARKING.
// check by hand: strace -c -w gave 98% of the time in futex (4 calls an order); perf stat gave
// 1.8 context switches an order; the same with a synchronized apply() in place of submit().get()
// takes 1 us an order, not 17 to 40.
import java.util.*;
import java.util.concurrent.*;

public class BookThread {
    record Order(long id, int price, int size) {}

    static class Book {
        final TreeMap<Integer, Integer> levels = new TreeMap<>();

        int apply(Order o) {
            int size = levels.merge(o.price(), o.size(), Integer::sum);
            if (size > 1000) levels.remove(o.price());
            return size;
        }

        int depth() {
            return levels.size();
        }
    }

    final Book book = new Book();
    final ExecutorService bookThread = Executors.newSingleThreadExecutor(r -> new Thread(r, "book"));

    int place(Order o) throws Exception {
        return bookThread.submit(() -> book.apply(o)).get();
    }

    long session(int number, long end) throws Exception {
        Random random = new Random(number);
        long placed = 0;
        while (System.nanoTime() < end) {
            place(new Order(placed, 100 + random.nextInt(64), 1 + random.nextInt(9)));
            placed++;
        }
        return placed;
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[args.length - 1]) : 1.5;
        BookThread exchange = new BookThread();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long[] placed = new long[2];
        Thread[] sessions = new Thread[placed.length];
        for (int i = 0; i < sessions.length; i++) {
            int number = i;
            sessions[i] = new Thread(() -> {
                try {
                    placed[number] = exchange.session(number, end);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "session-" + i);
            sessions[i].start();
        }
        for (Thread s : sessions) s.join();
        int depth = exchange.bookThread.submit(exchange.book::depth).get();
        exchange.bookThread.shutdown();
        long total = Arrays.stream(placed).sum();
        System.out.printf("%d orders, %.1f us each, %d levels%n", total, seconds * 1e6 * sessions.length / total, depth);
    }
}
