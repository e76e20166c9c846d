import java.io.*;
import java.math.*;
import java.nio.*;
import java.nio.file.*;
import java.security.*;
import java.time.*;
import java.time.format.*;
import java.util.*;
import org.apache.avro.*;
import org.apache.avro.generic.*;
import org.apache.avro.io.*;

/** Writes golden.jsonl: data written by Avro's Java under each schema of schemas.jsonl, and what it reads from them. */
public class Golden {
  static Random chance = new Random(14);
  static final long DAY = 86_400_000L;

  public static void main(String[] args) throws Exception {
    try (PrintStream out = new PrintStream(args[1], "UTF-8")) {
      for (String line : Files.readAllLines(Path.of(args[0]))) {
        String[] pair = line.split("\t");
        Schema writer = new Schema.Parser().parse(pair[0]), reader = new Schema.Parser().parse(pair[pair.length - 1]);
        MessageDigest md5 = MessageDigest.getInstance("MD5");
        String id = HexFormat.of().formatHex(md5.digest(writer.toString().getBytes("UTF-8")));
        StringBuilder row = new StringBuilder("{\"schema\":" + text(pair[0]) + ",\"java\":" + text(writer.toString()) + ",\"md5\":\"" + id + "\"");
        if (pair.length > 1) row.append(",\"reader\":" + text(pair[1]));
        row.append(",\"data\":[");
        for (int i = 0; i < 12; i++) {
          ByteArrayOutputStream bytes = new ByteArrayOutputStream();
          // In blocks of a few bytes: negative counts, each with its size.
          BinaryEncoder encoder = i % 2 == 0 ? EncoderFactory.get().binaryEncoder(bytes, null)
              : new EncoderFactory().configureBlockSize(64).blockingBinaryEncoder(bytes, null);
          new GenericDatumWriter<Object>(writer).write(any(writer, 3), encoder);
          encoder.flush();
          Object read = new GenericDatumReader<Object>(writer, reader).read(null, DecoderFactory.get().binaryDecoder(bytes.toByteArray(), null));
          row.append(i == 0 ? "" : ",").append("[\"" + Base64.getEncoder().encodeToString(bytes.toByteArray()) + "\"," + json(reader, read) + "]");
        }
        out.println(row.append("]}"));
      }
    }
  }

  static Object any(Schema s, int depth) {
    String logical = s.getProp("logicalType");
    switch (s.getType()) {
      case NULL: return null;
      case BOOLEAN: return chance.nextBoolean();
      case INT: return "date".equals(logical) ? chance.nextInt(2932897) - 719162 / 2 : "time-millis".equals(logical) ? chance.nextInt((int) DAY) : chance.nextInt() >> chance.nextInt(32);
      case LONG:
        if (logical == null) return chance.nextLong() >> chance.nextInt(64);
        if (logical.equals("time-micros")) return (chance.nextLong() >>> 1) % (DAY * 1000);
        return chance.nextLong() % (200L * 365 * DAY) * (logical.endsWith("micros") ? 1000 : 1) + chance.nextInt(1000);
      case FLOAT: return chance.nextFloat() * (1 << chance.nextInt(30));
      case DOUBLE: return chance.nextInt(3) == 0 ? Double.longBitsToDouble(chance.nextLong() & 0x7FEFFFFFFFFFFFFFL) : chance.nextInt(100000) / 100.0;
      case STRING: return "uuid".equals(logical) ? UUID.randomUUID().toString() : "grüße 日本 😀 \"\\\n".substring(0, chance.nextInt(12)).replaceAll("[\\ud800-\\udbff]$", "");
      case BYTES: case FIXED: {
        byte[] raw;
        if ("decimal".equals(logical)) {
          int digits = ((Number) s.getObjectProp("precision")).intValue();
          BigInteger n = new BigInteger(3 * digits, chance).subtract(BigInteger.ONE.shiftLeft(3 * digits - 1));
          raw = n.toByteArray();
          if (s.getType() == Schema.Type.FIXED) {
            byte[] wide = new byte[s.getFixedSize()];
            Arrays.fill(wide, (byte) (n.signum() < 0 ? -1 : 0));
            System.arraycopy(raw, 0, wide, wide.length - raw.length, raw.length);
            raw = wide;
          }
        } else {
          raw = new byte[s.getType() == Schema.Type.FIXED ? s.getFixedSize() : chance.nextInt(70)];
          chance.nextBytes(raw);
        }
        return s.getType() == Schema.Type.FIXED ? new GenericData.Fixed(s, raw) : ByteBuffer.wrap(raw);
      }
      case ENUM: return new GenericData.EnumSymbol(s, s.getEnumSymbols().get(chance.nextInt(s.getEnumSymbols().size())));
      case ARRAY: {
        List<Object> items = new ArrayList<>();
        for (int n = chance.nextInt(6); n > 0; n--) items.add(any(s.getElementType(), depth));
        return items;
      }
      case MAP: {
        Map<String, Object> items = new LinkedHashMap<>();
        for (int n = chance.nextInt(5); n > 0; n--) items.put("k" + chance.nextInt(1000), any(s.getValueType(), depth));
        return items;
      }
      case UNION: {
        int n = s.getTypes().size();
        Schema branch = s.getTypes().get(depth <= 0 ? 0 : chance.nextInt(n));
        return any(branch, depth - 1);
      }
      default: {
        GenericData.Record record = new GenericData.Record(s);
        for (Schema.Field f : s.getFields()) record.put(f.pos(), any(f.schema(), depth));
        return record;
      }
    }
  }

