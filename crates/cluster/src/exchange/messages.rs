//! The questions of an exchange, and their answers.
//!
//! ```text
//! question  = version u8, kind u8, varint partition, varint n, home, u64 class print,
//!             varint first slot, fields,
//!             part of the kind
//! root        1  u64 store, varint seq, u64 sum, varint marked seq
//! groups      2
//! ranges      3  u64 groups 0 to 63, u64 groups 64 to 127
//!                field 128, empty: the asking node takes outlines
//! some        4  ranges
//! list        5  ranges, u64 from, u64 to, varint count, (u64 mix)*
//! mark        6  u64 store, varint seq, u64 token
//! keys        7  u64 store, varint marked seq, varint count, (bytes key, u64 digest, bytes clock)*
//!
//! answer    = version u8, kind u8, fields, part of the kind
//! root        1  u8 is same, standing, varint known seq
//! sums        2  varint count, (u64 sum)*: those that are missing at the end are 0
//! lacked      3  varint count, (u64 mix)*
//! marked      4  varint seq (0: not noted)
//! keys        5  standing, varint known seq, varint count, (u8 held)*
//! outlines    6  varint count, (u64 number)*: only if the asking node takes them
//!
//! standing  = u8 flags (1 full, 2 lost), u64 store, u64 token, varint seq
//! held        0 same, 1 covers, 2 less, 3 nothing, 4 other, 5 unreadable; 8 more for what is in
//!             doubt, unless it is unreadable
//! class print: which keys are in the classes with this n
//! home      = u64 lineage, varint number: the version of the home partition
//! ranges    = varint count, (varint)*: the first number, then how much larger the next one is
//! ```
//!
//! A clock is in the form of `stored_object::encode_clock`; empty bytes are the empty clock.

use crate::wire::fields::{Field, OPTIONAL_FROM, read_fields};
use crate::wire::{Malformed, Reader, Writer, no_fields};
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::replica::{COMPARE_KEYS_MAX, Held, HeldVersion};
use ombak_peer::mux::Body;
use ombak_repair::{
    ExchangeAnswer, ExchangePart, ExchangeQuestion, GROUPS, GroupSet, KeyHeld, KeysAnswer, KeysQuestion,
    LIST_MIXES_MAX, ListQuestion, MarkQuestion, OUTLINE_NUMBERS, RANGES, RootAnswer, RootQuestion, SOME_RANGES_MAX,
    Standing,
};
use ombak_ring::RingVersion;
use ombak_types::{VectorClock, stored_object};

mod kind {
    pub const ROOT: u8 = 1;
    pub const GROUPS: u8 = 2;
    pub const RANGES: u8 = 3;
    pub const SOME: u8 = 4;
    pub const LIST: u8 = 5;
    pub const MARK: u8 = 6;
    pub const KEYS: u8 = 7;
}

mod answer_kind {
    pub const ROOT: u8 = 1;
    pub const SUMS: u8 = 2;
    pub const LACKED: u8 = 3;
    pub const MARKED: u8 = 4;
    pub const KEYS: u8 = 5;
    pub const OUTLINES: u8 = 6;
}

mod tag {
    /// A node of an earlier version skips it, and answers with sums.
    pub const TAKES_OUTLINES: u8 = super::OPTIONAL_FROM;
}

const IS_FULL: u8 = 1;
const IS_LOST: u8 = 2;
const UNREADABLE: u8 = 5;
const IN_DOUBT: u8 = 8;

