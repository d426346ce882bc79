import org.apache.lucene.index.Term;
import org.apache.lucene.queryparser.classic.ParseException;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/** Lucene's classic parser with what Solr does otherwise: the kind of a field says what its words and ranges are. */
final class SolrParser extends QueryParser {
    private final String defaultField;

    /** A parser with a default field; none if it is empty. */
    SolrParser(String defaultField, SolrTexts texts) {
        // The parser itself has no default field, so a field that is null was not written.
        super(null, texts);
        this.defaultField = defaultField;
        setAllowLeadingWildcard(true);
        setLowercaseExpandedTerms(false);
    }

    /** The query as Solr carries out a whole one: if it only prohibits, it finds all other documents. */
    static Query withDocuments(Query query) {
        if (!(query instanceof BooleanQuery) || ((BooleanQuery) query).clauses().isEmpty()) {
            return query;
        }
        BooleanQuery group = (BooleanQuery) query;
        for (BooleanClause clause : group.clauses()) {
            if (!clause.isProhibited()) {
                return query;
            }
        }
        BooleanQuery others = group.clone();
        others.add(new MatchAllDocsQuery(), BooleanClause.Occur.MUST);
        return others;
    }

    private String named(String field) throws ParseException {
        if (field == null && defaultField.isEmpty()) {
            throw new ParseException("no field name specified in query and no default specified via 'df' param");
        }
        return field == null ? defaultField : field;
    }

    private static String piece(String field, String text) {
        return Kind.of(field) == Kind.TEXT ? SolrTexts.piece(field, text) : text;
    }

    @Override
    protected Query getFieldQuery(String field, String text, boolean isQuoted) throws ParseException {
        String name = named(field);
        Kind kind = Kind.of(name);
        switch (kind) {
            case TEXT: return super.getFieldQuery(name, text, isQuoted);
            case BOOL: return new TermQuery(new Term(name, Kind.bool(text)));
            case STRING:
            case IGNORED: return new TermQuery(new Term(name, text));
            default: return kind.range(name, text, text, true, true);
        }
    }

    @Override
    protected Query getRangeQuery(String field, String from, String to, boolean hasFrom, boolean hasTo) throws ParseException {
        String name = named(field);
        return Kind.of(name).range(name, piece(name, from), piece(name, to), hasFrom, hasTo);
    }

    @Override
    protected Query getPrefixQuery(String field, String text) throws ParseException {
        String name = named(field);
        return super.getPrefixQuery(name, piece(name, text));
    }

    @Override
    protected Query getWildcardQuery(String field, String text) throws ParseException {
        String name = named(field);
        if (text.equals("*") && (field == null || field.equals("*"))) {
            return newMatchAllDocsQuery();
        }
        return super.getWildcardQuery(name, piece(name, text));
    }

    @Override
    protected Query getRegexpQuery(String field, String text) throws ParseException {
        if (text.isEmpty() || text.startsWith("*")) {
            throw new ParseException("in Solr, // is no expression and /* begins a comment");
        }
        String name = named(field);
        return super.getRegexpQuery(name, piece(name, text));
    }

    @Override
    protected Query getFuzzyQuery(String field, String text, float similarity) throws ParseException {
        String name = named(field);
        return super.getFuzzyQuery(name, piece(name, text), similarity);
    }
}
