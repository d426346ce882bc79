"""Documents and cases that are written by hand: each rule of the language at least once."""

DOCUMENTS = [
    ["name_s=bryan fink", "tags_ss=F", "tags_ss=G", "n_i=32", "body_t=The quick brown fox", "ok_b=true", "f_f=3.14", "at_dt=2019-12-31T00:00:00Z",
     "big_l=9000000000", "text=bitcask", "lang_en=The quick brown fox and the dog"],
    ["name_s=Gina", "tags_ss=H", "n_i=30", "body_t=Quick foxes jump; brown dogs sleep", "ok_b=false", "f_f=-1.5", "at_dt=2019-01-01T12:00:00Z",
     "text=contain your entire keyspace", "lang_en=foxes of the dog"],
    ["name_s=ryan zezeski", "n_i=33", "body_t=brown quick", "counter=83475", "set=frijoles", "set=x", "lang_en=fox dog"],
    ["name_s=", "n_i=-5", "f_f=NaN", "d_d=NaN", "body_t=", "lang_en=to be or not to be"],
    ["other=nothing is kept", "ignored_ig=x"],
    # Positions: of stop words, of several values, of a word that is too long.
    ["notes_txt=one two", "notes_txt=three", "lang_en=fox the", "lang_en=dog"],
    ["notes_txt=", "notes_txt=one", "notes_txt=two three", "lang_en=the", "lang_en=fox", "lang_en=dog the of"],
    ["body_t=fox " + "x" * 255 + " dog"],
    ["body_t=fox " + "x" * 256 + " dog"],
    ["body_t=fox " + "z" * 600 + " dog"],
    # Words that are there twice.
    ["body_t=a b a"],
    ["body_t=a a b"],
    ["body_t=b a c a"],
    ["body_t=to be or not to be"],
    ["body_t=a x a y a"],
    ["body_t=one two three four five six seven"],
    ["body_t=seven six five four three two one"],
    ["body_t=one two one two"],
    ["name_s=zero", "n_i=0", "f_f=0.0", "d_d=0.0", "big_l=0", "at_dt=1970-01-01T00:00:00Z"],
    ["name_s=minus zero", "f_f=-0.0", "d_d=-0.0"],
    ["name_s=infinite", "f_f=Infinity", "d_d=-Infinity"],
    ["n_i=2147483647", "big_l=9223372036854775807", "ns_is=1", "ns_is=2147483647"],
    ["n_i=-2147483648", "big_l=-9223372036854775808", "ns_is=-2147483648", "ns_is=2"],
    ["lang_cjk=东京 abc 一二三", "body_t=东京 abc 一二三"],
    ["lang_cjk=ｶﾞｷﾞ ＡＢＣ", "body_t=ｶﾞｷﾞ ＡＢＣ"],
    ["lang_cjk=一 二。三", "lang_sv=biblioteket", "lang_ru=зелёный"],
    ["lang_cjk=三ー 一", "name_s=a b"],
]

# What connects clauses, with the words of body_t and of lang_en, where some are left out.
CONNECTIONS = [
    "{a}", "+{a}", "-{a}", "NOT {a}", "!{a}", "({a})", "(({a}))", "(-{a})", "-(-{a})", "+(-{a})", "{a} {b}", "{a} AND {b}", "{a} && {b}", "{a} OR {b}",
    "{a} || {b}", "{a} NOT {b}", "{a} AND NOT {b}", "{a} OR NOT {b}", "{a} -{b}", "-{a} {b}", "-{a} -{b}", "-{a} AND {b}", "-{a} OR {b}", "+{a} {b}", "{a} +{b}",
    "+{a} OR {b}", "{a} OR +{b}", "{a} {b} {c}", "{a} AND {b} OR {c}", "{a} OR {b} AND {c}", "{a} OR {b} {c}", "{a} {b} AND {c}", "{a} {b} OR {c}",
    "{a} AND {b} {c}", "{a} AND ({b} OR {c})", "({a} OR {b}) AND {c}", "({a} {b}) {c}", "-({a} {b}) {c}", "{a} (-{b})", "{a} AND (-{b})", "+{a} +(-{b})",
    "{a} -{b} {c}", "{a} AND -{b} AND {c}", "{a} OR -{b} OR {c}", "NOT ({a} AND {b})", "(NOT {a}) AND (NOT {b})", "*:* -{a}", "*:* AND NOT {a}",
    "({a} OR (NOT {b}))", "{a}^2 {b}", "({a} {b})^3", "(-{a})^2", "{a} - {b}", "{a} + {b}", "{a} ! {b}", "{a} and {b}", "{a} or {b}", "{a} not {b}",
    "{a} AND AND {b}", "AND {a}", "{a} AND", "{a} OR", "NOT", "{a} NOT NOT {b}", "-", "{a} +-{b}", "()", "({a}", "{a})", "({a} {b}) ()", "{a}!{b}",
]