  static String json(Schema s, Object v) {
    String logical = s.getProp("logicalType");
    switch (s.getType()) {
      case UNION: return json(s.getTypes().get(GenericData.get().resolveUnion(s, v)), v);
      case INT:
        if ("date".equals(logical)) return text(LocalDate.ofEpochDay((Integer) v).toString());
        return "time-millis".equals(logical) ? time((Integer) v * 1000_000L, 3) : v.toString();
      case LONG:
        if (logical == null) return v.toString();
        int digits = logical.endsWith("micros") ? 6 : 3;
        long unit = digits == 6 ? 1000_000 : 1000, n = (Long) v;
        if (logical.equals("time-micros")) return time(n * 1000, 6);
        Instant at = Instant.ofEpochSecond(Math.floorDiv(n, unit), Math.floorMod(n, unit) * (1000_000_000 / unit));
        String zone = logical.startsWith("local") ? "" : "'Z'";
        return text(DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss." + "S".repeat(digits) + zone).format(at.atOffset(ZoneOffset.UTC)));
      case STRING: return text(v.toString());
      case ENUM: return text(v.toString());
      case BYTES: case FIXED: {
        byte[] raw = v instanceof ByteBuffer ? ((ByteBuffer) v).array() : ((GenericFixed) v).bytes();
        if ("decimal".equals(logical)) {
          Object scale = s.getObjectProp("scale");
          return text(new BigDecimal(new BigInteger(raw), scale == null ? 0 : ((Number) scale).intValue()).toPlainString());
        }
        return text(Base64.getEncoder().encodeToString(raw));
      }
      case ARRAY: {
        StringJoiner items = new StringJoiner(",", "[", "]");
        for (Object item : (List<?>) v) items.add(json(s.getElementType(), item));
        return items.toString();
      }
      case MAP: {
        StringJoiner items = new StringJoiner(",", "{", "}");
        for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) items.add(text(e.getKey().toString()) + ":" + json(s.getValueType(), e.getValue()));
        return items.toString();
      }
      case RECORD: {
        StringJoiner fields = new StringJoiner(",", "{", "}");
        for (Schema.Field f : s.getFields()) fields.add(text(f.name()) + ":" + json(f.schema(), ((GenericRecord) v).get(f.pos())));
        return fields.toString();
      }
      default: return String.valueOf(v);
    }
  }

  static String time(long nanos, int digits) {
    return text(LocalTime.ofNanoOfDay(nanos).format(DateTimeFormatter.ofPattern("HH:mm:ss." + "S".repeat(digits))));
  }

  static String text(String s) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : s.toCharArray()) {
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 32 || c > 126) out.append(String.format("\\u%04x", (int) c));
      else out.append(c);
    }
    return out.append('"').toString();
  }
}
