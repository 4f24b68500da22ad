// A storage engine's index scan with RandomAccessFile: each field is read straight from the
// file, and readInt/readLong on a RandomAccessFile mean a read() for each byte.
// The file is small and stays in the page cache, so nothing waits.
// Cause: SYSCALL-BOUND.
// check by hand: time gave user 0.35 s (with the start of the JVM), sys 1.05 s; strace -c gave
// 42052 reads for 13 scans of 200 entries (16 an entry, each of one byte, and an lseek and an
// fstat); perf gave 67% in do_syscall_64; the thread was never seen asleep.
import java.io.*;
import java.nio.file.*;

public class IndexScan {
    static final int ENTRIES = 20_000;
    static final int SIZE = 4 + 8 + 4; // key, offset, flags

    static void build(Path path) throws IOException {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            for (int i = 0; i < ENTRIES; i++) {
                out.writeInt(i * 3);
                out.writeLong(i * 512L);
                out.writeInt(i % 5 == 0 ? 1 : 0);
            }
        }
    }

    final RandomAccessFile file;

    IndexScan(Path path) throws IOException {
        file = new RandomAccessFile(path.toFile(), "r");
    }

    /** Sum of the offsets of the live entries with low <= key < high. */
    long scan(int low, int high) throws IOException {
        long sum = 0;
        file.seek((long) (low / 3) * SIZE);
        while (file.getFilePointer() < file.length()) {
            int key = file.readInt();
            long offset = file.readLong();
            int flags = file.readInt();
            if (key >= high) break;
            if (key >= low && (flags & 1) == 0) sum += offset;
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        double seconds = args.length > 0 ? Double.parseDouble(args[args.length - 1]) : 1.5;
        Path folder = Files.createTempDirectory("index-scan-");
        Path path = folder.resolve("index");
        try {
            build(path);
            IndexScan index = new IndexScan(path);
            long end = System.nanoTime() + (long) (seconds * 1e9);
            long scans = 0, sum = 0;
            while (System.nanoTime() < end) {
                int low = (int) (scans * 7919 % (ENTRIES * 3 - 600));
                sum += index.scan(low, low + 600);
                scans++;
            }
            index.file.close();
            System.out.println(scans + " scans of 200 entries, sum " + sum);
        } finally {
            Files.deleteIfExists(path);
            Files.deleteIfExists(folder);
        }
    }
}
