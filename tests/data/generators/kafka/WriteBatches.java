import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Writes batches by the builder of Kafka 3.8, which producers, brokers and the log cleaner use. For each batch of the standard input a
 * line of its bytes, in Base64. What to write has columns with tabs between, `-` for null, and bytes in Base64:
 *
 * batch MAGIC CODEC LEVEL TIMESTAMP_TYPE BASE_OFFSET LAST_OFFSET MAX_TIMESTAMP PRODUCER_ID PRODUCER_EPOCH BASE_SEQUENCE
 * IS_TRANSACTIONAL IS_CONTROL LEADER_EPOCH DELETE_HORIZON; then its records: record OFFSET TIMESTAMP MAGIC KEY VALUE and a column for
 * each name and each value of its headers.
 */
public class WriteBatches {
  static final int LARGEST = 1 << 24; // [bytes], of a batch
  static final int FIRST = 1 << 16; // [bytes], of a buffer that grows

  public static void main(String[] arguments) throws Exception {
    Batches.each(WriteBatches::write);
  }

  static void write(String[] batch, List<String[]> records) {
    System.out.println(Batches.encoded(records.isEmpty() ? empty(batch) : built(batch, records)));
  }

  /** As a compacted log keeps the last batch of a producer. */
  static ByteBuffer empty(String[] batch) {
    ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
    DefaultRecordBatch.writeEmptyHeader(buffer, Byte.parseByte(batch[1]), number(batch[8]), (short) number(batch[9]), (int) number(batch[10]),
        number(batch[5]), number(batch[6]), (int) number(batch[13]), TimestampType.forName(batch[4]), number(batch[7]),
        Boolean.parseBoolean(batch[11]), Boolean.parseBoolean(batch[12]));
    return buffer.flip();
  }

  static ByteBuffer built(String[] batch, List<String[]> records) {
    byte magic = Byte.parseByte(batch[1]);
    TimestampType type = TimestampType.forName(batch[4]);
    // Records keep their producer's timestamps; the log sets the batch's when it appends it.
    TimestampType first = type == TimestampType.LOG_APPEND_TIME ? TimestampType.CREATE_TIME : type;
    MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(FIRST), magic,
        compression(batch[2], batch[3]), first, number(batch[5]), -1L, number(batch[8]), (short) number(batch[9]),
        (int) number(batch[10]), Boolean.parseBoolean(batch[11]), Boolean.parseBoolean(batch[12]), (int) number(batch[13]), LARGEST,
        number(batch[14]));
    for (String[] record : records) {
      Header[] headers = new Header[(record.length - 6) / 2];
      for (int k = 0; k < headers.length; k++) {
        String name = new String(Batches.bytes(record[6 + 2 * k]), StandardCharsets.UTF_8);
        headers[k] = new RecordHeader(name, Batches.bytes(record[7 + 2 * k]));
      }
      SimpleRecord content = new SimpleRecord(number(record[2]), Batches.bytes(record[4]), Batches.bytes(record[5]), headers);
      if (Boolean.parseBoolean(batch[12])) {
        builder.appendControlRecordWithOffset(number(record[1]), content);
      } else {
        builder.appendWithOffset(number(record[1]), content);
      }
    }
    if (magic >= 2) {
      builder.overrideLastOffset(number(batch[6]));
    }
    MemoryRecords built = builder.build();
    if (type == TimestampType.LOG_APPEND_TIME) {
      for (MutableRecordBatch entry : built.batches()) {
        entry.setMaxTimestamp(type, number(batch[7]));
      }
    }
    return built.buffer();
  }

  static Compression compression(String codec, String level) {
    if (level.equals("-")) {
      return Compression.of(codec).build();
    }
    int number = Integer.parseInt(level);
    return switch (codec) {
      case "gzip" -> Compression.gzip().level(number).build();
      case "lz4" -> Compression.lz4().level(number).build();
      default -> Compression.zstd().level(number).build();
    };
  }

  static long number(String column) {
    return column.equals("-") ? -1 : Long.parseLong(column);
  }
}
