import com.alibaba.otter.canal.common.alarm.LogAlarmHandler;
import com.alibaba.otter.canal.connector.kafka.producer.CanalKafkaProducer;
import com.alibaba.otter.canal.filter.aviater.AviaterRegexFilter;
import com.alibaba.otter.canal.instance.core.CanalInstance;
import com.alibaba.otter.canal.instance.core.CanalMQConfig;
import com.alibaba.otter.canal.instance.spring.CanalInstanceWithSpring;
import com.alibaba.otter.canal.meta.MemoryMetaManager;
import com.alibaba.otter.canal.parse.ha.HeartBeatHAController;
import com.alibaba.otter.canal.parse.inbound.TableMeta;
import com.alibaba.otter.canal.parse.inbound.mysql.MysqlEventParser;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.MemoryTableMeta;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDB;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDBFactory;
import com.alibaba.otter.canal.parse.index.FailbackLogPositionManager;
import com.alibaba.otter.canal.parse.index.MemoryLogPositionManager;
import com.alibaba.otter.canal.parse.index.MetaLogPositionManager;
import com.alibaba.otter.canal.parse.support.AuthenticationInfo;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.server.CanalMQStarter;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import com.alibaba.otter.canal.sink.entry.EntryEventSink;
import com.alibaba.otter.canal.store.memory.MemoryEventStoreWithBuffer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs an instance of Canal for each variant, and writes each message to `messages.VARIANT.jsonl`, until its standard input ends.
 * Arguments: the directory for the messages, then a file VARIANT.properties for each variant, with names of Canal's configuration.
 * A line `FILE OFFSET GTID` in its standard input starts all instances again at this position of the binlog.
 *
 * <p>The instances have the parts of Canal's conf/spring/file-instance.xml, with the default values of canal.properties and
 * instance.properties. Canal's own CanalMQStarter and CanalKafkaProducer send the messages; only Kafka's producer is another.
 */
public class Messages {
  /** Writes a line for each record. CanalKafkaProducer calls only `send`. */
  private static class FileProducer extends MockProducer<String, byte[]> {
    private final Map<String, Long> offsets = new HashMap<>();
    private final Writer out;

    FileProducer(Path file) throws IOException {
      super(true, new StringSerializer(), new ByteArraySerializer());
      out = Files.newBufferedWriter(file);
    }

