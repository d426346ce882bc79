//! The messages of a round of reaping.
//!
//! ```text
//! question = version u8, kind u8, varint partition, varint n, u64 round, fields, varint count,
//! items kind    0 vote      item = bytes key, u64 digest, bytes clock (as clients get it)
//!         1 ask       item = bytes key
//!         2 remove    item = bytes key, u64 digest
//! fields  1 floor of time, of ask alone      varint microseconds since 1970, not 0
//!       128 told seqs, of remove alone       (u64 node, u64 store id, varint seq)*, not empty
//!
//! answer = version u8, varint boot, varint counter, fields, one byte for each item
//! byte    of a vote: 0 same, 1 less, 2 other; else 0 no, 1 yes
//! fields 128 told seq of the sender's store  u64 store id, varint seq
//! ```
//!
//! Nodes of version 1 and 2 neither send fields from 128 on nor need them: they skip them.

use super::NO_RING;
use super::fields::{Field, OPTIONAL_FROM, read_fields};
use super::reader::{Malformed, Reader};
use super::writer::Writer;
use bytes::Bytes;
use ombak_kv::replica::{
    AskRequest, NodeCounter, REAP_KEYS_MAX, ReapReply, Reapable, RemoveRequest, Round, TOLD_NODES_MAX, ToldSeq, Vote,
    VoteRequest,
};
use ombak_peer::mux::Body;
use ombak_types::time::UnixMicros;
use ombak_types::{NodeId, stored_object};

mod tag {
    pub const FLOOR: u8 = 1;
    pub const TOLD: u8 = super::OPTIONAL_FROM;
}

mod kind {
    pub const VOTE: u8 = 0;
    pub const ASK: u8 = 1;
    pub const REMOVE: u8 = 2;
}

/// A question of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum ReapQuestion {
    /// To a primary: what it holds.
    Vote(VoteRequest),
    /// To another member: whether it holds nothing.
    Ask(AskRequest),
    /// To a primary: the order to remove.
    Remove(RemoveRequest),
}

/// Encodes a question. Its deadline and its ring travel in the header of the transport.
pub fn encode_reap_question(question: &ReapQuestion) -> Body {
    let (kind, round, count) = match question {
        ReapQuestion::Vote(vote) => (kind::VOTE, vote.round, vote.versions.len()),
        ReapQuestion::Ask(ask) => (kind::ASK, ask.round, ask.keys.len()),
        ReapQuestion::Remove(remove) => (kind::REMOVE, remove.round, remove.versions.len()),
    };
    let Round { partition, n_val, ring: _, number } = round;
    let mut out = Writer::of_message();
    out.u8(kind);
    out.varint(u64::from(partition));
    out.varint(u64::from(n_val));
    out.u64(number);
    if let ReapQuestion::Ask(AskRequest { floor, .. }) = question
        && *floor != UnixMicros(0)
    {
        out.number_field(tag::FLOOR, floor.0);
    }
    if let ReapQuestion::Remove(RemoveRequest { told, .. }) = question {
        put_told_of_nodes(told, tag::TOLD, &mut out);
    }
    out.end_fields();
    out.varint(count as u64);
    match question {
        ReapQuestion::Vote(vote) => {
            for Reapable { key, digest, clock } in &vote.versions {
                out.bytes(key);
                out.u64(*digest);
                out.bytes(&stored_object::encode_clock(clock));
            }
        }
        ReapQuestion::Ask(ask) => ask.keys.iter().for_each(|key| out.bytes(key)),
        ReapQuestion::Remove(remove) => {
            for (key, digest) in &remove.versions {
                out.bytes(key);
                out.u64(*digest);
            }
        }
    }
    out.finish()
}

/// Decodes a question without a deadline and without a ring.
pub fn decode_reap_question(message: &Bytes) -> Result<ReapQuestion, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let kind = reader.u8()?;
    let (partition, n_val, number) = (reader.varint32()?, reader.varint32()?, reader.u64()?);
    let round = Round { partition, n_val, ring: NO_RING, number };
    let (mut floor, mut told) = (UnixMicros(0), Vec::new());
    read_fields(&mut reader, |tag, content| match tag {
        tag::FLOOR if kind == kind::ASK => {
            floor = UnixMicros(content.varint()?);
            Ok(Field::Read)
        }
        tag::TOLD if kind == kind::REMOVE => {
            told = told_of_nodes(content)?;
            Ok(Field::Read)
        }
        _ => Ok(Field::Unknown),
    })?;
    let count = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    if count > REAP_KEYS_MAX {
        return Err(Malformed("it has too many keys"));
    }
    let items = 0..count;
    let question = match kind {
        kind::VOTE => {
            let versions = items.map(|_| version(&mut reader)).collect::<Result<_, _>>()?;
            ReapQuestion::Vote(VoteRequest { round, versions })
        }
        kind::ASK => {
            let keys = items.map(|_| reader.bytes()).collect::<Result<_, _>>()?;
            ReapQuestion::Ask(AskRequest { round, keys, floor })
        }
        kind::REMOVE => {
            let versions = items.map(|_| Ok((reader.bytes()?, reader.u64()?))).collect::<Result<_, _>>()?;
            ReapQuestion::Remove(RemoveRequest { round, versions, told })
        }
        _ => return Err(Malformed("its kind is not known")),
    };
    reader.end()?;
    Ok(question)
}

