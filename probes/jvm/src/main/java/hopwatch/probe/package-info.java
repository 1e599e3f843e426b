/**
 * Probe for programs on the JVM: it stamps messages as they arrive and leave, and sends the stamps in the wire format
 * of Hopwatch, byte for byte as the probe in Python does.
 *
 * <p>A probe never throws into its host, does not block it beyond its start, and counts the stamps that it drops.
 */
package hopwatch.probe;
