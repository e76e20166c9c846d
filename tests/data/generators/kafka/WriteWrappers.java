import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import kafka.common.LongRef;
import kafka.log.Cleaner;
import kafka.message.ByteBufferMessageSet;
import kafka.message.CompressionCodec;
import kafka.message.CompressionCodec$;
import kafka.message.Message;
import kafka.message.MessageAndOffset;
import kafka.utils.SystemTime$;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.TimestampType;
import scala.collection.JavaConversions;
import scala.collection.Seq;

/**
 * Writes messages and compressed wrappers of magic 0 and 1 by Kafka 0.10.0.1, from what `WriteBatches` reads. Of a batch a line has, with
 * spaces between, the bytes of each class that writes such: the Java producer's, the message set of producers and brokers, the cleaner.
 */
public class WriteWrappers {
  static final int LARGEST = 1 << 20; // [bytes], of a batch
  static final Cleaner CLEANER = new Cleaner(0, null, 1, 1, 0.9, null, SystemTime$.MODULE$, null);

  public static void main(String[] arguments) throws Exception {
    Batches.each(WriteWrappers::write);
  }

  static void write(String[] batch, List<String[]> records) {
    byte magic = Byte.parseByte(batch[1]);
    CompressionCodec codec = CompressionCodec$.MODULE$.getCompressionCodec(batch[2]);
    List<Message> messages = new ArrayList<>();
    List<Object> offsets = new ArrayList<>();
    List<MessageAndOffset> entries = new ArrayList<>();
    boolean isWhole = true;
    for (String[] record : records) {
      Message message = new Message(Batches.bytes(record[5]), Batches.bytes(record[4]), Long.parseLong(record[2]), Byte.parseByte(record[3]));
      isWhole &= offsets.isEmpty() || Long.parseLong(record[1]) == (Long) offsets.get(offsets.size() - 1) + 1;
      isWhole &= message.magic() == magic;
      messages.add(message);
      offsets.add(Long.parseLong(record[1]));
      entries.add(new MessageAndOffset(message, Long.parseLong(record[1])));
    }
    Seq<Message> all = JavaConversions.asScalaBuffer(messages);
    Set<String> written = new LinkedHashSet<>();
    written.add(Batches.encoded(new ByteBufferMessageSet(codec, JavaConversions.asScalaBuffer(offsets), all).buffer()));
    if (isWhole && magic == 1) {
      written.add(Batches.encoded(appended(produced(batch[2], records), batch, codec)));
      written.add(Batches.encoded(appended(new ByteBufferMessageSet(codec, all).buffer(), batch, codec)));
    }
    if (!batch[2].equals("none")) {
      ByteBuffer cleaned = ByteBuffer.allocate(LARGEST);
      CLEANER.kafka$log$Cleaner$$compressMessages(cleaned, codec, magic, JavaConversions.asScalaBuffer(entries));
      cleaned.flip();
      written.add(Batches.encoded(cleaned));
    }
    System.out.println(String.join(" ", written));
  }

  /** By the Java producer, which counts offsets from 0. */
  static ByteBuffer produced(String codec, List<String[]> records) {
    MemoryRecords set = MemoryRecords.emptyRecords(ByteBuffer.allocate(LARGEST), CompressionType.forName(codec));
    long offset = 0;
    for (String[] record : records) {
      set.append(offset++, Long.parseLong(record[2]), Batches.bytes(record[4]), Batches.bytes(record[5]));
    }
    set.close();
    return set.buffer();
  }

  /** As the broker appends a set to its log: with the log's offsets and, if the topic says so, the log's time. */
  static ByteBuffer appended(ByteBuffer set, String[] batch, CompressionCodec codec) {
    boolean isOfLog = batch[4].equals(TimestampType.LOG_APPEND_TIME.name);
    return new ByteBufferMessageSet(set)
        .validateMessagesAndAssignOffsets(new LongRef(Long.parseLong(batch[5])), Long.parseLong(batch[7]), codec, codec, false,
            Byte.parseByte(batch[1]), isOfLog ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME, Long.MAX_VALUE)
        ._1()
        .buffer();
  }
}
