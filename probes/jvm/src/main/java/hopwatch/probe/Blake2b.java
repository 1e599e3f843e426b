package hopwatch.probe;

import java.util.Arrays;

/** Digest BLAKE2b without a key (RFC 7693), which the JDK does not have. */
final class Blake2b {
    private static final int BLOCK_BYTES = 128;
    private static final int ROUNDS = 12;
    private static final long[] START = {
        0x6a09e667f3bcc908L, 0xbb67ae8584caa73bL, 0x3c6ef372fe94f82bL, 0xa54ff53a5f1d36f1L,
        0x510e527fade682d1L, 0x9b05688c2b3e6c1fL, 0x1f83d9abfb41bd6bL, 0x5be0cd19137e2179L,
    };
    /** Order in which the words of a block are mixed, by round (RFC 7693, 2.7); rounds 10 and 11 are as 0 and 1. */
    private static final int[][] ORDER = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
        {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
        {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
        {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
        {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    };

    private Blake2b() {}

    /** Return the digest of some bytes, 1 to 64 bytes long. */
    static byte[] digest(byte[] data, int digestBytes) {
        long[] state = START.clone();
        state[0] ^= 0x01010000L ^ digestBytes;
        byte[] block = new byte[BLOCK_BYTES];
        int done = 0;
        do {
            int size = Math.min(BLOCK_BYTES, data.length - done);
            System.arraycopy(data, done, block, 0, size);
            Arrays.fill(block, size, BLOCK_BYTES, (byte) 0);
            done += size;
            compress(state, block, done, done == data.length);
        } while (done < data.length);
        byte[] digest = new byte[digestBytes];
        for (int place = 0; place < digestBytes; place++) {
            digest[place] = (byte) (state[place >> 3] >>> 8 * (place & 7));
        }
        return digest;
    }

    private static void compress(long[] state, byte[] block, long doneBytes, boolean isLast) {
        long[] words = new long[16];
        for (int place = 0; place < BLOCK_BYTES; place++) {
            words[place >> 3] |= (block[place] & 0xffL) << 8 * (place & 7);
        }
        long[] mixed = Arrays.copyOf(state, 16);
        System.arraycopy(START, 0, mixed, 8, 8);
        mixed[12] ^= doneBytes;
        if (isLast) {
            mixed[14] = ~mixed[14];
        }
        for (int round = 0; round < ROUNDS; round++) {
            int[] order = ORDER[round % ORDER.length];
            for (int column = 0; column < 4; column++) {
                mix(mixed, column, column + 4, column + 8, column + 12,
                    words[order[2 * column]], words[order[2 * column + 1]]);
            }
            for (int column = 0; column < 4; column++) {
                mix(mixed, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4,
                    words[order[8 + 2 * column]], words[order[9 + 2 * column]]);
            }
        }
        for (int place = 0; place < 8; place++) {
            state[place] ^= mixed[place] ^ mixed[place + 8];
        }
    }

    private static void mix(long[] mixed, int a, int b, int c, int d, long x, long y) {
        mixed[a] += mixed[b] + x;
        mixed[d] = Long.rotateRight(mixed[d] ^ mixed[a], 32);
        mixed[c] += mixed[d];
        mixed[b] = Long.rotateRight(mixed[b] ^ mixed[c], 24);
        mixed[a] += mixed[b] + y;
        mixed[d] = Long.rotateRight(mixed[d] ^ mixed[a], 16);
        mixed[c] += mixed[d];
        mixed[b] = Long.rotateRight(mixed[b] ^ mixed[c], 63);
    }
}
