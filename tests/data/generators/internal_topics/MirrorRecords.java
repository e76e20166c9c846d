import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Base64;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;

/** Records of MirrorMaker 2's own topics, as its classes write them: topic, key, value, text of the record. */
public class MirrorRecords {
  private static String encoded(Object bytes) {
    return Base64.getEncoder().encodeToString((byte[]) bytes);
  }

  private static void print(String topic, Object record) throws Exception {
    System.out.println(String.join("\t", topic, encoded(call(record, "recordKey")), encoded(call(record, "recordValue")), record.toString()));
  }

  private static Object call(Object record, String name) throws Exception {
    Method method = record.getClass().getDeclaredMethod(name);
    method.setAccessible(true);
    return method.invoke(record);
  }

  public static void main(String[] arguments) throws Exception {
    String[] topics = {"orders", "größe", ""};
    long[] offsets = {0, -1, 1L << 40, Long.MAX_VALUE};
    Class<?> syncs = Class.forName("org.apache.kafka.connect.mirror.OffsetSync");
    Constructor<?> sync = syncs.getDeclaredConstructor(TopicPartition.class, long.class, long.class);
    sync.setAccessible(true);
    for (String topic : topics) {
      for (long offset : offsets) {
        print("mm2-offset-syncs.b.internal", sync.newInstance(new TopicPartition(topic, 7), offset, offset - 1));
        TopicPartition renamed = new TopicPartition("a." + topic, 3);
        print("a.checkpoints.internal", new Checkpoint("group " + topic, renamed, offset, offset / 2, topic + " metadata"));
      }
    }
    for (long time : offsets) {
      print("heartbeats", new Heartbeat("a", "größe", time));
    }
  }
}
