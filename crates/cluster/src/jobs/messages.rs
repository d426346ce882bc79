//! Pieces of parts of MapReduce jobs.
//!
//! ```text
//! request   version u8, u8 kind, u64 job (low half), u64 job (high half)
//!           0 piece:    work, place, phase map, phase prereduce
//!           1 end:      the job has ended
//!           fields
//! work      u8 0 keys:  terms, one for each key
//!           u8 1 share: bytes bucket_type, bytes name, varint home, varint n, u64 begun_us, term
//!           of the filter
//! place     u8 has, bytes if 1
//! phase     u8 has, if 1: varint number, term
//!
//! answer    version u8, u8 kind
//!           0 piece:    place, terms
//!           1 failed:   failure
//!           2 ended
//!           fields
//! failure   u8 0 timeout
//!           u8 1 phase: varint number, text error, u8 kind (0 none, 1 error, 2 result),
//!                       u8 has, text input if 1, u8 has, text stack if 1
//!           u8 2 other: text
//! term      bytes in Erlang's external term format
//! terms     bytes of the list of them
//! ```
//!
//! The version of the ring and the deadline of the job travel in the header of the transport.
//! Phases and filters have the forms that they have in requests of Erlang's client.

use crate::wire::{Malformed, Reader, Writer, no_fields};
use bytes::Bytes;
use ombak_jobs::{PartAnswer, PartRequest, PartWork, PhaseOfPart};
use ombak_mapreduce::{Failure, Input, InputsFailure, KeyFilter, Phase, PhaseFailure};
use ombak_peer::mux::Body;
use ombak_ring::RingVersion;
use ombak_types::Bucket;
use ombak_types::etf::{Limits, Term, decode_with, encode};
use ombak_types::time::UnixMicros;
use std::time::Instant;

/// The longest text of a failure in bytes. Its makers cut it to 500 characters.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What a node is asked.
#[derive(Clone, Debug)]
pub(crate) enum JobQuestion {
    /// A piece of a part.
    Piece(PartRequest),
    /// Nothing: the job has ended.
    End {
        /// The number of the job.
        job: u128,
    },
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JobAnswer {
    /// A piece of a part.
    Piece(PartAnswer),
    /// The job cannot succeed.
    Failed(Failure),
    /// What was kept for the job is forgotten.
    Ended,
}

/// Encodes a question.
pub(crate) fn encode_job_question(question: &JobQuestion) -> Body {
    let mut out = Writer::of_message();
    match question {
        JobQuestion::Piece(request) => {
            out.u8(0);
            put_job(request.job, &mut out);
            match &request.work {
                PartWork::Keys(keys) => {
                    out.u8(0);
                    put_terms(keys.iter().map(Input::to_term).collect(), &mut out);
                }
                PartWork::Share { bucket, home, n, ring: _, begun, filter } => {
                    out.u8(1);
                    out.bytes(&bucket.bucket_type);
                    out.bytes(&bucket.name);
                    out.varint(u64::from(*home));
                    out.varint(u64::from(*n));
                    out.u64(begun.0);
                    out.bytes(&encode(&filter.to_term()));
                }
            }
            put_place(request.from.as_ref(), &mut out);
            put_phase(request.map.as_ref(), &mut out);
            put_phase(request.prereduce.as_ref(), &mut out);
        }
        JobQuestion::End { job } => {
            out.u8(1);
            put_job(*job, &mut out);
        }
    }
    out.end_fields();
    out.finish()
}

fn put_job(job: u128, out: &mut Writer) {
    out.u64(job as u64);
    out.u64((job >> 64) as u64);
}

fn put_terms(terms: Vec<Term>, out: &mut Writer) {
    out.bytes(&encode(&Term::List(terms)));
}

fn put_place(place: Option<&Bytes>, out: &mut Writer) {
    out.u8(u8::from(place.is_some()));
    place.into_iter().for_each(|place| out.bytes(place));
}

fn put_phase(phase: Option<&PhaseOfPart>, out: &mut Writer) {
    out.u8(u8::from(phase.is_some()));
    if let Some(PhaseOfPart { number, phase }) = phase {
        out.varint(*number as u64);
        out.bytes(&encode(&phase.to_term()));
    }
}

/// Decodes a question that was sent with a version of the ring and a deadline.
pub(crate) fn decode_job_question(
    message: &Bytes,
    ring: RingVersion,
    deadline: Instant,
) -> Result<JobQuestion, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let r = &mut reader;
    let kind = r.u8()?;
    let job = u128::from(r.u64()?) | u128::from(r.u64()?) << 64;
    let question = match kind {
        0 => {
            let (work, from) = (work(r, ring)?, place(r)?);
            let (map, prereduce) = (phase(r)?, phase(r)?);
            JobQuestion::Piece(PartRequest { job, work, from, map, prereduce, deadline })
        }
        1 => JobQuestion::End { job },
        _ => return Err(Malformed("the question is not known")),
    };
    no_fields(r)?;
    r.end()?;
    Ok(question)
}

