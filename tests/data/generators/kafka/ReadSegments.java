import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.kafka.clients.consumer.internals.CompletedFetch;
import org.apache.kafka.clients.consumer.internals.Deserializers;
import org.apache.kafka.clients.consumer.internals.FetchConfig;
import org.apache.kafka.clients.consumer.internals.FetchMetricsManager;
import org.apache.kafka.clients.consumer.internals.FetchMetricsRegistry;
import org.apache.kafka.clients.consumer.internals.SubscriptionState;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.AbstractLegacyRecordBatch;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.LegacyRecord;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/**
 * What Kafka's own classes read from log bytes, as JSON. A line of the standard input is a kind and a file, with a tab between:
 *
 * lines: the batches of a segment and an end line; records: one verdict on a corrupt file, its records whole; compact: the same with
 * their sizes and checksums; messages: single messages of magic 0 or 1, each behind its size. An empty line ends what is said of a file.
 */
public class ReadSegments {
  static final ObjectMapper JSON = new ObjectMapper();
  static final int LONGEST = 256; // [bytes], of a key or a value that is written whole

  public static void main(String[] arguments) throws Exception {
    BufferedReader files = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = files.readLine(); line != null; line = files.readLine()) {
      String[] asked = line.split("\t");
      File file = new File(asked[1]);
      switch (asked[0]) {
        case "lines" -> lines(file, out);
        case "messages" -> messages(file, out);
        default -> out.println(verdict(file, asked[0].equals("compact")));
      }
      out.println();
    }
    out.flush();
  }

  static void lines(File file, PrintStream out) throws Exception {
    ArrayNode batches = JSON.createArrayNode();
    ObjectNode end = fileRecords(file, false, batches);
    batches.forEach(batch -> out.println(((ObjectNode) batch).put("type", "batch")));
    out.println(end.put("type", "end"));
  }

  static ObjectNode verdict(File file, boolean isCompact) throws Exception {
    ArrayNode batches = JSON.createArrayNode();
    ObjectNode fileRecords = fileRecords(file, isCompact, batches);
    ObjectNode found = JSON.createObjectNode().put("file", file.getName()).put("fileSize", file.length()).put("compactRecords", isCompact);
    found.set("batches", batches);
    found.set("fileRecords", fileRecords);
    found.set("memoryRecords", memoryRecords(file));
    found.set("consumer", consumer(file));
    found.set("logSegmentRecover", recovered(file));
    return found;
  }

  /** The batches, to the end of the file, and how many there were. */
  static ObjectNode fileRecords(File file, boolean isCompact, ArrayNode batches) throws Exception {
    long count = 0;
    long failed = 0;
    long position = 0;
    ObjectNode error = null;
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file.toPath()));
    try (FileRecords records = FileRecords.open(file, false)) {
      Iterator<FileChannelRecordBatch> iterator = records.batches().iterator();
      while (true) {
        FileChannelRecordBatch batch;
        try {
          if (!iterator.hasNext()) {
            break;
          }
          batch = iterator.next();
        } catch (Exception thrown) {
          error = error(thrown, file);
          break;
        }
        ObjectNode row = batch(batch, bytes, isCompact, file);
        batches.add(row);
        count += row.get("records").size();
        failed += row.has("recordsError") ? 1 : 0;
        position = batch.position() + batch.sizeInBytes();
      }
    }
    ObjectNode end = JSON.createObjectNode().put("batches", batches.size()).put("records", count).put("batchesWithRecordsError", failed);
    end.put("endPosition", position).put("fileSize", file.length()).put("trailingBytes", file.length() - position);
    end.set("iterationError", error);
    return end;
  }

  static ObjectNode batch(FileChannelRecordBatch batch, ByteBuffer log, boolean isCompact, File file) {
    byte magic = batch.magic();
    boolean isModern = magic >= 2;
    ObjectNode row = JSON.createObjectNode().put("position", batch.position()).put("size", batch.sizeInBytes()).put("magic", magic);
    row.put("isValid", batch.isValid());
    try {
      batch.ensureValid();
    } catch (Exception thrown) {
      row.set("ensureValidError", error(thrown, file));
    }
    put(row, "crc", batch::checksum, file);
    put(row, "attributes", () -> isModern ? log.getShort(batch.position() + 21) : log.get(batch.position() + 17), file);
    put(row, "codec", () -> batch.compressionType().name, file);
    put(row, "timestampType", () -> batch.timestampType().name, file);
    put(row, "maxTimestamp", batch::maxTimestamp, file);
    if (isModern) {
      put(row, "baseTimestamp", () -> log.getLong(batch.position() + 27), file);
    }
    put(row, "lastOffset", batch::lastOffset, file);
    put(row, "baseOffset", batch::baseOffset, file);
    put(row, "count", batch::countOrNull, file);
    put(row, "producerId", batch::producerId, file);
    put(row, "producerEpoch", batch::producerEpoch, file);
    put(row, "baseSequence", batch::baseSequence, file);
    put(row, "lastSequence", batch::lastSequence, file);
    put(row, "isTransactional", batch::isTransactional, file);
    put(row, "isControl", batch::isControlBatch, file);
    put(row, "partitionLeaderEpoch", batch::partitionLeaderEpoch, file);
    put(row, "deleteHorizonMs", () -> optional(batch.deleteHorizonMs()), file);
    ArrayNode records = row.putArray("records");
    try {
      for (Record record : batch) {
        records.add(isCompact ? compact(record) : record(record, batch));
      }
    } catch (Throwable thrown) {
      row.set("recordsError", error(thrown, file));
    }
    return row;
  }

  static Long optional(OptionalLong value) {
    return value.isPresent() ? value.getAsLong() : null;
  }

  static ArrayNode compact(Record record) {
    ArrayNode row = JSON.createArrayNode().add(record.offset()).add(record.timestamp()).add(record.keySize()).add(record.valueSize());
    CRC32 checksum = new CRC32();
    for (ByteBuffer side : new ByteBuffer[] {record.key(), record.value()}) {
      if (side != null) {
        checksum.update(side.duplicate());
      }
    }
    return row.add(checksum.getValue());
  }

  static ObjectNode record(Record record, RecordBatch batch) throws Exception {
    ObjectNode row = JSON.createObjectNode().put("offset", record.offset()).put("timestamp", record.timestamp());
    row.set("key", content(bytes(record.key())));
    row.set("value", content(bytes(record.value())));
    if (batch.magic() < 2) {
      LegacyRecord inner = ((AbstractLegacyRecordBatch) record).outerRecord();
      row.put("sizeInBytes", record.sizeInBytes()).put("magic", inner.magic()).put("crc", inner.checksum());
      return row.put("isValid", inner.isValid());
    }
    ArrayNode headers = row.putArray("headers");
    for (Header header : record.headers()) {
      headers.addArray().add(header.key()).add(content(header.value()));
    }
    row.put("sequence", record.sequence()).put("sizeInBytes", record.sizeInBytes());
    if (batch.isControlBatch()) {
      ControlRecordType type = ControlRecordType.parse(record.key());
      row.put("controlType", type.name()).put("controlTypeId", ControlRecordType.parseTypeId(record.key()));
      if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
        row.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
      }
    }
    return row;
  }

  static ObjectNode memoryRecords(File file) throws Exception {
    MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file.toPath())));
    long batches = 0;
    long count = 0;
    long bytes = 0;
    long next = -1;
    String stage = "nextBatch";
    ObjectNode error = null;
    try {
      for (Iterator<MutableRecordBatch> iterator = records.batches().iterator(); iterator.hasNext(); ) {
        MutableRecordBatch batch = iterator.next();
        stage = "ensureValid";
        batch.ensureValid();
        stage = "records";
        long own = 0;
        for (Record record : batch) {
          own++;
        }
        count += own;
        batches++;
        bytes += batch.sizeInBytes();
        next = batch.nextOffset();
        stage = "nextBatch";
      }
      stage = null;
    } catch (Throwable thrown) {
      error = error(thrown, file);
    }
    ObjectNode found = JSON.createObjectNode().put("batches", batches).put("records", count).put("bytes", bytes).put("nextOffset", next);
    found.put("stage", stage).set("error", error);
    found.put("validBytes", -1).putNull("validBytesError");
    try {
      found.put("validBytes", records.validBytes());
    } catch (Exception thrown) {
      found.set("validBytesError", error(thrown, file));
    }
    return found;
  }

  /** What a consumer with `check.crcs` hands out before it fails. */
  static ObjectNode consumer(File file) throws Exception {
    TopicPartition partition = new TopicPartition("t", 0);
    SubscriptionState subscriptions = new SubscriptionState(new LogContext(), OffsetResetStrategy.EARLIEST);
    subscriptions.assignFromUser(Set.of(partition));
    FetchMetricsManager metrics = new FetchMetricsManager(new Metrics(), new FetchMetricsRegistry());
    FetchResponseData.PartitionData data = new FetchResponseData.PartitionData();
    data.setRecords(MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file.toPath()))));
    Object aggregator = constructor("org.apache.kafka.clients.consumer.internals.FetchMetricsAggregator").newInstance(metrics, Set.of(partition));
    Object fetch = constructor(CompletedFetch.class.getName())
        .newInstance(new LogContext(), subscriptions, BufferSupplier.create(), partition, data, aggregator, 0L, (short) 12);
    Method fetchRecords = CompletedFetch.class.getDeclaredMethod("fetchRecords", FetchConfig.class, Deserializers.class, int.class);
    fetchRecords.setAccessible(true);
    FetchConfig config = new FetchConfig(1, 1 << 26, 0, 1 << 26, 500, true, "", IsolationLevel.READ_UNCOMMITTED);
    Deserializers<byte[], byte[]> deserializers = new Deserializers<>(new ByteArrayDeserializer(), new ByteArrayDeserializer());
    long count = 0;
    long last = -1;
    ObjectNode error = null;
    try {
      while (true) {
        List<?> records = (List<?>) fetchRecords.invoke(fetch, config, deserializers, 1);
        if (records.isEmpty()) {
          break;
        }
        count += records.size();
        last = ((ConsumerRecord<?, ?>) records.get(records.size() - 1)).offset();
      }
    } catch (InvocationTargetException thrown) {
      error = error(thrown.getCause(), file);
    }
    ObjectNode found = JSON.createObjectNode().put("records", count).put("lastOffset", last);
    found.set("error", error);
    return found;
  }

  static Constructor<?> constructor(String name) throws Exception {
    Constructor<?> found = Class.forName(name).getDeclaredConstructors()[0];
    found.setAccessible(true);
    return found;
  }

  /** What the recovery of a segment keeps. */
  static ObjectNode recovered(File file) throws Exception {
    Path folder = Files.createTempDirectory("recovered");
    File copy = folder.resolve("00000000000000000000.log").toFile();
    Files.copy(file.toPath(), copy.toPath());
    ObjectNode found = JSON.createObjectNode();
    LogSegment segment = LogSegment.open(folder.toFile(), 0, new LogConfig(Map.of()), Time.SYSTEM, true, 0, false, "");
    ProducerStateManager producers = new ProducerStateManager(
        new TopicPartition("t", 0), folder.toFile(), Integer.MAX_VALUE, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Time.SYSTEM);
    try {
      found.put("truncatedBytes", segment.recover(producers, Optional.empty())).put("sizeAfter", segment.size());
      found.put("nextOffset", segment.readNextOffset()).put("offsetIndexEntries", segment.offsetIndex().entries());
      found.put("timeIndexEntries", segment.timeIndex().entries()).putNull("error");
    } catch (Throwable thrown) {
      found.putNull("truncatedBytes").put("sizeAfter", segment.size()).set("error", error(thrown, file));
    }
    segment.deleteIfExists();
    Files.deleteIfExists(folder);
    return found;
  }

  static void messages(File file, PrintStream out) throws Exception {
    ByteBuffer all = ByteBuffer.wrap(Files.readAllBytes(file.toPath()));
    while (all.hasRemaining()) {
      byte[] bytes = new byte[all.getInt()];
      all.get(bytes);
      LegacyRecord message = new LegacyRecord(ByteBuffer.wrap(bytes));
      ObjectNode row = JSON.createObjectNode().put("size", message.sizeInBytes()).put("magic", message.magic()).put("crc", message.checksum());
      row.put("computedCrc", message.computeChecksum()).put("isValid", message.isValid()).put("attributes", message.attributes());
      row.put("codec", message.compressionType().name).put("timestampType", message.timestampType().name).put("timestamp", message.timestamp());
      row.set("key", content(bytes(message.key())));
      row.set("value", content(bytes(message.value())));
      if (message.compressionType() != CompressionType.NONE && message.isValid()) {
        row.set("inner", inner(bytes));
      }
      out.println(row);
    }
  }

  /** The messages of a compressed one, which is the only one of its log. */
  static ArrayNode inner(byte[] message) throws Exception {
    ArrayNode rows = JSON.createArrayNode();
    int count = 0;
    for (boolean isCounted : new boolean[] {false, true}) {
      ByteBuffer entry = ByteBuffer.allocate(12 + message.length).putLong(isCounted ? count - 1 : 0).putInt(message.length).put(message);
      RecordBatch batch = MemoryRecords.readableRecords(entry.flip()).batches().iterator().next();
      for (Record record : batch) {
        count++;
        if (isCounted) {
          rows.add(record(record, batch));
        }
      }
    }
    return rows;
  }

  static void put(ObjectNode row, String name, Callable<?> field, File file) {
    try {
      row.set(name, JSON.valueToTree(field.call()));
    } catch (Exception thrown) {
      row.putNull(name).set(name + "Error", error(thrown, file));
    }
  }

  static JsonNode content(byte[] bytes) throws Exception {
    if (bytes == null || bytes.length <= LONGEST) {
      return JSON.valueToTree(bytes); // in Base64
    }
    String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    return JSON.createObjectNode().put("len", bytes.length).put("sha256", digest);
  }

  static byte[] bytes(ByteBuffer side) {
    if (side == null) {
      return null;
    }
    byte[] bytes = new byte[side.remaining()];
    side.duplicate().get(bytes);
    return bytes;
  }

  static ObjectNode error(Throwable thrown, File file) {
    String message = String.valueOf(thrown.getMessage()).replace(file.getPath(), file.getName());
    ObjectNode row = JSON.createObjectNode().put("class", thrown.getClass().getName()).put("message", message);
    if (thrown.getCause() != null) {
      row.set("cause", error(thrown.getCause(), file));
    }
    return row;
  }
}
