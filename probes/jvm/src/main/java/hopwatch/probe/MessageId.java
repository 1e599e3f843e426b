package hopwatch.probe;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/** Message id in wire format: its 16 bytes, its kind, and the text in UTF-8, null unless the id is a text. */
record MessageId(byte[] wire, Kind kind, byte[] text) {
    /** Kind of an id as the service gives it, in the order of the wire. */
    enum Kind { BYTES, UUID, INT, TEXT }

    /**
     * Encode an id.
     *
     * @param id a UUID, 16 bytes, a whole number from 0 to 2^128 - 1, or a text
     * @throws IllegalArgumentException it is something else
     */
    static MessageId of(Object id) {
        if (id instanceof String text) {
            return ofText(text);
        }
        if (id instanceof UUID uuid) {
            byte[] wire = ByteBuffer.allocate(Limits.ID_BYTES)
                .putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits()).array();
            return new MessageId(wire, Kind.UUID, null);
        }
        if (id instanceof Long || id instanceof Integer) {
            return ofNumber(BigInteger.valueOf(((Number) id).longValue()));
        }
        if (id instanceof BigInteger number) {
            return ofNumber(number);
        }
        if (id instanceof byte[] bytes && bytes.length == Limits.ID_BYTES) {
            return new MessageId(bytes, Kind.BYTES, null);
        }
        String got = id instanceof byte[] bytes ? bytes.length + " bytes" : id == null ? "null" : id.getClass().getName();
        throw new IllegalArgumentException("a message id is a UUID, 16 bytes, a whole number or a text, got " + got);
    }

    private static MessageId ofText(String text) {
        try {
            // Unlike String.getBytes, which writes the same byte for each half of a surrogate pair.
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return new MessageId(Blake2b.digest(bytes, Limits.ID_BYTES), Kind.TEXT, bytes);
        } catch (CharacterCodingException error) {
            throw new IllegalArgumentException("a message id is a text of whole characters, got half of one", error);
        }
    }

    private static MessageId ofNumber(BigInteger number) {
        if (number.signum() < 0 || number.bitLength() > 8 * Limits.ID_BYTES) {
            String got = number.bitLength() < 64 ? number.toString() : "one of " + number.bitLength() + " bits";
            throw new IllegalArgumentException("a message id as a number lies in 0 ... 2^128 - 1, got " + got);
        }
        byte[] digits = number.toByteArray();
        byte[] wire = new byte[Limits.ID_BYTES];
        int size = Math.min(digits.length, wire.length);
        System.arraycopy(digits, digits.length - size, wire, wire.length - size, size);
        return new MessageId(wire, Kind.INT, null);
    }
}
