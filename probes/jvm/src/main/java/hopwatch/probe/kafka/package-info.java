/**
 * Interceptors of Kafka clients, which stamp messages by configuration alone: producers, consumers, Kafka Streams and
 * the workers of Kafka Connect.
 */
package hopwatch.probe.kafka;
