package hopwatch.probe.kafka;

import hopwatch.probe.Probe;
import java.nio.charset.StandardCharsets;

/** Mark of a message, a header: the process that sent it, its event time in µs since 1970, its topic, and its id. */
record MessageMark(String process, long eventUs, String topic, String messageId) {
    static final String HEADER = "hopwatch-message";

    private static final int MAX_SHOWN_CHARS = 80;
    private static final int MAX_PROCESS_CHARS = 24;
    private static final int MAX_TIME_DIGITS = 18;

    byte[] format() {
        return (process + ";" + eventUs + ";" + topic + ";" + messageId).getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Parse the value of the header.
     *
     * @throws IllegalArgumentException it is none
     */
    static MessageMark parse(byte[] value) {
        String text = value == null ? "" : new String(value, StandardCharsets.UTF_8);
        int timeAt = text.indexOf(';') + 1;
        int topicAt = text.indexOf(';', timeAt) + 1;
        int idAt = text.indexOf(';', topicAt) + 1;
        if (timeAt > 0 && topicAt > 0 && idAt > 0 && idAt < text.length()) {
            String process = text.substring(0, timeAt - 1);
            String topic = text.substring(topicAt, idAt - 1);
            long eventUs = parseTime(text, timeAt, topicAt - 1);
            if (isProcess(process) && eventUs >= 0 && Probe.isName(topic)) {
                return new MessageMark(process, eventUs, topic, text.substring(idAt));
            }
        }
        String shown = text.substring(0, Math.min(text.length(), MAX_SHOWN_CHARS)).replaceAll("\\p{Cntrl}", "?");
        throw new IllegalArgumentException(HEADER + " has a process, a time, a topic and an id, got '" + shown + "'");
    }

    private static boolean isProcess(String text) {
        return !text.isEmpty() && text.length() <= MAX_PROCESS_CHARS
            && text.chars().allMatch(one -> one >= '0' && one <= '9' || one >= 'a' && one <= 'f');
    }

    /** Return the number of µs, or -1 where there is none. */
    private static long parseTime(String text, int start, int end) {
        long number = start < end && end - start <= MAX_TIME_DIGITS ? 0 : -1;
        for (int place = start; place < end && number >= 0; place++) {
            int digit = text.charAt(place) - '0';
            number = digit >= 0 && digit <= 9 ? 10 * number + digit : -1;
        }
        return number;
    }
}
