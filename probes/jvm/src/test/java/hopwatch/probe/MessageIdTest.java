package hopwatch.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ids are sixteen bytes, whatever a service passes, and digests are those of RFC 7693. */
class MessageIdTest {
    @Test
    void aDigestIsThatOfTheStandardsExample() {
        String expected = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
            + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
        assertEquals(expected, digest("abc".getBytes(StandardCharsets.UTF_8), 64));
    }

    @ParameterizedTest
    @CsvSource({
        "0, cae66941d9efbd404e4d88758ea67670",
        "1, 7025e075d5e2f6cde3cc051a31f07660",
        "127, 8a63b21987a64abd3af831a193427fec",
        "128, 40d697295c01d2312035c1fa7d884b8d",
        "129, dcd04926f5dafbeb0bb326f1915d1066",
        "256, ad08cf477ab685de2d896e8942ee1656",
        "257, 19b3536ca160c506b6ab48d4f0a87f3d",
    })
    void aDigestOfManyBlocksIsThatOfPython(int size, String expected) {
        assertEquals(expected, digest(new byte[size], 16));
    }

    private static String digest(byte[] data, int digestBytes) {
        return HexFormat.of().formatHex(Blake2b.digest(data, digestBytes));
    }

    @Test
    void whatIsNoIdIsNamed() {
        assertEquals("a message id is a UUID, 16 bytes, a whole number or a text, got null", refuse(null));
        assertEquals("a message id is a UUID, 16 bytes, a whole number or a text, got 3 bytes", refuse(new byte[3]));
        assertEquals("a message id is a UUID, 16 bytes, a whole number or a text, got java.lang.Double", refuse(1.5));
        assertEquals("a message id as a number lies in 0 ... 2^128 - 1, got -1", refuse(-1));
        assertEquals("a message id as a number lies in 0 ... 2^128 - 1, got one of 129 bits",
            refuse(BigInteger.ONE.shiftLeft(128)));
        assertEquals("a message id is a text of whole characters, got half of one", refuse("\ud83d"));
    }

    private static String refuse(Object id) {
        return assertThrows(IllegalArgumentException.class, () -> MessageId.of(id)).getMessage();
    }
}