BODY = [
    "quick", "QUICK", "fox", "fox*", "FOX*", "F?X*", "/FO.*/", "bornw~2", "Borwn~1", "[dogs TO foxes]", "[A TO C]", "{brown TO quick}", "[* TO brown}", "{quick TO *]",
    "\"quick brown\"", "\"brown quick\"", "\"quick fox\"~1", "\"quick fox\"", "\"quick brown\"~2", "\"quick brown\"~1", "\"fox the\"~3", "\"fox the\"~4",
    "\"the fox\"~2", "(+quick -fox)", "quick^5", "*", "\"\"", "\" \"", ";", "\\;", "jump-sleep", "jump\\-sleep", "jumps-sleep", "\"jump-sleep\"", "brown\\ dogs", "\"a b a\"",
    "\"a a\"", "\"a a\"~1", "\"a a\"~2", "\"a a\"~3", "\"a a b\"", "\"a b a\"~1", "\"a b a\"~2", "\"a b a\"~3", "\"b a a\"~2", "\"to be to\"~3", "\"to be to be\"~4",
    "\"be to\"~4", "\"one seven\"~5", "\"one seven\"~4", "\"seven one\"~6", "\"seven one\"~7", "\"one three two\"~2", "\"one three two\"~1", "\"three two one\"~3",
    "\"three two one\"~4", "\"one two one\"", "\"two one two\"~1", "\"fox dog\"", "\"fox dog\"~1", "\"fox dog\"~2", "\"fox dog\"~3", "\"東京 abc\"", "东京", "\"东京\"", "东", "京东",
    "\"京东\"", "\"京东\"~2", "一二三", "一三", "ガギ", "ｶﾞｷﾞ", "abc", "ＡＢＣ", "Ａ*", "ａ*", "quick AND ;", "quick OR ;", "quick NOT ;", "-;", "\"quick ; brown\"",
    "quick~", "quick~0", "quick~0.5", "quick~0.9", "quick~1.5", "quick~3", "quick~1^2", "quick^2~1", "\"quick brown\"~1.9", "\"quick brown\"^2", "\"quick brown\"~^2", "fo?~1",
    "(quick OR brown) AND (fox OR dogs)", "(quick brown fox)", "+(quick brown) -(fox dogs)", "quick\\", "\\quick", "\\u0071uick", "\\u00", "qu\\ick", "qu\\*", "\"qu*\"",
    "\"quick \\\"brown\\\"\"", "/quick|brown/", "/[bq].*/", "/.*o.*/", "/(/", "//", "/a", "a/", "quick:fox", "quick\"brown\"", "\"quick\"brown", "quick(brown)", "(quick)(brown)",
    "[brown quick]", "[\"brown\" TO \"quick\"]", "[brown TO quick", "[brown TO quick)", "[brown TO]", "[TO quick]", "[brown TO quick fox]", "[BROWN TO QUICK]", "{* TO *}",
    "[* TO *]", "[\"*\" TO z]", "[\\* TO z]", "[ brown   TO   quick ]", "[brown TO\tquick]", "[brown\tTO quick]", "[\tbrown TO quick]", "[brown TO \tquick]", "[a\"b TO c]", "[\"a\"b TO c]", "[- TO z]", "[brown-x TO z]", "[brown AND quick]",
    "x" + "x" * 254, "x" * 256, "x" * 255 + "*", "z*", "z" * 45, "z" * 90, "\"fox " + "x" * 255 + " dog\"", "\"fox " + "x" * 256 + " dog\"", "\"fox " + "z" * 600 + " dog\"",
]

