import java.nio.ByteBuffer;
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
    Batches.each(WriteOldWrappers::write);
  }

  static void write(String[] batch, List<String[]> records) {
    CompressionCodec codec = CompressionCodec$.MODULE$.getCompressionCodec(batch[2]);
    MemoryRecords produced = MemoryRecords.emptyRecords(ByteBuffer.allocate(LARGEST), CompressionType.forName(batch[2]));
    List<Message> messages = new ArrayList<>();
    for (String[] record : records) {
      messages.add(new Message(Batches.bytes(record[5]), Batches.bytes(record[4])));
      produced.append(0, Batches.bytes(record[4]), Batches.bytes(record[5]));
    }
    produced.close();
    AtomicLong offset = new AtomicLong(Long.parseLong(batch[5]));
    Set<String> written = new LinkedHashSet<>();
    written.add(Batches.encoded(new ByteBufferMessageSet(codec, offset, JavaConversions.asScalaBuffer(messages)).buffer()));
    written.add(Batches.encoded((ByteBuffer) produced.buffer().flip()));
    System.out.println(String.join(" ", written));
  }
}
