import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import kafka.message.ByteBufferMessageSet;
import kafka.message.CompressionCodec;
import kafka.message.CompressionCodec$;
import kafka.message.Message;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import scala.collection.JavaConversions;

/**
 * Writes messages and compressed wrappers of magic 0 by Kafka 0.8.2.2, from what `WriteBatches` reads. Of a batch a line has, with spaces
 * between, the bytes of the message set of brokers and Scala producers, and those of the Java producer, for whom all offsets are 0.
 */
public class WriteOldWrappers {
  static final int LARGEST = 1 << 20; // [bytes], of a batch

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String[] batch = null;
    List<String[]> records = new ArrayList<>();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] columns = line.split("\t", -1);
      if (columns[0].equals("record")) {
        records.add(columns);
        continue;
      }
      write(batch, records);
      records.clear();
      batch = columns;
    }
    write(batch, records);
  }

  static void write(String[] batch, List<String[]> records) {
    if (batch == null) {
      return;
    }
    CompressionCodec codec = CompressionCodec$.MODULE$.getCompressionCodec(batch[2]);
    MemoryRecords produced = MemoryRecords.emptyRecords(ByteBuffer.allocate(LARGEST), CompressionType.forName(batch[2]));
    List<Message> messages = new ArrayList<>();
    for (String[] record : records) {
      messages.add(new Message(bytes(record[5]), bytes(record[4])));
      produced.append(0, bytes(record[4]), bytes(record[5]));
    }
    produced.close();
    AtomicLong offset = new AtomicLong(Long.parseLong(batch[5]));
    Set<String> written = new LinkedHashSet<>();
    written.add(encoded(new ByteBufferMessageSet(codec, offset, JavaConversions.asScalaBuffer(messages)).buffer()));
    written.add(encoded((ByteBuffer) produced.buffer().flip()));
    System.out.println(String.join(" ", written));
  }

  static String encoded(ByteBuffer written) {
    ByteBuffer all = written.duplicate();
    byte[] bytes = new byte[all.remaining()];
    all.get(bytes);
    return Base64.getEncoder().encodeToString(bytes);
  }

  static byte[] bytes(String column) {
    return column.equals("-") ? null : Base64.getDecoder().decode(column);
  }
}