/// Encodes a question.
pub(crate) fn encode_exchange_question(question: &ExchangeQuestion) -> Body {
    let ExchangeQuestion { class, home_version, class_print, first_slot, part } = question;
    let mut out = Writer::of_message();
    out.u8(match part {
        ExchangePart::Root(_) => kind::ROOT,
        ExchangePart::Groups => kind::GROUPS,
        ExchangePart::Ranges { .. } => kind::RANGES,
        ExchangePart::Some { .. } => kind::SOME,
        ExchangePart::List(_) => kind::LIST,
        ExchangePart::Mark(_) => kind::MARK,
        ExchangePart::Keys(_) => kind::KEYS,
    });
    out.varint(u64::from(class.partition));
    out.varint(u64::from(class.n));
    out.u64(home_version.lineage);
    out.varint(home_version.number);
    out.u64(*class_print);
    out.varint(u64::from(*first_slot));
    if matches!(part, ExchangePart::Ranges { takes_outlines: true, .. }) {
        out.field(tag::TAKES_OUTLINES, &[]);
    }
    out.end_fields();
    match part {
        ExchangePart::Root(RootQuestion { store_id, seq, sum, marked_seq }) => {
            out.u64(*store_id);
            out.varint(*seq);
            out.u64(*sum);
            out.varint(*marked_seq);
        }
        ExchangePart::Groups => {}
        ExchangePart::Ranges { groups, .. } => {
            out.u64(*groups as u64);
            out.u64((*groups >> u64::BITS) as u64);
        }
        ExchangePart::Some { ranges } => put_ranges(&mut out, ranges),
        ExchangePart::List(ListQuestion { ranges, from, to, mixes }) => {
            put_ranges(&mut out, ranges);
            out.u64(*from);
            out.u64(*to);
            put_numbers(&mut out, mixes);
        }
        ExchangePart::Mark(MarkQuestion { store_id, seq, token }) => {
            out.u64(*store_id);
            out.varint(*seq);
            out.u64(*token);
        }
        ExchangePart::Keys(keys) => put_keys(&mut out, keys),
    }
    out.finish()
}

/// Decodes a question.
pub(crate) fn decode_exchange_question(message: &Bytes) -> Result<ExchangeQuestion, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let kind = reader.u8()?;
    let class = ClassId { partition: reader.varint32()?, n: reader.varint32()? };
    let home_version = RingVersion { lineage: reader.u64()?, number: reader.varint()? };
    let class_print = reader.u64()?;
    let first_slot = reader.varint32()?;
    let mut takes_outlines = false;
    read_fields(&mut reader, |tag, _| match (kind, tag) {
        (kind::RANGES, tag::TAKES_OUTLINES) => {
            takes_outlines = true;
            Ok(Field::Read)
        }
        _ => Ok(Field::Unknown),
    })?;
    let part = match kind {
        kind::ROOT => ExchangePart::Root(RootQuestion {
            store_id: reader.u64()?,
            seq: reader.varint()?,
            sum: reader.u64()?,
            marked_seq: reader.varint()?,
        }),
        kind::KEYS => ExchangePart::Keys(keys(&mut reader)?),
        kind::GROUPS => ExchangePart::Groups,
        kind::RANGES => {
            let (low, high) = (reader.u64()?, reader.u64()?);
            let groups = GroupSet::from(low) | GroupSet::from(high) << u64::BITS;
            ExchangePart::Ranges { groups, takes_outlines }
        }
        kind::SOME => ExchangePart::Some { ranges: ranges(&mut reader)? },
        kind::LIST => ExchangePart::List(ListQuestion {
            ranges: ranges(&mut reader)?,
            from: reader.u64()?,
            to: reader.u64()?,
            mixes: numbers(&mut reader, LIST_MIXES_MAX)?,
        }),
        kind::MARK => {
            ExchangePart::Mark(MarkQuestion { store_id: reader.u64()?, seq: reader.varint()?, token: reader.u64()? })
        }
        _ => return Err(Malformed("the kind of its question is not known")),
    };
    reader.end()?;
    Ok(ExchangeQuestion { class, home_version, class_print, first_slot, part })
}

/// Encodes an answer.
pub(crate) fn encode_exchange_answer(answer: &ExchangeAnswer) -> Body {
    let mut out = Writer::of_message();
    out.u8(match answer {
        ExchangeAnswer::Root(_) => answer_kind::ROOT,
        ExchangeAnswer::Sums(_) => answer_kind::SUMS,
        ExchangeAnswer::Outlines(_) => answer_kind::OUTLINES,
        ExchangeAnswer::Lacked(_) => answer_kind::LACKED,
        ExchangeAnswer::Marked(_) => answer_kind::MARKED,
        ExchangeAnswer::Keys(_) => answer_kind::KEYS,
    });
    out.end_fields();
    match answer {
        ExchangeAnswer::Root(RootAnswer { is_same, standing, known_seq }) => {
            out.u8(u8::from(*is_same));
            put_standing(&mut out, standing);
            out.varint(*known_seq);
        }
        ExchangeAnswer::Keys(KeysAnswer { standing, known_seq, held }) => {
            put_standing(&mut out, standing);
            out.varint(*known_seq);
            out.varint(held.len() as u64);
            held.iter().for_each(|held| out.u8(number_of(*held)));
        }
        ExchangeAnswer::Sums(sums) => put_numbers(&mut out, sums),
        ExchangeAnswer::Outlines(outlines) => put_numbers(&mut out, outlines),
        ExchangeAnswer::Lacked(mixes) => put_numbers(&mut out, mixes),
        ExchangeAnswer::Marked(seq) => out.varint(*seq),
    }
    out.finish()
}

