package hopwatch.probe.kafka;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Mark of a message, a header: the process that sent it, its event time in µs since 1970, its topic, and its id. */
record MessageMark(String process, long eventUs, String topic, String messageId) {
    static final String HEADER = "hopwatch-message";

    private static final int MAX_SHOWN_CHARS = 80;
    private static final Pattern VALUE =
        Pattern.compile("([0-9a-f]{1,24});(\\d{1,18});([A-Za-z0-9._-]{1,128});(.+)", Pattern.DOTALL);

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
        Matcher found = VALUE.matcher(text);
        if (!found.matches()) {
            String shown = text.substring(0, Math.min(text.length(), MAX_SHOWN_CHARS)).replaceAll("\\p{Cntrl}", "?");
            throw new IllegalArgumentException(HEADER + " has a process, a time, a topic and an id, got '" + shown + "'");
        }
        return new MessageMark(found.group(1), Long.parseLong(found.group(2)), found.group(3), found.group(4));
    }
}
