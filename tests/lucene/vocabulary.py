"""Words, strings and patterns of documents and queries. Many of them are what tokenizers, stemmers,
lower case and parsers find hard."""

LONG_WORDS = ["x" * 255, "y" * 256, "z" * 300]
WORDS = [
    "quick", "brown", "fox", "foxes", "The", "the", "dog", "dogs", "jump", "jumps", "over", "lazy", "and", "AND", "or", "not", "NOT",
    "to", "TO", "a", "aa", "ab", "ba", "abc", "brian", "bryan", "ryan", "Bryan", "RYAN", "QUICK", "QuIcK", "e-mail", "email", "E-MAIL",
    "wi-fi", "well-known", "O'Neil's", "O’Neil’s", "don't", "rock'n'roll", "dogs'", "'quoted'", "3.14", "3,14", "1,000", "1000", "42",
    "x2", "2x", "3rd", "foo_bar", "_", "__init__", "a:b", "C++", "C#", ".NET", "x²", "½", "straße", "Straße", "STRASSE", "ÉCOLE",
    "école", "e\u0301cole", "naïve", "ΑΘΗΝΑΣ", "αθήνας", "σοφός", "İstanbul", "istanbul", "ǅ", "ﬁn", "ＡＢＣ", "ａｂｃ", "日本語", "東京",
    "ひらがな", "カタカナ", "ｶﾞｷﾞ", "한국어", "ภาษาไทย", "😀", "a😀b", "𝒳", "U.S.A.", "U.S.A", "192.168.0.1", "http://a.b/c?d=e",
    "user@example.com", "AT&T", "a/b", "a\\b", "x=y", "%20", "$5", "#tag", "--", "...", "(c)", "[x]", "{y}", "a*b", "a?b", "soft\u00adhyphen",
    "zero\u200bwidth", "zero\u200djoiner", "nb\u00a0space", "שלום", "צה\"ל", "مرحبا", "नमस्ते", "١٢٣", "v1.2.3", "a..b", "a.b.c", "1.a", "a.1",
    "1_000", "O'", "l'avion", "rocks", "ox", "i", "I", "be", "been", "is", "this",
]
SEPARATORS = [" ", " ", " ", " ", " ", ", ", "-", ". ", "/", "\t", " ; ", "\n", "  ", "\u3000"]

LANGUAGES = {
    "en": ["The", "the", "a", "dog", "dogs", "dog's", "dogs'", "Running", "runs", "run", "ran", "flies", "fly", "dying", "generalizations",
           "oscillators", "relational", "hopping", "hoping", "University", "universe", "is", "was", "not", "To", "be", "or", "O’Neil’s", "skies",
           "happily", "agreed", "feed", "news", "x's", "U.S.A.", "it's", "such", "their", "then", "caresses", "ponies", "cats", "abilities"],
    "cjk": ["我购买了道具和服装", "购买", "道具", "一", "一二", "一二三四", "東京", "東京都", "京都", "日本語", "日本", "ひらがな", "ひら", "カタカナ", "ｶﾀｶﾅ",
            "ｶﾞｷﾞ", "한국어", "한국", "ＡＢＣ", "abc", "ABC", "hello", "東京abc", "abc東京", "一a二", "2020年", "一。二", "一 二", "々", "𠀋𠀋", "서울", "ー"],
    "da": ["huset", "huse", "hus", "børn", "barnet", "barn", "og", "Og", "ikke", "den", "undersøgelse", "undersøgelserne", "løbe", "løber", "Danmarks",
           "indtægter", "gode", "godt", "læse", "læsning"],
    "fi": ["talo", "talossa", "taloissa", "taloja", "ja", "Ja", "ei", "kirja", "kirjat", "kirjoja", "kirjassa", "että", "suuri", "suurempi", "Helsingissä",
           "juoksen", "juoksemme", "edeltäjiinsä", "edeltäjien"],
    "hu": ["ház", "házak", "házakban", "a", "az", "és", "könyv", "könyvek", "könyvet", "könyveim", "városban", "város", "nem", "szép", "szebb", "Babakocsi",
           "babakocsikat", "magyarul"],
    "nl": ["boek", "boeken", "de", "het", "een", "huis", "huizen", "lopen", "loopt", "mogelijkheid", "mogelijkheden", "groot", "grote", "niet", "lichtste",
           "opgave", "opgaven", "ongelijk", "jongens"],
    "no": ["hus", "huset", "husene", "og", "ikke", "barn", "barna", "barnet", "havnedistriktene", "havnedistrikt", "gode", "godt", "lese", "leser", "jeg",
           "Norges", "opning", "opninga"],
    "ru": ["дом", "дома", "домов", "большие", "большой", "и", "И", "не", "книга", "книги", "книгу", "читать", "читал", "важная", "важнейшее", "елка",
           "падение", "падает", "Москве"],
    "sv": ["hus", "husen", "och", "Och", "inte", "jag", "barn", "barnen", "jaktkarlarne", "jaktkarlar", "klostergården", "löpning",
           "löpa", "stora", "stort", "friskt", "friske"],
}

