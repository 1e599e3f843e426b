package hopwatch.probe;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sink that writes segments of records in a folder of its instance, published atomically: a segment has a name that
 * readers ignore, until it is synced and renamed when it is 8 MiB large or a second old.
 */
final class SpoolSink implements Sink {
    static final String SCHEME = "spool:";
    /** Disk space of one instance, with the segments that the monitor has not deleted yet. */
    static final long MAX_BYTES = 256L * 1024 * 1024;

    private static final byte[] MAGIC = "HWSP1\n".getBytes(StandardCharsets.US_ASCII);
    private static final long MAX_SEGMENT_BYTES = 8 * 1024 * 1024;
    private static final long SEGMENT_AGE_NS = 1_000_000_000L;
    /** Pause after a failure: a host must not pay for a full disk at every flush. */
    private static final long RETRY_NS = 1_000_000_000L;
    private static final int MAX_FOLDER_CHARS = 120;
    private static final int FRAME_BYTES = 8;
    private static final Logger LOG = LoggerFactory.getLogger("hopwatch.probe");

    private final Path folder;
    private final Clock clock;
    private final long maxBytes;
    private final OncePerCause logged = new OncePerCause();
    private FileChannel file;
    private Path path;
    private int number;
    private long bytes;
    private long keptBytes;
    private long sinceNs;
    private Long failedNs;
    private boolean isWhole = true;

    SpoolSink(Path root, String instance, Clock clock, long maxBytes) {
        folder = root.toAbsolutePath().resolve(folderName(instance));
        this.clock = clock;
        this.maxBytes = maxBytes;
    }

    /** Return the name of the folder of an instance: readable, safe in a path, and unique. */
    static String folderName(String instance) {
        String safe = instance.replaceAll("^[._]|[^A-Za-z0-9._-]", "-");
        safe = safe.substring(0, Math.min(safe.length(), MAX_FOLDER_CHARS));
        if (!safe.isEmpty() && safe.equals(instance)) {
            return safe;
        }
        byte[] digest = Blake2b.digest(instance.getBytes(StandardCharsets.UTF_8), 6);
        return safe + "-" + HexFormat.of().formatHex(digest);
    }

    @Override
    public boolean send(SentRecord sent) {
        if (failedNs != null && clock.monotonicNs() - failedNs < RETRY_NS) {
            return false;
        }
        try {
            ByteBuffer data = frame(sent.bytes());
            if (hasRoom(data.remaining())) {
                append(data);
                if (bytes >= MAX_SEGMENT_BYTES) {
                    publish();
                }
                return true;
            }
            logOnce("is full: " + maxBytes + " bytes are kept, which the monitor has not deleted yet");
        } catch (IOException error) {
            logOnce("cannot be written: " + error);
        }
        failedNs = clock.monotonicNs();
        return false;
    }

    private ByteBuffer frame(byte[] record) {
        CRC32C crc = new CRC32C();
        crc.update(record);
        ByteBuffer data = ByteBuffer.allocate(MAGIC.length + FRAME_BYTES + record.length).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes == 0) {
            data.put(MAGIC);
        }
        return data.putInt(record.length).putInt((int) crc.getValue()).put(record).flip();
    }

    private boolean hasRoom(long needed) throws IOException {
        if (file == null) {
            Files.createDirectories(folder);
            keptBytes = measureFolder();
        }
        return keptBytes + bytes + needed <= maxBytes;
    }

    private long measureFolder() throws IOException {
        long total = 0;
        try (DirectoryStream<Path> segments = Files.newDirectoryStream(folder, "*.seg")) {
            for (Path segment : segments) {
                try {
                    total += Files.size(segment);
                } catch (NoSuchFileException error) {
                    // The monitor has just deleted it.
                    continue;
                }
            }
        }
        return total;
    }

    /** Write behind the last whole record, over the remains of a failed write. */
    private void append(ByteBuffer data) throws IOException {
        if (file == null) {
            path = folder.resolve(String.format("%010d.open", number));
            file = FileChannel.open(path, StandardOpenOption.WRITE, StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING);
            sinceNs = clock.monotonicNs();
        }
        long end = bytes;
        while (data.hasRemaining()) {
            end += file.write(data, end);
        }
        bytes = end;
    }

    /** Truncate, sync and rename; delete a segment that cannot be synced: its records are a hole in the books. */
    private void publish() {
        if (file == null) {
            return;
        }
        try {
            try (FileChannel ending = file) {
                ending.truncate(bytes);
                ending.force(true);
            }
            if (bytes > 0) {
                Files.move(path, folder.resolve(String.format("%010d.seg", number)));
                syncFolder();
            }
        } catch (IOException error) {
            logOnce("cannot be synced: " + error);
            failedNs = clock.monotonicNs();
            isWhole = false;
        }
        try {
            Files.deleteIfExists(path);
        } catch (IOException error) {
            logOnce("cannot be tidied: " + error);
        }
        file = null;
        bytes = 0;
        number++;
    }

    private void syncFolder() throws IOException {
        try (FileChannel names = FileChannel.open(folder, StandardOpenOption.READ)) {
            names.force(true);
        }
    }

    @Override
    public List<SentRecord> takeFailed() {
        // Records that cannot be published show as a hole in the books.
        return List.of();
    }

    @Override
    public void tick() {
        if (file != null && clock.monotonicNs() - sinceNs >= SEGMENT_AGE_NS) {
            publish();
        }
    }

    @Override
    public boolean settle(long patienceMs) {
        publish();
        boolean wasWhole = isWhole;
        isWhole = true;
        return wasWhole;
    }

    @Override
    public void close() {
        publish();
    }

    private void logOnce(String why) {
        if (logged.isNew(why)) {
            LOG.warn("the spool " + folder + " " + why);
        }
    }
}
