import io.apicurio.registry.utils.converter.avro.AvroData;
import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.transforms.ExtractNewRecordState;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Reader;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;

/**
 * Runs Debezium's embedded engines, several at once, and writes each record as every variant of its engine has it, until its
 * standard input ends. Arguments: the directory for `messages.VARIANT.jsonl` and `schemas.json`, then a properties file for each
 * engine. In such a file `variants` names the engine's variants; `variant.NAME.format` is json, json-schemas or avro,
 * `variant.NAME.converter.*` are settings of JsonConverter and `variant.NAME.flat.*` of ExtractNewRecordState.
 */
public class Messages {
  private static final Base64.Encoder BASE64 = Base64.getEncoder();
  private static final Map<String, Integer> IDS = new LinkedHashMap<>();

  private static String quoted(String text) {
    StringBuilder json = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c < 32) {
        json.append(String.format("\\u%04x", (int) c));
      } else {
        json.append(c);
      }
    }
    return json.append('"').toString();
  }

  private static String base64(byte[] bytes) {
    return bytes == null ? "null" : quoted(BASE64.encodeToString(bytes));
  }

  /** The id of a schema, by which all variants know it; the file has all of them at any time. */
  private static synchronized int id(Path directory, String schema) throws IOException {
    if (!IDS.containsKey(schema)) {
      IDS.put(schema, IDS.size() + 1);
      List<String> lines = new ArrayList<>();
      IDS.forEach((text, id) -> lines.add("\"" + id + "\": " + quoted(text)));
      Files.writeString(directory.resolve("schemas.json"), "{\n" + String.join(",\n", lines) + "\n}\n");
    }
    return IDS.get(schema);
  }

  private static Map<String, String> below(Properties properties, String prefix) {
    Map<String, String> found = new HashMap<>();
    for (String name : properties.stringPropertyNames()) {
      if (name.startsWith(prefix)) {
        found.put(name.substring(prefix.length()), properties.getProperty(name));
      }
    }
    return found;
  }

  private static class Variant {
    private final Path directory;
    private final boolean isAvro;
    private final AvroData avro = new AvroData(1000);
    private final JsonConverter keys = new JsonConverter();
    private final JsonConverter values = new JsonConverter();
    private final SimpleHeaderConverter headers = new SimpleHeaderConverter();
    private final Map<String, Long> offsets = new HashMap<>();
    private final Writer out;
    private ExtractNewRecordState<SourceRecord> flat;

    Variant(String name, Properties properties, Path directory) throws IOException {
      this.directory = directory;
      String format = properties.getProperty("variant." + name + ".format");
      isAvro = format.equals("avro");
      Map<String, String> converter = below(properties, "variant." + name + ".converter.");
      converter.put("schemas.enable", String.valueOf(format.equals("json-schemas")));
      keys.configure(converter, true);
      values.configure(converter, false);
      headers.configure(Map.of());
      Map<String, String> settings = below(properties, "variant." + name + ".flat.");
      if (!settings.isEmpty()) {
        flat = new ExtractNewRecordState<>();
        flat.configure(settings);
      }
      out = Files.newBufferedWriter(directory.resolve("messages." + name + ".jsonl"));
    }

    private byte[] avroOf(Schema schema, Object value) throws IOException {
      org.apache.avro.Schema written = avro.fromConnectSchema(schema);
      int id = id(directory, written.toString());
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      bytes.write(new byte[] {0, (byte) (id >>> 24), (byte) (id >>> 16), (byte) (id >>> 8), (byte) id});
      BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
      new GenericDatumWriter<Object>(written).write(avro.fromConnectData(schema, value), encoder);
      encoder.flush();
      return bytes.toByteArray();
    }

    private byte[] bytes(JsonConverter converter, String topic, Schema schema, Object value) throws IOException {
      if (value == null) {
        return null;
      }
      return isAvro ? avroOf(schema, value) : converter.fromConnectData(topic, schema, value);
    }

    void write(SourceRecord record) throws IOException {
      if (flat != null) {
        // A transform may add headers to the record that it is given.
        record = flat.apply(record.newRecord(record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
            record.valueSchema(), record.value(), record.timestamp(), record.headers().duplicate()));
      }
      if (record == null) {
        return;
      }
      String topic = record.topic();
      List<String> told = new ArrayList<>();
      for (Header header : record.headers()) {
        byte[] value = headers.fromConnectHeader(topic, header.key(), header.schema(), header.value());
        told.add("{\"key\":" + quoted(header.key()) + ",\"value_b64\":" + base64(value) + "}");
      }
      long offset = offsets.merge(topic, 1L, Long::sum) - 1;
      out.write("{\"topic\":" + quoted(topic) + ",\"partition\":0,\"offset\":" + offset
          + ",\"key_b64\":" + base64(bytes(keys, topic, record.keySchema(), record.key()))
          + ",\"value_b64\":" + base64(bytes(values, topic, record.valueSchema(), record.value()))
          + ",\"headers\":[" + String.join(",", told) + "]}\n");
      out.flush();
    }
  }

  private static DebeziumEngine<?> engine(Properties properties, Path directory) throws IOException {
    List<Variant> variants = new ArrayList<>();
    for (String name : properties.getProperty("variants").split(",")) {
      variants.add(new Variant(name, properties, directory));
    }
    properties.keySet().removeIf(name -> name.toString().startsWith("variant"));
    return DebeziumEngine.create(Connect.class)
        .using(properties)
        .using(
            (success, message, error) -> {
              if (!success) {
                System.err.println("the engine has ended: " + message + " " + error);
                System.exit(1);
              }
            })
        .notifying(
            (ChangeEvent<SourceRecord, SourceRecord> event) -> {
              try {
                for (Variant variant : variants) {
                  variant.write(event.value());
                }
              } catch (IOException error) {
                throw new java.io.UncheckedIOException(error);
              }
            })
        .build();
  }

  public static void main(String[] arguments) throws Exception {
    Path directory = Path.of(arguments[0]);
    ExecutorService threads = Executors.newCachedThreadPool();
    List<DebeziumEngine<?>> engines = new ArrayList<>();
    for (int k = 1; k < arguments.length; k++) {
      Properties properties = new Properties();
      try (Reader file = Files.newBufferedReader(Path.of(arguments[k]))) {
        properties.load(file);
      }
      engines.add(engine(properties, directory));
    }
    engines.forEach(threads::execute);
    while (System.in.read() >= 0) {}
    for (DebeziumEngine<?> engine : engines) {
      engine.close();
    }
    threads.shutdown();
  }
}