LANGUAGE = [
    "the", "fox", "foxes", "dog", "dogs", "dog's", "\"fox dog\"", "\"fox the dog\"", "\"fox of the dog\"", "\"foxes the dog\"~1", "\"fox dog\"~1", "\"fox dog\"~2", "\"the fox\"",
    "\"fox the\"", "\"the\"", "\"fox and dog\"", "\"fox dog\"~99", "\"fox dog\"~100", "\"fox dog\"~101", "\"fox dog\"~102", "\"fox dog\"~103", "fox AND the", "the AND fox",
    "the OR fox", "the fox", "-the", "+the", "+the +fox", "fox -the", "fox NOT the", "the*", "fox*", "foxes*", "runn*", "running", "/foxes?/", "to", "\"to be\"", "(the)",
    "(the of)", "fox (the of)", "+fox +(the of)", "fox OR (the AND of)", "-(the of)", "*:* -the", "*:* AND the", "(the) AND (fox)", "THE", "tHe", "fox~1", "foxes~1", "dogs~2",
    "O’Neil", "generalization", "oscillate", "university", "[dog TO fox]", "the^2", "(the)^2", "\"the\"^2", "the~1", "ponies", "caress", "sky", "skies", "hop", "hope", "x's", "it", "\"the fox dog\"",
    "\"the fox dog\"~1", "\"the of fox dog\"",
]

