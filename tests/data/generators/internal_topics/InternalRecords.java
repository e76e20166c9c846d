// Writes records of Kafka's internal topics with Kafka's own classes: every version, as JSON lines.
import java.util.*;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.coordinator.transaction.generated.*;

public class InternalRecords {
    static final Random R = new Random(12);
    static String text(int most) {
        String[] parts = {"a", "orders", "é", "😀", "-", "7", "_group", "payments", "x".repeat(40)};
        StringBuilder s = new StringBuilder();
        for (int i = R.nextInt(most + 1); i > 0; i--) s.append(parts[R.nextInt(parts.length)]);
        return s.toString();
    }
    static String maybe(int most) { return R.nextInt(3) == 0 ? null : text(most); }
    static long number() { long[] n = {0, -1, 1, 42, 1600000000000L, Long.MAX_VALUE, Long.MIN_VALUE}; return R.nextBoolean() ? n[R.nextInt(n.length)] : R.nextLong(); }
    static int small() { int[] n = {0, -1, 1, 300000, Integer.MAX_VALUE, Integer.MIN_VALUE}; return R.nextBoolean() ? n[R.nextInt(n.length)] : R.nextInt(); }
    static byte[] bytes() { byte[] b = new byte[R.nextInt(60)]; R.nextBytes(b); return b; }
    static void tag(List<RawTaggedField> fields) {
        for (int i = 0, n = R.nextInt(3); i < n; i++) fields.add(new RawTaggedField(100 + i * 200, bytes()));
    }
    static String hex(byte[] b) { return HexFormat.of().formatHex(b); }
    static void line(String kind, int keyVersion, Message key, Object keyJson, int version, Message value, Object json) {
        System.out.println("{\"kind\":\"" + kind + "\",\"keyVersion\":" + keyVersion + ",\"key\":\"" + hex(MessageUtil.toVersionPrefixedBytes((short) keyVersion, key))
            + "\",\"keyData\":" + keyJson + ",\"version\":" + version + ",\"value\":\"" + hex(MessageUtil.toVersionPrefixedBytes((short) version, value)) + "\",\"data\":" + json + "}");
    }
    static void offset(int keyVersion, int version) {
        OffsetCommitKey key = new OffsetCommitKey().setGroup(text(3)).setTopic(text(3)).setPartition(small());
        OffsetCommitValue value = new OffsetCommitValue().setOffset(number()).setMetadata(text(4)).setCommitTimestamp(number());
        if (version >= 3) value.setLeaderEpoch(small());
        if (version == 1) value.setExpireTimestamp(number());
        if (version >= 4) tag(value.unknownTaggedFields());
        line("OFFSET", keyVersion, key, OffsetCommitKeyJsonConverter.write(key, (short) keyVersion), version, value, OffsetCommitValueJsonConverter.write(value, (short) version));
    }
    static void group(int version) {
        GroupMetadataKey key = new GroupMetadataKey().setGroup(text(3));
        List<GroupMetadataValue.MemberMetadata> members = new ArrayList<>();
        for (int i = R.nextInt(4); i > 0; i--) {
            GroupMetadataValue.MemberMetadata m = new GroupMetadataValue.MemberMetadata().setMemberId(text(2)).setClientId(text(2)).setClientHost(text(2))
                .setSessionTimeout(small()).setSubscription(bytes()).setAssignment(bytes());
            if (version >= 1) m.setRebalanceTimeout(small());
            if (version >= 3) m.setGroupInstanceId(maybe(2));
            if (version >= 4) tag(m.unknownTaggedFields());
            members.add(m);
        }
        GroupMetadataValue value = new GroupMetadataValue().setProtocolType(text(2)).setGeneration(small()).setProtocol(maybe(2)).setLeader(maybe(2)).setMembers(members);
        if (version >= 2) value.setCurrentStateTimestamp(number());
        if (version >= 4) tag(value.unknownTaggedFields());
        line("GROUP", 2, key, GroupMetadataKeyJsonConverter.write(key, (short) 2), version, value, GroupMetadataValueJsonConverter.write(value, (short) version));
    }
    static void transaction(int version) {
        TransactionLogKey key = new TransactionLogKey().setTransactionalId(text(3));
        List<TransactionLogValue.PartitionsSchema> topics = null;
        if (R.nextInt(4) > 0) {
            topics = new ArrayList<>();
            for (int i = R.nextInt(4); i > 0; i--) {
                List<Integer> ids = new ArrayList<>();
                for (int k = R.nextInt(5); k > 0; k--) ids.add(R.nextInt(100));
                TransactionLogValue.PartitionsSchema p = new TransactionLogValue.PartitionsSchema().setTopic(text(3)).setPartitionIds(ids);
                if (version >= 1) tag(p.unknownTaggedFields());
                topics.add(p);
            }
        }
        TransactionLogValue value = new TransactionLogValue().setProducerId(number()).setProducerEpoch((short) small()).setTransactionTimeoutMs(small())
            .setTransactionStatus((byte) R.nextInt(8)).setTransactionPartitions(topics).setTransactionLastUpdateTimestampMs(number()).setTransactionStartTimestampMs(number());
        if (version >= 1) tag(value.unknownTaggedFields());
        line("TRANSACTION", 0, key, TransactionLogKeyJsonConverter.write(key, (short) 0), version, value, TransactionLogValueJsonConverter.write(value, (short) version));
    }
    public static void main(String[] args) {
        for (int i = 0; i < 40; i++) {
            for (int v = 0; v <= 4; v++) { offset(i % 2, v); group(v); }
            for (int v = 0; v <= 1; v++) transaction(v);
        }
    }
}