/// Decodes an answer.
pub(crate) fn decode_exchange_answer(message: &Bytes) -> Result<ExchangeAnswer, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let kind = reader.u8()?;
    no_fields(&mut reader)?;
    let answer = match kind {
        answer_kind::ROOT => ExchangeAnswer::Root(RootAnswer {
            is_same: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed("two sums are neither the same nor not")),
            },
            standing: standing(&mut reader)?,
            known_seq: reader.varint()?,
        }),
        answer_kind::KEYS => {
            let (standing, known_seq) = (standing(&mut reader)?, reader.varint()?);
            let count = reader.varint()?;
            if count > COMPARE_KEYS_MAX as u64 {
                return Err(Malformed("it is about too many keys"));
            }
            let held = (0..count).map(|_| held_of(reader.u8()?)).collect::<Result<_, _>>()?;
            ExchangeAnswer::Keys(KeysAnswer { standing, known_seq, held })
        }
        answer_kind::SUMS => ExchangeAnswer::Sums(numbers(&mut reader, RANGES)?),
        answer_kind::OUTLINES => ExchangeAnswer::Outlines(numbers(&mut reader, GROUPS * OUTLINE_NUMBERS)?),
        answer_kind::LACKED => ExchangeAnswer::Lacked(numbers(&mut reader, LIST_MIXES_MAX)?),
        answer_kind::MARKED => ExchangeAnswer::Marked(reader.varint()?),
        _ => return Err(Malformed("the kind of its answer is not known")),
    };
    reader.end()?;
    Ok(answer)
}

fn put_keys(out: &mut Writer, keys: &KeysQuestion) {
    let KeysQuestion { store_id, marked_seq, versions } = keys;
    out.u64(*store_id);
    out.varint(*marked_seq);
    out.varint(versions.len() as u64);
    for HeldVersion { key, digest, clock } in versions {
        out.bytes(key);
        out.u64(*digest);
        if clock.is_empty() { out.bytes(&[]) } else { out.bytes(&stored_object::encode_clock(clock)) }
    }
}

fn keys(reader: &mut Reader<'_>) -> Result<KeysQuestion, Malformed> {
    let (store_id, marked_seq, count) = (reader.u64()?, reader.varint()?, reader.varint()?);
    if count > COMPARE_KEYS_MAX as u64 {
        return Err(Malformed("it is about too many keys"));
    }
    let mut versions = Vec::new();
    for _ in 0..count {
        let (key, digest, clock) = (reader.bytes()?, reader.u64()?, clock(reader)?);
        versions.push(HeldVersion { key, digest, clock });
    }
    Ok(KeysQuestion { store_id, marked_seq, versions })
}

fn clock(reader: &mut Reader<'_>) -> Result<VectorClock, Malformed> {
    let bytes = reader.bytes()?;
    if bytes.is_empty() {
        return Ok(VectorClock::new());
    }
    stored_object::decode_clock(&bytes).map_err(|_| Malformed("a clock does not decode"))
}

fn put_standing(out: &mut Writer, standing: &Standing) {
    let Standing { is_full, is_lost, store_id, token, seq } = standing;
    out.u8(if *is_full { IS_FULL } else { 0 } | if *is_lost { IS_LOST } else { 0 });
    out.u64(*store_id);
    out.u64(*token);
    out.varint(*seq);
}

fn standing(reader: &mut Reader<'_>) -> Result<Standing, Malformed> {
    let flags = reader.u8()?;
    if flags & !(IS_FULL | IS_LOST) != 0 {
        return Err(Malformed("a flag is not known"));
    }
    let (is_full, is_lost) = (flags & IS_FULL != 0, flags & IS_LOST != 0);
    Ok(Standing { is_full, is_lost, store_id: reader.u64()?, token: reader.u64()?, seq: reader.varint()? })
}

