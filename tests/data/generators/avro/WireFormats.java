import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.serializers.SerializationDataEncoder;
import io.apicurio.registry.resolver.strategy.ArtifactReference;
import io.apicurio.registry.serde.*;
import io.apicurio.registry.serde.headers.DefaultHeadersHandler;
import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.avro.*;
import org.apache.avro.generic.*;
import org.apache.avro.io.*;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.kafka.common.header.*;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** Writes wire_formats.jsonl: one datum behind what each registry's own code puts around it. */
public class WireFormats {
  static final HexFormat HEX = HexFormat.of();
  static final Schema SCHEMA = new Schema.Parser().parse(
      "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"note\",\"type\":\"string\"}]}");

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(args[0], "UTF-8");
    for (int i = 0; i < 6; i++) {
      GenericRecord order = new GenericData.Record(SCHEMA);
      order.put("id", 1000L * i - 7);
      order.put("note", "wine ".repeat(i * i * 20));
      String json = "{\"id\":" + order.get("id") + ",\"note\":\"" + order.get("note") + "\"}";
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
      new GenericDatumWriter<GenericRecord>(SCHEMA).write(order, encoder);
      encoder.flush();
      byte[] datum = bytes.toByteArray();
      long id = i == 5 ? 1L << 40 : 300 + i;
      ArtifactReference reference = ArtifactReference.builder().globalId(id).contentId(id).build();
      if (id < Integer.MAX_VALUE)
        for (IdHandler handler : List.of(new DefaultIdHandler(), new Legacy4ByteIdHandler()))
          line(out, "apicurio", "" + id, null, framed(handler, reference, datum), json);
      for (boolean isKey : new boolean[] {false, true}) {
        DefaultHeadersHandler handler = new DefaultHeadersHandler();
        handler.configure(Map.of("apicurio.registry.use-id", i % 2 == 0 ? "globalId" : "contentId"), isKey);
        Headers headers = new RecordHeaders();
        handler.writeHeaders(headers, reference);
        line(out, "apicurio", "" + id, headers, datum, json);
      }
      UUID uuid = new UUID(0x123456789ABCDEF0L * (i + 1), 0x8765432100L + i);
      for (String compression : List.of("NONE", "ZLIB")) {
        GlueSchemaRegistryConfiguration configuration = new GlueSchemaRegistryConfiguration(Map.of("region", "us-east-1", "compression", compression));
        line(out, "glue", uuid.toString(), null, new SerializationDataEncoder(configuration).write(datum, uuid), json);
      }
      ByteBuffer single = new BinaryMessageEncoder<GenericRecord>(GenericData.get(), SCHEMA).encode(order);
      byte[] message = new byte[single.remaining()];
      single.get(message);
      line(out, "single_object", HEX.formatHex(message, 2, 10), null, message, json);
    }
    out.close();
  }

  static byte[] framed(IdHandler handler, ArtifactReference reference, byte[] datum) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(0);
    handler.writeId(reference, out);
    out.write(datum);
    return out.toByteArray();
  }

  static void line(PrintStream out, String format, String id, Headers headers, byte[] value, String json) {
    StringJoiner named = new StringJoiner(",", "{", "}");
    if (headers != null) for (Header header : headers) named.add("\"" + header.key() + "\":\"" + HEX.formatHex(header.value()) + "\"");
    out.println("{\"format\":\"" + format + "\",\"id\":\"" + id + "\",\"headers\":" + (headers == null ? "null" : named)
        + ",\"value\":\"" + HEX.formatHex(value) + "\",\"row\":" + json + "}");
  }
}