PLAIN = [
    "*:*", "*", "+*:*", "-*:*", "*:* *:*", "*:a", "*:(a b)", "*:*^2", "name_s:Gina", "name_s:gina", "name_s:\"bryan fink\"", "name_s:bryan\\ fink", "name_s:bryan fink",
    "name_s:\"bryan\"", "name_s:*ryan*", "name_s:?ina", "name_s:b*", "name_s:*", "name_s:?*", "name_s:\"\"", "name_s:\"*\"", "name_s:\\*", "name_s:/br.*/", "name_s:/bryan/",
    "name_s:[b TO h]", "name_s:[G TO \"bryan fink\"]", "name_s:{G TO \"bryan fink\"}", "name_s:{Gina TO *}", "name_s:[* TO Gina]", "name_s:[* TO Gina}", "name_s:[* TO *]",
    "name_s:{* TO *}", "name_s:[\"\" TO \"\"]", "name_s:{\"\" TO *]", "name_s:[\"\" TO b}", "name_s:[b TO a]", "name_s:{a TO a}", "name_s:[a TO a}", "name_s:brian\\ fink~1",
    "name_s:Gian~1", "name_s:Gin~0", "name_s:roam~", "name_s:roam~1", "name_s:roam~0.5", "name_s:roam~0.8", "name_s:roams~0.8", "name_s:ca~1", "name_s:ca~2", "name_s:a~1",
    "name_s:aa~1", "name_s:ab~2", "name_s:\\\"~1", "name_s:😀~1", "name_s:a😀b~1", "name_s:é~1", "name_s:émile~1", "name_s:emile~1", "name_s:(Gina OR ryan)",
    "name_s:(+Gina -ryan)", "name_s:(Gina tags_ss:F)", "name_s:(n_i:30)", "(name_s:Gina)^2", "name_s:\\u0047ina", "name_s:G\\u0069na", "name_s:\"\\u0047ina\"",
    "name_s:\\ud83d\\ude00", "name_s:a\\\\b", "name_s:\\\\", "name_s:\\/", "name_s:a\\/b", "name_s:\\\"", "name_s:\\(x\\)", "name_s:AND", "name_s:\"AND\"", "name_s:\\AND",
    "name_s:ANDY", "name_s:&&", "name_s:\\&\\&", "name_s:a&&b", "name_s:&", "name_s:|", "name_s:\\-1", "name_s:-1", "name_s:-a", "name_s:+a", "name_s:\\+a", "name_s: Gina",
    "name_s :Gina", "name_s : Gina", "name_s:\tGina", "name_s:\u3000Gina", "name_s:\u00a0Gina", "name_s:", ":Gina", "name_s::Gina", "name_s:Gina:x", "name_s:Gina\\:x", "\"name_s\":Gina",
    "name_s:~1", "name_s:^2", "name_s:Gina^", "name_s:Gina^x", "name_s:Gina^2.5", "name_s:Gina^.5", "name_s:Gina^2.", "name_s:Gina^-1", "name_s:Gina^0", "name_s:Gina~1~1",
    "name_s:Gina^2^3", "na*:Gina", "name_s:東京", "name_s:東*", "name_s:?京", "name_s:東京~1", "unknown:x", "unknown:*", "unknown:[1 TO 2]", "unknown:x*", "unknown:/x/",
    "unknown:x~1", "none_s:x", "none_s:*", "-none_s:*", "none_s:[* TO *]", "tags_ss:F AND tags_ss:G", "tags_ss:F AND tags_ss:H", "tags_ss:F OR tags_ss:H", "tags_ss:(F H)",
    "tags_ss:*", "-tags_ss:*", "set:frijoles", "counter:83475", "counter:[* TO *]", "text:bitcask", "text:\"your entire\"", "_yz_rk:d0001", "_yz_rk:d000*",
    "_yz_rk:[d0002 TO d0004}", "n_i:33", "n_i:\"33\"", "n_i:+33", "n_i:\\+33", "n_i:033", "n_i:33.0", "n_i:x", "n_i:\"\"", "n_i:-5", "n_i:\\-5", "n_i:\"-5\"", "n_i:[-5 TO 5]",
    "n_i:[30 TO 33]", "n_i:{30 TO 33}", "n_i:{30 TO 33]", "n_i:[30 TO 33}", "n_i:[33 TO 30]", "n_i:{33 TO 33}", "n_i:[33 TO 33]", "n_i:[* TO 30}", "n_i:[31 TO *]", "n_i:{31 TO *}",
    "n_i:[* TO *]", "n_i:{* TO *}", "n_i:*", "-n_i:*", "n_i:[2147483647 TO *]", "n_i:{2147483647 TO *]", "n_i:[* TO -2147483648]", "n_i:[* TO -2147483648}", "n_i:2147483648",
    "n_i:[0 TO 2147483648]", "n_i:[x TO y]", "n_i:[1.5 TO 2]", "n_i:(30 OR 33)", "n_i:[30 33]", "n_i:[ 30  TO  33 ]", "n_i:3*", "n_i:?3", "n_i:33~1", "n_i:/3+/", "n_i:33^2", "ns_is:1",
    "ns_is:[1 TO 2]", "ns_is:(1 AND 2147483647)", "ns_is:{1 TO 2147483647}", "ti_ti:[0 TO 100]", "big_l:9000000000", "big_l:[9000000000 TO *]", "big_l:{9223372036854775806 TO *]",
    "big_l:9223372036854775808", "f_f:3.14", "f_f:3.140", "f_f:\"3.14\"", "f_f:3.14f", "f_f:\"3.14d\"", "f_f:\" 3.14 \"", "f_f:0", "f_f:0.0", "f_f:\\-0.0", "f_f:\"-0.0\"", "f_f:NaN",
    "f_f:nan", "f_f:Infinity", "f_f:inf", "f_f:\"-Infinity\"", "f_f:1e10", "f_f:1E10", "f_f:1e400", "f_f:x", "f_f:.5", "f_f:5.", "f_f:0x10", "f_f:1_0", "f_f:[-2 TO 3.14]", "f_f:[-2 TO 3.14}",
    "f_f:{-1.5 TO *]", "f_f:{-1.5 TO *}", "f_f:[* TO *]", "f_f:{* TO *}", "f_f:*", "f_f:[0 TO *]", "f_f:{0 TO *]", "f_f:[-0.0 TO 0.0]", "f_f:{-0.0 TO 0.0]", "f_f:[-0.0 TO 0.0}",
    "f_f:[* TO 0}", "f_f:[* TO -0.0}", "f_f:[NaN TO *]", "f_f:[* TO NaN]", "f_f:[NaN TO NaN]", "f_f:{NaN TO *]", "f_f:[Infinity TO *]", "f_f:{Infinity TO *]", "f_f:[* TO -Infinity]",
    "f_f:[0.1 TO 0.3]", "f_f:16777217", "d_d:16777217", "d_d:0.1", "d_d:[* TO *]", "d_d:*", "d_d:[NaN TO NaN]", "d_d:NaN", "d_d:{-Infinity TO *]", "ok_b:true", "ok_b:false", "ok_b:T",
    "ok_b:1", "ok_b:0", "ok_b:yes", "ok_b:True", "ok_b:\"\"", "ok_b:[false TO true]", "ok_b:{false TO *]", "ok_b:{false TO true}", "ok_b:*", "ok_b:t*", "ok_b:T*", "-ok_b:true",
    "at_dt:\"2019-12-31T00:00:00Z\"", "at_dt:2019\\-12\\-31T00\\:00\\:00Z", "at_dt:2019-12-31T00\\:00\\:00Z", "at_dt:2019-12-31T00:00:00Z", "at_dt:\"2019-12-31T00:00:00.000Z\"",
    "at_dt:[2019-01-01T00:00:00Z TO 2019-12-31T00:00:00Z]", "at_dt:[2019-01-01T00:00:00Z TO 2019-12-31T00:00:00Z}", "at_dt:{2019-12-31T00:00:00Z TO *]",
    "at_dt:[* TO 1970-01-01T00:00:00Z}", "at_dt:*", "at_dt:[* TO *]", "at_dt:[\"2019-01-01T12:00:00Z\" TO \"2019-01-01T12:00:00Z\"]", "at_dt:x", "at_dt:[x TO *]",
    "ats_dts:[2019-01-01T00:00:00Z TO *]", "name_s:Gina AND n_i:[0 TO 100] AND NOT n_i:33", "(NOT n_i:33)", "NOT n_i:33", "n_i:33 OR (NOT n_i:33)",
    "n_i:[0 TO 100] AND NOT n_i:33", "+n_i:[* TO *] -ok_b:true", "fox", "\"fox\"", "[a TO b]", "/fox/", "fox*", "(fox)", "{!term f=name_s}Gina", "/* name_s:Gina */", "n_i:33 //",
    "name_s:/a&&b/", "name_s:/|a/", "name_s:/a|/", "name_s:/{a/", "name_s:/~a/", "name_s:/[a-]/", "lang_sv:bibliotek", "lang_ru:зеленый", "(-lang_en:fox)^2 lang_en:the", "",
]

