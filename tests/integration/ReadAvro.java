import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.DecoderFactory;

/** Reads data as Avro's Java does. A line has a writer's and a reader's schema and data in Base64; so has the answer values. */
public class ReadAvro {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    GenericData data = new GenericData();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    data.addLogicalTypeConversion(new Conversions.UUIDConversion());
    data.addLogicalTypeConversion(new TimeConversions.DateConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimeMillisConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimeMicrosConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimestampMillisConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimestampMicrosConversion());
    data.addLogicalTypeConversion(new TimeConversions.LocalTimestampMillisConversion());
    data.addLogicalTypeConversion(new TimeConversions.LocalTimestampMicrosConversion());
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode pair = JSON.readTree(line);
      Schema writer = new Schema.Parser().parse(pair.get("writer").toString());
      Schema reader = new Schema.Parser().parse(pair.get("reader").toString());
      List<Object> values = new ArrayList<>();
      for (JsonNode datum : pair.get("data")) {
        byte[] bytes = Base64.getDecoder().decode(datum.asText());
        try {
          Object value = new GenericDatumReader<Object>(writer, reader, data)
              .read(null, DecoderFactory.get().binaryDecoder(bytes, null));
          values.add(tagged("value", told(value)));
        } catch (Exception e) {
          values.add(tagged("error", e.toString()));
        }
      }
      System.out.println(JSON.writeValueAsString(values));
    }
  }

  /** A value as JSON: what JSON has no type for is an object with the name of its type. */
  private static Object told(Object value) {
    if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
      return value;
    }
    if (value instanceof IndexedRecord) {
      Map<String, Object> fields = new LinkedHashMap<>();
      for (Schema.Field field : ((IndexedRecord) value).getSchema().getFields()) {
        fields.put(field.name(), told(((IndexedRecord) value).get(field.pos())));
      }
      return tagged("object", fields);
    }
    if (value instanceof Map) {
      Map<String, Object> items = new LinkedHashMap<>();
      ((Map<?, ?>) value).forEach((key, item) -> items.put(key.toString(), told(item)));
      return tagged("object", items);
    }
    if (value instanceof List) {
      List<Object> items = new ArrayList<>();
      ((List<?>) value).forEach(item -> items.add(told(item)));
      return items;
    }
    if (value instanceof ByteBuffer) {
      ByteBuffer buffer = ((ByteBuffer) value).duplicate();
      byte[] bytes = new byte[buffer.remaining()];
      buffer.get(bytes);
      return tagged("bytes", Base64.getEncoder().encodeToString(bytes));
    }
    if (value instanceof GenericFixed) {
      return tagged("bytes", Base64.getEncoder().encodeToString(((GenericFixed) value).bytes()));
    }
    if (value instanceof CharSequence || value instanceof GenericData.EnumSymbol) {
      return value.toString();
    }
    return tagged(value.getClass().getSimpleName(), value.toString());
  }

  private static Map<String, Object> tagged(String type, Object value) {
    Map<String, Object> found = new LinkedHashMap<>();
    found.put(type, value);
    return found;
  }
}