STRINGS = [
    "", " ", "bryan", "Bryan", "bryan fink", "bryan  fink", "ryan", "RYAN", "gina", "Gina", "gino", "émile", "e\u0301mile", "Émile", "zoë", "a", "A", "b", "aa",
    "ab", "abc", "abcd", "ba", "10", "9", "010", "1e3", "-1", "*", "?", "a*b", "a?b", "a\\b", "\\", "a:b", "a/b", "/", "\"", "a\"b", "(x)", "[x]", "{x}",
    "a^2", "a~1", "AND", "OR", "NOT", "TO", "a AND b", "&&", "||", "!", "-a", "+a", "東京", "東京都", "日本", "ｶ", "😀", "a😀b", "𝒳", "\ufffd", "é", "z",
    "~", "x\ty", "x\ny", "true", "false", "null", "0", "roam", "foam", "roams", "roma", "raom", "room", "moor", "xroam", "roamxx", "ca", "ac", "Straße", "STRASSE",
]
INTEGERS = [0, 0, 1, -1, 2, 3, 5, 7, 10, 33, 42, -5, -42, 100, 127, 128, 255, 256, 1000, 65535, 65536, 2147483647, -2147483648, 2147483646, -2147483647]
LONGS = [*INTEGERS, 2147483648, -2147483649, 9000000000, 9007199254740993, 9223372036854775807, -9223372036854775808, 9223372036854775806]
FLOATS = ["0.0", "-0.0", "1.0", "1", "-1.5", "3.14", "3.1400001", "1e10", "-1e10", "1e-10", "0.1", "0.3", "16777216", "16777217", "3.4028235e38", "1e-45",
          "NaN", "Infinity", "-Infinity", "2.5", ".5", "5.", "1e3", "-7"]
DATES = ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z", "2019-01-01T12:00:00Z", "2019-12-31T00:00:00Z",
         "2019-12-31T00:00:00.001Z", "2019-12-31T23:59:59.5Z", "2020-02-29T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z",
         "2000-01-01T00:00:00Z", "1900-06-15T06:30:00Z"]
BOOLEANS = ["true", "false", "true", "false", "1", "0", "T", "yes"]

STRING_PATTERNS = ["*", "?", "??", "a*", "*a", "*a*", "?ryan", "b?yan*", "*ryan*", "a\\**", "a\\?b", "*\\\\*", "A*", "é*", "*é*", "東*", "?京?", "a?b", "a*b",
                   "\\**", "\\?", "*\\ *", "*fink", "bryan\\ *", "?😀?", "**", "a**b", "*?*", "?*", "-a*", "\\-*", "AND*", "*\\:*", "\\u0061*", "a\\u0062*d"]
WORD_PATTERNS = ["*", "qu*", "QU*", "*own", "*OX*", "f?x", "F?X", "fox*", "b?yan", "*'s", "éc*", "ÉC*", "ÉCOL?", "e\u0301*", "str*", "STRA*", "straß?", "αθ*", "ΑΘ*",
                 "İs*", "is*", "日*", "東?", "カ*", "ｶ*", "ａ*", "*_*", "3*", "?", "??", "*.*", "192*", "*\u0301*", "한*", "ＡＢ*", "xxxxx*", "zzzzzz*", "*:*"[:1] + "b"]
REGEXES = ["b.*", "[a-c].*", "[^a-c].*", "bryan|ryan", "(b)?ryan", ".ryan", "a+", "a*", "a{2}", "a{1,2}", "a{2,}", "ab?c?", ".*n", ".*an.*", "[br].*n", "@", "b@",
           "\"a*b\"", "a\\*b", "a\\.b", "a.b", "[0-9]+", "-?[0-9]+", "\\d+", "^b.*", "b.*$", "(a|b)(a|b)", "[a-z]{3}", "é.*", ".{3}", ".", "东|東京", "(東京)?都?", "[A-Z].*",
           "[^a]", "qu.ck", "QU.CK", "fox(es)?", "dog[s]?", "(a", "a)", "[a", "a{", "a|", "|a", "()", "()a", "*a", "a**", "[b-a]", "[]", "[-a]", "a\\", "\\", "a&&b",
           "\"", "\"\"", "a b", "bryan fink", ".*\\\\.*", "a\\/b", "[\\]x]+", "[\\-a]+", "a]", "a}", "(ab)*", "((a))", "a??", "a?*"]