OPERATORS = ("OR", "AND")


def named(query, field):
    return f"{field}:{query}" if field == "body_t" else f"{field}:({query})"


CASES = [
    *((operator, "", connection.format(a="body_t:quick", b="body_t:fox", c="n_i:33")) for connection in CONNECTIONS for operator in OPERATORS),
    # The second of three words is left out, then the first, then the last.
    *((operator, "lang_en", connection.format(a=a, b=b, c=c)) for connection in CONNECTIONS for operator in OPERATORS
      for a, b, c in (("fox", "the", "dog"), ("the", "fox", "dog"), ("fox", "dog", "the"))),
    *(("OR", "body_t", query) for query in BODY),
    *(("AND", "body_t", query) for query in BODY if " " in query or "-" in query),
    *(("OR", "lang_en", query) for query in LANGUAGE),
    *(("AND", "lang_en", query) for query in LANGUAGE if " " in query),
    *(("OR", "lang_cjk", query) for query in ("东京", "\"东京\"", "一二三", "\"一二三\"", "一三", "二三", "东", "ガギ", "ＡＢＣ", "ａｂ*", "ｶﾞ*", "ガ*", "/一./", "东?", "东京~1", "[一 TO 二三]", "abc一二")),
    *(("AND", "lang_cjk", query) for query in ("东京 abc", "一二三", "一二京", "abc一二", "东京都")),
    *((("OR"), "", query) for query in PLAIN if query),
    *((("AND"), "name_s", query) for query in ("Gina", "Gina ryan", "*", "(*)", "n_i:30 Gina", "Gina OR ryan", "-Gina", "\"Gina\"", "[a TO b]", "/G.*/", "G*", "Gian~1")),
]