/// The number of an answer about a key. Those of what can be read are their places in
/// [`Held::ALL`].
fn number_of(held: KeyHeld) -> u8 {
    let place = |held: Held| Held::ALL.iter().position(|known| *known == held).map(|at| at as u8);
    match held {
        KeyHeld::Readable(held) => place(held).unwrap_or(UNREADABLE),
        KeyHeld::InDoubt(held) => place(held).map_or(UNREADABLE, |at| IN_DOUBT | at),
        KeyHeld::Unreadable => UNREADABLE,
    }
}

fn held_of(number: u8) -> Result<KeyHeld, Malformed> {
    match Held::ALL.get(usize::from(number & !IN_DOUBT)) {
        Some(held) if number & IN_DOUBT != 0 => Ok(KeyHeld::InDoubt(*held)),
        Some(held) => Ok(KeyHeld::Readable(*held)),
        None if number == UNREADABLE => Ok(KeyHeld::Unreadable),
        None => Err(Malformed("what is held is not known")),
    }
}

fn put_ranges(out: &mut Writer, ranges: &[u32]) {
    out.varint(ranges.len() as u64);
    let mut before = 0;
    for range in ranges {
        out.varint(u64::from(range.saturating_sub(before)));
        before = *range;
    }
}

fn ranges(reader: &mut Reader<'_>) -> Result<Vec<u32>, Malformed> {
    let count = reader.varint()?;
    if count > SOME_RANGES_MAX as u64 {
        return Err(Malformed("it names too many ranges"));
    }
    let (mut ranges, mut before) = (Vec::new(), 0u32);
    for number in 0..count {
        let more = reader.varint32()?;
        if number > 0 && more == 0 {
            return Err(Malformed("a range is named twice"));
        }
        before = before.checked_add(more).filter(|range| (*range as usize) < RANGES).ok_or(NO_RANGE)?;
        ranges.push(before);
    }
    Ok(ranges)
}

const NO_RANGE: Malformed = Malformed("a range does not exist");

fn put_numbers(out: &mut Writer, numbers: &[u64]) {
    out.varint(numbers.len() as u64);
    numbers.iter().for_each(|number| out.u64(*number));
}