/// Writes the told seqs of nodes as one field. If there are none, there is no field.
pub(crate) fn put_told_of_nodes(told: &[(NodeId, ToldSeq)], tag: u8, out: &mut Writer) {
    if told.is_empty() {
        return;
    }
    let mut content = Writer::of_field();
    for (node, told) in told {
        content.u64(node.get());
        put_told(*told, &mut content);
    }
    out.field_of(tag, &content);
}

/// Reads the told seqs of nodes, to the end of their field.
pub(crate) fn told_of_nodes(content: &mut Reader<'_>) -> Result<Vec<(NodeId, ToldSeq)>, Malformed> {
    let mut told = Vec::new();
    while !content.is_empty() {
        if told.len() >= TOLD_NODES_MAX {
            return Err(Malformed("it tells of too many nodes"));
        }
        told.push((NodeId::new(content.u64()?), told_seq(content)?));
    }
    Ok(told)
}

pub(crate) fn put_told(told: ToldSeq, out: &mut Writer) {
    out.u64(told.store_id);
    out.varint(told.seq);
}

pub(crate) fn told_seq(reader: &mut Reader<'_>) -> Result<ToldSeq, Malformed> {
    Ok(ToldSeq { store_id: reader.u64()?, seq: reader.varint()? })
}

fn version(reader: &mut Reader<'_>) -> Result<Reapable, Malformed> {
    let (key, digest, clock) = (reader.bytes()?, reader.u64()?, reader.bytes()?);
    let clock = stored_object::decode_clock(&clock).map_err(|_| Malformed("its clock"))?;
    Ok(Reapable { key, digest, clock })
}

/// Encodes the votes of a primary.
pub fn encode_votes(reply: &ReapReply<Vote>) -> Body {
    answer(reply, |vote| match vote {
        Vote::Same => 0,
        Vote::Less => 1,
        Vote::Other => 2,
    })
}

/// Decodes the votes of a primary.
pub fn decode_votes(message: &Bytes) -> Result<ReapReply<Vote>, Malformed> {
    read_answer(message, |byte| match byte {
        0 => Ok(Vote::Same),
        1 => Ok(Vote::Less),
        2 => Ok(Vote::Other),
        _ => Err(Malformed("a vote is not known")),
    })
}

/// Encodes the answers to a question or to an order.
pub fn encode_reap_answers(reply: &ReapReply<bool>) -> Body {
    answer(reply, |yes| u8::from(*yes))
}

/// Decodes the answers to a question or to an order.
pub fn decode_reap_answers(message: &Bytes) -> Result<ReapReply<bool>, Malformed> {
    read_answer(message, |byte| match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("an answer is not known")),
    })
}

fn answer<T>(reply: &ReapReply<T>, byte: impl Fn(&T) -> u8) -> Body {
    let ReapReply { answers, counter: NodeCounter { boot, counter }, told } = reply;
    let mut out = Writer::of_message();
    out.varint(*boot);
    out.varint(*counter);
    if let Some(told) = told {
        let mut content = Writer::of_field();
        put_told(*told, &mut content);
        out.field_of(tag::TOLD, &content);
    }
    out.end_fields();
    answers.iter().for_each(|answer| out.u8(byte(answer)));
    out.finish()
}

