import java.time.Instant;
import java.util.Map;
import java.util.function.Function;
import org.apache.lucene.document.DoubleField;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FloatField;
import org.apache.lucene.document.IntField;
import org.apache.lucene.document.LongField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexableField;
import org.apache.lucene.search.NumericRangeQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TermRangeQuery;

/** The kinds of fields of the schema `_yz_default`, with the fields and queries that Solr makes of them. */
enum Kind {
    STRING, BOOL, INT, LONG, FLOAT, DOUBLE, DATE, TEXT, IGNORED;

    private static final Map<String, Kind> BY_NAME = Map.of("text", TEXT, "counter", INT, "set", STRING, "_yz_rk", STRING);

    private static final Map<String, Kind> BY_SUFFIX = Map.ofEntries(
            Map.entry("s", STRING), Map.entry("ss", STRING), Map.entry("b", BOOL), Map.entry("bs", BOOL),
            Map.entry("i", INT), Map.entry("is", INT), Map.entry("ti", INT), Map.entry("l", LONG), Map.entry("ls", LONG),
            Map.entry("tl", LONG), Map.entry("f", FLOAT), Map.entry("fs", FLOAT), Map.entry("tf", FLOAT),
            Map.entry("d", DOUBLE), Map.entry("ds", DOUBLE), Map.entry("td", DOUBLE), Map.entry("dt", DATE),
            Map.entry("dts", DATE), Map.entry("tdt", DATE), Map.entry("t", TEXT), Map.entry("ts", TEXT),
            Map.entry("txt", TEXT));

    static String suffix(String name) {
        return name.substring(name.lastIndexOf('_') + 1);
    }

    static Kind of(String name) {
        if (BY_NAME.containsKey(name)) {
            return BY_NAME.get(name);
        }
        boolean hasSuffix = name.contains("_");
        Kind language = SolrTexts.hasLanguage(suffix(name)) ? TEXT : IGNORED;
        return hasSuffix ? BY_SUFFIX.getOrDefault(suffix(name), language) : IGNORED;
    }

    /** The field of a document. */
    IndexableField field(String name, String value) {
        switch (this) {
            case STRING: return new StringField(name, value, Field.Store.NO);
            case BOOL: return new StringField(name, bool(value), Field.Store.NO);
            case INT: return new IntField(name, Integer.parseInt(value), Field.Store.NO);
            case LONG: return new LongField(name, Long.parseLong(value), Field.Store.NO);
            case FLOAT: return new FloatField(name, Float.parseFloat(value), Field.Store.NO);
            case DOUBLE: return new DoubleField(name, Double.parseDouble(value), Field.Store.NO);
            case DATE: return new LongField(name, date(value), Field.Store.NO);
            case TEXT: return new TextField(name, value, Field.Store.NO);
            default: return new StoredField(name, value);
        }
    }

    /** Solr's term of a boolean. */
    static String bool(String value) {
        return value.startsWith("1") || value.startsWith("t") || value.startsWith("T") ? "T" : "F";
    }

    static long date(String value) {
        return Instant.parse(value).toEpochMilli();
    }

    private static <T> T read(String bound, Function<String, T> parse) {
        return bound == null ? null : parse.apply(bound);
    }

    /** The query for values between two bounds; null is no bound. Texts are read before. */
    Query range(String name, String from, String to, boolean hasFrom, boolean hasTo) {
        switch (this) {
            case BOOL: return TermRangeQuery.newStringRange(name, read(from, Kind::bool), read(to, Kind::bool), hasFrom, hasTo);
            case INT: return NumericRangeQuery.newIntRange(name, read(from, Integer::valueOf), read(to, Integer::valueOf), hasFrom, hasTo);
            case LONG: return NumericRangeQuery.newLongRange(name, read(from, Long::valueOf), read(to, Long::valueOf), hasFrom, hasTo);
            case FLOAT: return NumericRangeQuery.newFloatRange(name, read(from, Float::valueOf), read(to, Float::valueOf), hasFrom, hasTo);
            case DOUBLE: return NumericRangeQuery.newDoubleRange(name, read(from, Double::valueOf), read(to, Double::valueOf), hasFrom, hasTo);
            case DATE: return NumericRangeQuery.newLongRange(name, read(from, Kind::date), read(to, Kind::date), hasFrom, hasTo);
            default: return TermRangeQuery.newStringRange(name, from, to, hasFrom, hasTo);
        }
    }

    /** Strings and booleans without a value come last in both directions, numbers and dates are 0. */
    SortField sortField(String name, boolean isDescending) {
        switch (this) {
            case INT: return new SortField(name, SortField.Type.INT, isDescending);
            case LONG:
            case DATE: return new SortField(name, SortField.Type.LONG, isDescending);
            case FLOAT: return new SortField(name, SortField.Type.FLOAT, isDescending);
            case DOUBLE: return new SortField(name, SortField.Type.DOUBLE, isDescending);
            default:
                SortField field = new SortField(name, SortField.Type.STRING, isDescending);
                // Without this, Lucene takes a missing value for the least, which comes last where that is wanted.
                if (!isDescending) {
                    field.setMissingValue(SortField.STRING_LAST);
                }
                return field;
        }
    }
}