fn numbers(reader: &mut Reader<'_>, count_max: usize) -> Result<Vec<u64>, Malformed> {
    let count = reader.varint()?;
    if count > count_max as u64 {
        return Err(Malformed("it has too many numbers"));
    }
    // Nothing is allocated for numbers that the bytes do not have.
    (0..count).map(|_| reader.u64()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_fixtures::FrozenMessages;
    use ombak_peer::frame::{AnswerHead, HEADER_BYTES, RequestHead};
    use ombak_types::Actor;
    use ombak_types::time::UnixMicros;

    const CLASS: ClassId = ClassId { partition: 300, n: 3 };
    const SOME: u64 = 0x0102_0304_0506_0708;

    fn questions() -> Vec<(&'static str, ExchangePart)> {
        let groups = GroupSet::from(SOME) | 1 << 127;
        let list = ListQuestion { ranges: vec![0, 1, 4_095], from: 1, to: u64::MAX, mixes: vec![1, SOME] };
        vec![
            ("root", ExchangePart::Root(RootQuestion { store_id: SOME, seq: 300, sum: u64::MAX, marked_seq: 7 })),
            ("groups", ExchangePart::Groups),
            ("ranges", ExchangePart::Ranges { groups, takes_outlines: false }),
            ("outlines", ExchangePart::Ranges { groups, takes_outlines: true }),
            ("some", ExchangePart::Some { ranges: vec![7, 300] }),
            ("list", ExchangePart::List(list)),
            ("mark", ExchangePart::Mark(MarkQuestion { store_id: SOME, seq: 300, token: 9 })),
            ("keys", ExchangePart::Keys(keys())),
        ]
    }

    fn answers() -> Vec<(&'static str, ExchangeAnswer)> {
        let standing = Standing { is_full: true, is_lost: false, store_id: SOME, token: 9, seq: 400 };
        let root = RootAnswer { is_same: false, standing, known_seq: 300 };
        let in_doubt = Held::ALL.into_iter().map(KeyHeld::InDoubt);
        let all = Held::ALL.into_iter().map(KeyHeld::Readable).chain([KeyHeld::Unreadable]).chain(in_doubt).collect();
        let lost = Standing { is_full: false, is_lost: true, ..standing };
        vec![
            ("root", ExchangeAnswer::Root(root)),
            ("same", ExchangeAnswer::Root(RootAnswer { is_same: true, ..root })),
            ("sums", ExchangeAnswer::Sums(vec![0, SOME])),
            ("outlines", ExchangeAnswer::Outlines(vec![0, SOME])),
            ("lacked", ExchangeAnswer::Lacked(vec![SOME])),
            ("marked", ExchangeAnswer::Marked(300)),
            ("not_marked", ExchangeAnswer::Marked(0)),
            ("keys", ExchangeAnswer::Keys(KeysAnswer { standing: lost, known_seq: 7, held: all })),
        ]
    }

    fn keys() -> KeysQuestion {
        KeysQuestion { store_id: SOME, marked_seq: 300, versions: vec![version(true), version(false)] }
    }

    fn version(has_clock: bool) -> HeldVersion {
        let mut clock = VectorClock::new();
        if has_clock {
            let _ = clock.increment(&Actor::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), UnixMicros(1_600_000_000_000_000));
        }
        HeldVersion { key: "a key".into(), digest: SOME, clock }
    }

    fn question(part: ExchangePart) -> ExchangeQuestion {
        let home_version = RingVersion { lineage: SOME, number: 5 };
        ExchangeQuestion { class: CLASS, home_version, class_print: SOME, first_slot: 300, part }
    }

    fn bytes_of(body: &Body) -> Bytes {
        body.parts().concat().into()
    }

    #[test]
    fn messages_that_version_2_has_added_have_its_bytes() {
        let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "exchange");
        for (name, part) in questions() {
            let encode = |asked: &ExchangeQuestion| bytes_of(&encode_exchange_question(asked)).to_vec();
            let decode = |bytes: &[u8]| decode_exchange_question(&Bytes::copy_from_slice(bytes));
            frozen.check(&format!("exchange_question/{name}"), &question(part), encode, decode);
        }
        for (name, answer) in answers() {
            let encode = |answer: &ExchangeAnswer| bytes_of(&encode_exchange_answer(answer)).to_vec();
            let decode = |bytes: &[u8]| decode_exchange_answer(&Bytes::copy_from_slice(bytes));
            frozen.check(&format!("exchange_answer/{name}"), &answer, encode, decode);
        }
        frozen.end();
    }

    #[test]
    fn equal_replicas_ask_one_question_of_a_few_dozen_bytes() {
        let asked = bytes_of(&encode_exchange_question(&question(questions().swap_remove(0).1)));
        let answered = bytes_of(&encode_exchange_answer(&answers().swap_remove(1).1));
        assert!(asked.len() + answered.len() < 72, "{} and {}", asked.len(), answered.len());
    }

    /// Nodes pace their exchanges by these figures, and show them.
    #[test]
    fn the_bytes_that_nodes_count_are_about_those_that_they_send() {
        let differ = |counted: u64, sent: usize| counted.abs_diff(sent as u64);
        // A clock has any length.
        for (name, part) in questions().into_iter().filter(|(name, _)| *name != "keys") {
            let counted = part.bytes();
            let sent = HEADER_BYTES + RequestHead::BYTES + bytes_of(&encode_exchange_question(&question(part))).len();
            assert!(differ(counted, sent) <= 10, "{name}: {counted} and {sent}");
        }
        for (name, answer) in answers() {
            let sent = HEADER_BYTES + AnswerHead::BYTES + bytes_of(&encode_exchange_answer(&answer)).len();
            assert!(differ(answer.bytes(), sent) <= 10, "{name}: {} and {sent}", answer.bytes());
        }
    }

    #[test]
    fn what_is_too_large_or_in_no_order_is_refused() {
        let refused = |part| decode_exchange_question(&bytes_of(&encode_exchange_question(&question(part)))).is_err();
        assert!(refused(ExchangePart::Some { ranges: vec![RANGES as u32] }));
        assert!(refused(ExchangePart::Some { ranges: vec![3, 3] }));
        assert!(refused(ExchangePart::Some { ranges: vec![3, 2] }));
        assert!(refused(ExchangePart::Some { ranges: (0..=SOME_RANGES_MAX as u32).collect() }));
        assert!(!refused(ExchangePart::Some { ranges: (0..SOME_RANGES_MAX as u32).collect() }));
        let list = |count: usize| ListQuestion { ranges: vec![0], from: 0, to: u64::MAX, mixes: vec![0; count] };
        assert!(refused(ExchangePart::List(list(LIST_MIXES_MAX + 1))));
        assert!(!refused(ExchangePart::List(list(LIST_MIXES_MAX))));
    }
}