fn read_answer<T>(message: &Bytes, of: impl Fn(u8) -> Result<T, Malformed>) -> Result<ReapReply<T>, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let counter = NodeCounter { boot: reader.varint()?, counter: reader.varint()? };
    let mut told = None;
    read_fields(&mut reader, |tag, content| match tag {
        tag::TOLD => {
            told = Some(told_seq(content)?);
            Ok(Field::Read)
        }
        _ => Ok(Field::Unknown),
    })?;
    let bytes = reader.rest()?;
    if bytes.len() > REAP_KEYS_MAX {
        return Err(Malformed("it has too many answers"));
    }
    let answers = bytes.iter().map(|byte| of(*byte)).collect::<Result<_, _>>()?;
    Ok(ReapReply { answers, counter, told })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::{Actor, VectorClock};
    use proptest::prelude::*;

    fn round() -> Round {
        Round { partition: 300, n_val: 3, ring: NO_RING, number: 0x0102_0304_0506_0708 }
    }

    fn bytes_of(body: &Body) -> Bytes {
        body.parts().concat().into()
    }

    fn hex(text: &str) -> Bytes {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn question(keys: &[(Vec<u8>, u64)], kind: u8) -> ReapQuestion {
        let mut clock = VectorClock::new();
        clock.increment(&Actor::new(&[7; 12]), UnixMicros(0));
        let key = |key: &Vec<u8>| Bytes::copy_from_slice(key);
        match kind {
            kind::VOTE => {
                let version =
                    |(k, digest): &(Vec<u8>, u64)| Reapable { key: key(k), digest: *digest, clock: clock.clone() };
                ReapQuestion::Vote(VoteRequest { round: round(), versions: keys.iter().map(version).collect() })
            }
            kind::ASK => {
                // The first key decides about the floor, so that both forms are tried.
                let floor = UnixMicros(keys.first().map_or(0, |(_, digest)| if *digest == 9 { 0 } else { *digest }));
                ReapQuestion::Ask(AskRequest {
                    round: round(),
                    keys: keys.iter().map(|(k, _)| key(k)).collect(),
                    floor,
                })
            }
            _ => {
                let versions = keys.iter().map(|(k, digest)| (key(k), *digest)).collect();
                // As above, for what the members have told.
                let told = keys.first().filter(|(_, digest)| *digest != 9).map(|(_, digest)| *digest);
                let told = told.into_iter().map(|seq| (NodeId::new(seq), ToldSeq { store_id: !seq, seq })).collect();
                ReapQuestion::Remove(RemoveRequest { round: round(), versions, told })
            }
        }
    }

    /// Nodes of version 1 send these bytes, so they never change.
    #[test]
    fn messages_have_the_bytes_of_version_1() {
        let keys = [(b"k".to_vec(), 9)];
        let rows = [
            (kind::ASK, "01 01 ac02 03 0807060504030201 00 01 016b"),
            (kind::REMOVE, "01 02 ac02 03 0807060504030201 00 01 016b 0900000000000000"),
        ];
        for (kind, text) in rows {
            assert_eq!(bytes_of(&encode_reap_question(&question(&keys, kind))), hex(text));
        }
        let counter = NodeCounter { boot: 7, counter: 300 };
        let votes = ReapReply { answers: vec![Vote::Same, Vote::Less, Vote::Other], counter, told: None };
        assert_eq!(bytes_of(&encode_votes(&votes)), hex("01 07 ac02 00 000102"));
        let answers = ReapReply { answers: vec![true, false], counter, told: None };
        assert_eq!(bytes_of(&encode_reap_answers(&answers)), hex("01 07 ac02 00 0100"));
    }

    /// Nodes of version 2 send these bytes, and nodes of version 1 skip the field.
    #[test]
    fn told_seqs_have_the_bytes_of_version_2() {
        let told = ToldSeq { store_id: 0x0102_0304_0506_0708, seq: 300 };
        let counter = NodeCounter { boot: 7, counter: 300 };
        let votes = ReapReply { answers: vec![Vote::Same], counter, told: Some(told) };
        assert_eq!(bytes_of(&encode_votes(&votes)), hex("01 07 ac02 80 0a 0807060504030201 ac02 00 00"));
        let versions = vec![(Bytes::from_static(b"k"), 9)];
        let order = RemoveRequest { round: round(), versions, told: vec![(NodeId::new(5), told)] };
        let text = "01 02 ac02 03 0807060504030201 80 12 0500000000000000 0807060504030201 ac02 00 01 016b \
                    0900000000000000";
        let bytes = hex(text);
        assert_eq!(bytes_of(&encode_reap_question(&ReapQuestion::Remove(order.clone()))), bytes);
        assert_eq!(decode_reap_question(&bytes).unwrap(), ReapQuestion::Remove(order));
    }

    proptest! {
        #[test]
        fn messages_arrive_as_they_were_sent(
            keys in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<u64>()), 0..20),
            kind in 0u8..3, votes in prop::collection::vec(0u8..3, 0..20), (boot, counter) in any::<(u64, u64)>(),
            told in prop::option::of(any::<(u64, u64)>()),
        ) {
            let question = question(&keys, kind);
            let message = bytes_of(&encode_reap_question(&question));
            prop_assert_eq!(decode_reap_question(&message).unwrap(), question);
            for end in 0..message.len() {
                prop_assert!(decode_reap_question(&message.slice(..end)).is_err());
            }
            let counter = NodeCounter { boot, counter };
            let vote = |byte: &u8| [Vote::Same, Vote::Less, Vote::Other][usize::from(*byte)];
            let told = told.map(|(store_id, seq)| ToldSeq { store_id, seq });
            let answers = ReapReply { answers: votes.iter().map(vote).collect(), counter, told };
            prop_assert_eq!(decode_votes(&bytes_of(&encode_votes(&answers))).unwrap(), answers);
            let answers = ReapReply { answers: votes.iter().map(|byte| *byte == 1).collect(), counter, told };
            prop_assert_eq!(decode_reap_answers(&bytes_of(&encode_reap_answers(&answers))).unwrap(), answers);
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            if let Ok(question) = decode_reap_question(&bytes) {
                prop_assert_eq!(decode_reap_question(&bytes_of(&encode_reap_question(&question))).unwrap(), question);
            }
            let _ = (decode_votes(&bytes), decode_reap_answers(&bytes));
        }
    }
}
