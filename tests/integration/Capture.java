import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Captures a database's changes by Debezium's embedded engine and sends them to a broker, until its standard input ends. */
public class Capture {
  private static byte[] bytes(Object text) {
    return text == null ? null : text.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static ProducerRecord<byte[], byte[]> record(ChangeEvent<String, String> event) {
    ProducerRecord<byte[], byte[]> record =
        new ProducerRecord<>(event.destination(), bytes(event.key()), bytes(event.value()));
    event.headers().forEach(header -> record.headers().add(header.getKey(), bytes(header.getValue())));
    return record;
  }

  public static void main(String[] arguments) throws Exception {
    Properties connector = new Properties();
    try (Reader file = Files.newBufferedReader(Path.of(arguments[0]))) {
      connector.load(file);
    }
    Map<String, Object> settings = Map.of("bootstrap.servers", arguments[1], "enable.idempotence", true);
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      DebeziumEngine<ChangeEvent<String, String>> engine =
          DebeziumEngine.create(Json.class, Json.class, Json.class)
              .using(connector)
              .using(
                  (success, message, error) -> {
                    if (!success) {
                      System.err.println("the engine has ended: " + message + " " + error);
                      System.exit(1);
                    }
                  })
              .notifying(
                  (events, committer) -> {
                    for (ChangeEvent<String, String> event : events) {
                      producer.send(record(event));
                    }
                    producer.flush();
                    for (ChangeEvent<String, String> event : events) {
                      committer.markProcessed(event);
                    }
                    committer.markBatchFinished();
                  })
              .build();
      ExecutorService thread = Executors.newSingleThreadExecutor();
      thread.execute(engine);
      while (System.in.read() >= 0) {}
      engine.close();
      thread.shutdown();
    }
  }
}
