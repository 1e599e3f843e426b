package hopwatch.probe;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.function.Consumer;

/** Writer of values in Avro's binary encoding. */
final class AvroWriter {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream(512);

    /** Write a whole number: zigzag, seven bits a byte, the lowest first. */
    void writeLong(long value) {
        long left = value << 1 ^ value >> 63;
        while ((left & ~0x7fL) != 0) {
            out.write((int) (left & 0x7f | 0x80));
            left >>>= 7;
        }
        out.write((int) left);
    }

    /** Write bytes behind their number. */
    void writeBytes(byte[] value) {
        writeLong(value.length);
        writeRaw(value);
    }

    /** Write a text in UTF-8 behind the number of its bytes. */
    void writeText(String value) {
        writeBytes(value.getBytes(StandardCharsets.UTF_8));
    }

    /** Write the items of an array or a map: a block of all, and the end. */
    <T> void writeItems(Collection<T> items, Consumer<T> write) {
        if (!items.isEmpty()) {
            writeLong(items.size());
            items.forEach(write);
        }
        writeLong(0);
    }

    /** Write bytes as they are. */
    void writeRaw(byte[] value) {
        out.write(value, 0, value.length);
    }

    byte[] toByteArray() {
        return out.toByteArray();
    }
}