    private static String base64(byte[] bytes) {
      return bytes == null ? "null" : '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }

    @Override
    public synchronized Future<RecordMetadata> send(ProducerRecord<String, byte[]> record) {
      long offset = offsets.merge(record.topic() + "/" + record.partition(), 1L, Long::sum) - 1;
      byte[] key = record.key() == null ? null : record.key().getBytes(StandardCharsets.UTF_8);
      try {
        out.write("{\"topic\":\"" + record.topic() + "\",\"partition\":" + record.partition() + ",\"offset\":" + offset
            + ",\"time\":" + System.currentTimeMillis() + ",\"key_b64\":" + base64(key)
            + ",\"value_b64\":" + base64(record.value()) + "}\n");
        out.flush();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      return super.send(record);
    }
  }

  /** The history of the tables' DDL. Canal's DatabaseTableMeta keeps it in a database; its beans are in no published jar. */
  private static class History implements TableMetaTSDB {
    private record Change(EntryPosition position, String schema, String ddl, String extra) {
      boolean isBefore(EntryPosition other) {
        int order = position.getJournalName().compareTo(other.getJournalName());
        return order < 0 || order == 0 && position.getPosition() < other.getPosition();
      }
    }

    private final List<Change> changes = new ArrayList<>();
    private MemoryTableMeta now = new MemoryTableMeta();

    @Override
    public boolean init(String destination) {
      return true;
    }

    @Override
    public void destory() {}

    @Override
    public TableMeta find(String schema, String table) {
      return now.find(schema, table);
    }

    @Override
    public boolean apply(EntryPosition position, String schema, String ddl, String extra) {
      changes.add(new Change(position, schema, ddl, extra));
      return now.apply(position, schema, ddl, extra);
    }

    @Override
    public boolean rollback(EntryPosition position) {
      now = new MemoryTableMeta();
      changes.removeIf(change -> !change.isBefore(position));
      changes.forEach(change -> now.apply(change.position, change.schema, change.ddl, change.extra));
      return true;
    }

    @Override
    public Map<String, String> snapshot() {
      return now.snapshot();
    }
  }

  private static class Variant {
    private final Properties properties = new Properties();
    private final History history = new History();
    private final CanalMQStarter starter;
    private final String name;
    private final long slave;

    Variant(Path file, Path directory, long slave) throws Exception {
      name = file.getFileName().toString().replaceFirst("[.]properties$", "");
      this.slave = slave;
      try (Reader reader = Files.newBufferedReader(file)) {
        properties.load(reader);
      }
      Properties own = new Properties();
      own.setProperty("kafka.bootstrap.servers", "127.0.0.1:9"); // nobody connects to it
      own.setProperty("canal.mq.flatMessage", of("canal.mq.flatMessage"));
      own.setProperty("canal.mq.canalBatchSize", "50");
      own.setProperty("canal.mq.canalGetTimeout", "100");
      own.setProperty("canal.mq.database.hash", "true");
      CanalKafkaProducer producer = new CanalKafkaProducer();
      producer.init(own);
      Field inner = CanalKafkaProducer.class.getDeclaredField("producer");
      inner.setAccessible(true);
      ((Producer<?, ?>) inner.get(producer)).close(Duration.ZERO);
      inner.set(producer, new FileProducer(directory.resolve("messages." + name + ".jsonl")));
      starter = new CanalMQStarter(producer);
    }

    private String of(String property) {
      return properties.getProperty(property);
    }

    private boolean is(String property) {
      return Boolean.parseBoolean(of(property));
    }

    void startAt(String[] position) {
      properties.setProperty("canal.instance.master.journal.name", position[0]);
      properties.setProperty("canal.instance.master.position", position[1]);
      properties.setProperty("canal.instance.master.gtid", position[2]);
    }

    private EntryPosition position() {
      long offset = Long.parseLong(of("canal.instance.master.position"));
      EntryPosition position = new EntryPosition(of("canal.instance.master.journal.name"), offset, System.currentTimeMillis());
      if (is("canal.instance.gtidon")) {
        position.setGtid(of("canal.instance.master.gtid"));
      }
      return position;
    }

    private CanalMQConfig topics() {
      CanalMQConfig config = new CanalMQConfig();
      config.setTopic(of("canal.mq.topic"));
      config.setPartition(Integer.valueOf(of("canal.mq.partition")));
      if (of("canal.mq.dynamicTopic") != null) {
        config.setDynamicTopic(of("canal.mq.dynamicTopic"));
        config.setPartitionsNum(Integer.valueOf(of("canal.mq.partitionsNum")));
        config.setPartitionHash(of("canal.mq.partitionHash"));
      }
      return config;
    }

    private MysqlEventParser parser(EntryEventSink sink, MemoryMetaManager cursors) {
      MysqlEventParser parser = new MysqlEventParser();
      parser.setDestination(name);
      parser.setSlaveId(slave);
      parser.setDetectingEnable(false);
      parser.setHaController(new HeartBeatHAController());
      parser.setAlarmHandler(new LogAlarmHandler());
      parser.setEventSink(sink);
      parser.setEventFilter(new AviaterRegexFilter(of("canal.instance.filter.regex")));
      parser.setEventBlackFilter(new AviaterRegexFilter("mysql\\.slave_.*", false));
      parser.setTransactionSize(1024);
      parser.setReceiveBufferSize(16384);
      parser.setSendBufferSize(16384);
      parser.setDefaultConnectionTimeoutInSeconds(30);
      parser.setConnectionCharset("UTF-8");
      parser.setLogPositionManager(
          new FailbackLogPositionManager(new MemoryLogPositionManager(), new MetaLogPositionManager(cursors)));
      parser.setFallbackIntervalInSeconds(60);
      String[] address = of("canal.instance.master.address").split(":");
      parser.setMasterInfo(new AuthenticationInfo(new InetSocketAddress(address[0], Integer.parseInt(address[1])),
          of("canal.instance.dbUsername"), of("canal.instance.dbPassword"), null));
      parser.setMasterPosition(position());
      parser.setIsGTIDMode(is("canal.instance.gtidon"));
      parser.setSupportBinlogFormats("ROW,STATEMENT,MIXED");
      parser.setSupportBinlogImages("FULL,MINIMAL,NOBLOB");
      parser.setFilterQueryDml(is("canal.instance.filter.query.dml"));
      parser.setUseDruidDdlFilter(true);
      parser.setParallel(true);
      parser.setParallelBufferSize(256);
      parser.setEnableTsdb(true);
      parser.setTsdbSpringXml("memory");
      parser.setTsdbJdbcUrl("none");
      parser.setTsdbJdbcUserName("");
      parser.setTsdbJdbcPassword("");
      parser.setTableMetaTSDBFactory(
          new TableMetaTSDBFactory() {
            @Override
            public TableMetaTSDB build(String destination, String xml) {
              return history;
            }

            @Override
            public void destory(String destination) {}
          });
      return parser;
    }

    /** A new instance without the cursor of an earlier one. */
    CanalInstance instance() {
      MemoryMetaManager cursors = new MemoryMetaManager();
      MemoryEventStoreWithBuffer store = new MemoryEventStoreWithBuffer();
      store.setRaw(false); // so does CanalStarter if Canal sends to a queue
      store.setDdlIsolation(false);
      EntryEventSink sink = new EntryEventSink();
      sink.setEventStore(store);
      sink.setFilterTransactionEntry(false);
      CanalInstanceWithSpring instance = new CanalInstanceWithSpring();
      instance.setDestination(name);
      instance.setEventParser(parser(sink, cursors));
      instance.setEventSink(sink);
      instance.setEventStore(store);
      instance.setMetaManager(cursors);
      instance.setAlarmHandler(new LogAlarmHandler());
      instance.setMqConfig(topics());
      return instance;
    }
  }

  public static void main(String[] arguments) throws Exception {
    Path directory = Path.of(arguments[0]);
    Map<String, Variant> variants = new LinkedHashMap<>();
    for (int k = 1; k < arguments.length; k++) {
      Variant variant = new Variant(Path.of(arguments[k]), directory, 7000 + k);
      variants.put(variant.name, variant);
    }
    CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
    server.setCanalInstanceGenerator(name -> variants.get(name).instance());
    server.start();
    for (Variant variant : variants.values()) {
      server.start(variant.name);
      variant.starter.start(variant.name);
    }
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      for (Variant variant : variants.values()) {
        variant.startAt(line.split(" "));
        variant.starter.stopDestination(variant.name);
        server.stop(variant.name);
        server.start(variant.name);
        variant.starter.startDestination(variant.name);
      }
    }
    Runtime.getRuntime().halt(0); // threads of Canal would continue
  }
}