fn work(r: &mut Reader<'_>, ring: RingVersion) -> Result<PartWork, Malformed> {
    match r.u8()? {
        0 => {
            let keys = terms(r)?.iter().map(Input::from_term).collect::<Option<_>>();
            keys.map(PartWork::Keys).ok_or(Malformed("a key is not one"))
        }
        1 => {
            let bucket = Bucket { bucket_type: owned(&r.bytes()?), name: owned(&r.bytes()?) };
            let (home, n, begun) = (r.varint32()?, r.varint32()?, UnixMicros(r.u64()?));
            let filter = KeyFilter::parse(&term(r)?).map_err(|_| Malformed("a key filter is not one"))?;
            Ok(PartWork::Share { bucket, home, n, ring, begun, filter })
        }
        _ => Err(Malformed("the work is of no known kind")),
    }
}

fn has(r: &mut Reader<'_>) -> Result<bool, Malformed> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("something is neither there nor absent")),
    }
}

fn place(r: &mut Reader<'_>) -> Result<Option<Bytes>, Malformed> {
    if has(r)? { r.bytes().map(|place| Some(owned(&place))) } else { Ok(None) }
}

fn phase(r: &mut Reader<'_>) -> Result<Option<PhaseOfPart>, Malformed> {
    if !has(r)? {
        return Ok(None);
    }
    let number = r.varint32()? as usize;
    let phase = Phase::from_term(&term(r)?, number).map_err(|_| Malformed("a phase is not one"))?;
    Ok(Some(PhaseOfPart { number, phase }))
}

fn term(r: &mut Reader<'_>) -> Result<Term, Malformed> {
    let bytes = r.bytes()?;
    // Each term has at least one byte.
    let limits = Limits { terms_max: bytes.len(), ..Limits::default() };
    decode_with(&bytes, limits).map_err(|_| Malformed("a term does not decode"))
}

fn terms(r: &mut Reader<'_>) -> Result<Vec<Term>, Malformed> {
    // A list of small integers alone is decoded as a `String`.
    term(r)?.into_list().ok_or(Malformed("a list of terms is none"))
}

/// What is kept lives longer than the bytes that were read together with it.
fn owned(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Encodes an answer.
pub(crate) fn encode_job_answer(answer: JobAnswer) -> Body {
    let mut out = Writer::of_message();
    match answer {
        JobAnswer::Piece(PartAnswer { results, from }) => {
            out.u8(0);
            put_place(from.as_ref(), &mut out);
            put_terms(results.into_list(), &mut out);
        }
        JobAnswer::Failed(failure) => {
            out.u8(1);
            put_failure(&failure, &mut out);
        }
        JobAnswer::Ended => out.u8(2),
    }
    out.end_fields();
    out.finish()
}

fn put_failure(failure: &Failure, out: &mut Writer) {
    let optional = |text: Option<&str>, out: &mut Writer| {
        out.u8(u8::from(text.is_some()));
        text.into_iter().for_each(|text| out.bytes(text.as_bytes()));
    };
    match failure {
        Failure::Timeout => out.u8(0),
        Failure::Phase(PhaseFailure { phase, error, input, kind, stack }) => {
            out.u8(1);
            out.varint(*phase as u64);
            out.bytes(error.as_bytes());
            out.u8(match kind {
                None => 0,
                Some("result") => 2,
                Some(_) => 1,
            });
            optional(input.as_deref(), out);
            optional(stack.as_deref(), out);
        }
        // Only the owner of a job asks whether it may read a bucket, and only it finds the inputs,
        // so no part fails for that.
        Failure::Forbidden(text) | Failure::Inputs(InputsFailure { why: text, .. }) | Failure::Other(text) => {
            out.u8(2);
            let cut = text.char_indices().map(|(at, _)| at).take_while(|at| *at < TEXT_BYTES_MAX - 4).last();
            out.bytes(&text.as_bytes()[..if text.len() < TEXT_BYTES_MAX { text.len() } else { cut.unwrap_or(0) }]);
        }
    }
}

/// Decodes an answer.
pub(crate) fn decode_job_answer(message: &Bytes) -> Result<JobAnswer, Malformed> {
    let mut reader = Reader::of_message(message)?;
    let r = &mut reader;
    let answer = match r.u8()? {
        0 => {
            let from = place(r)?;
            JobAnswer::Piece(PartAnswer { results: terms(r)?.into(), from })
        }
        1 => JobAnswer::Failed(failure(r)?),
        2 => JobAnswer::Ended,
        _ => return Err(Malformed("the answer is of no known kind")),
    };
    no_fields(r)?;
    r.end()?;
    Ok(answer)
}

fn failure(r: &mut Reader<'_>) -> Result<Failure, Malformed> {
    let text = |r: &mut Reader<'_>| r.text(TEXT_BYTES_MAX).map(str::to_owned);
    match r.u8()? {
        0 => Ok(Failure::Timeout),
        1 => {
            let (phase, error) = (r.varint32()? as usize, text(r)?);
            let kind = match r.u8()? {
                0 => None,
                1 => Some("error"),
                2 => Some("result"),
                _ => return Err(Malformed("a failure is of no known kind")),
            };
            let input = if has(r)? { Some(text(r)?) } else { None };
            let stack = if has(r)? { Some(text(r)?) } else { None };
            Ok(Failure::Phase(PhaseFailure { phase, error, input, kind, stack }))
        }
        2 => text(r).map(Failure::Other),
        _ => Err(Malformed("a failure is of no known kind")),
    }
}
