//! Shows on standard error how far a fold is, while its answer is awaited.

use super::admin_client::{RequestError, request, request_within};
use super::failure::Failure;
use super::fold::ANSWER_TIMEOUT;
use super::target::Target;
use hyper::Method;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::timeout;

const FOLDS_PATH: &str = "/admin/v1/folds";
/// How often it is looked how far the fold is.
const LOOK: Duration = Duration::from_millis(500);
/// How long such a look may take. The answer of the fold does not wait longer.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Asks for a fold and waits for its answer. Meanwhile it shows how far the fold is, if standard
/// error is a terminal or `is_wanted`.
pub(super) async fn watched(target: &Target, path: &str, mut body: Value, is_wanted: bool) -> Result<Value, Failure> {
    let is_terminal = std::io::stderr().is_terminal();
    let mut line = Line { is_terminal, shown: String::new() };
    let began = Instant::now();
    let watch = format!("{}-{}", std::process::id(), crate::wall_clock::now_secs());
    if is_terminal || is_wanted {
        body["watch"] = json!(watch);
    }
    let text = body.to_string();
    let mut answer = pin!(request_within(ANSWER_TIMEOUT, target, path, &text));
    if !is_terminal && !is_wanted {
        return answer.await.map_err(|e| e.into_failure(target));
    }
    loop {
        match timeout(LOOK, answer.as_mut()).await {
            Ok(answer) => {
                line.end(is_wanted && answer.is_ok(), began.elapsed());
                return answer.map_err(|e: RequestError| e.into_failure(target));
            }
            Err(_) => {
                let look = timeout(LOOK_MAX, request(target, Method::GET, FOLDS_PATH, "")).await;
                // What is not known is not shown. The fold goes on.
                if let Ok(Ok(folds)) = look
                    && let Some(progress) = progress_of(&folds, &watch)
                {
                    line.show(&progress);
                }
            }
        }
    }
}

/// What a node says of the fold with this word; none before it begins.
fn progress_of(folds: &Value, watch: &str) -> Option<String> {
    let fold = folds["folds"].as_array()?.iter().find(|fold| fold["watch"] == watch)?;
    let partitions = fold["partitions"].as_u64().filter(|partitions| *partitions > 0)?;
    let secs = fold["elapsed_ms"].as_u64()? / 1_000;
    Some(format!("{} of {partitions} partitions are done after {secs} s", fold["partitions_done"].as_u64()?))
}

/// The line on standard error. On a terminal each text takes the place of the one before.
struct Line {
    is_terminal: bool,
    shown: String,
}

impl Line {
    /// Moves to the begin of a line and clears it.
    const AGAIN: &str = "\r\x1b[K";

    fn show(&mut self, text: &str) {
        if text == self.shown {
            return;
        }
        text.clone_into(&mut self.shown);
        let (begin, end) = if self.is_terminal { (Self::AGAIN, "") } else { ("", "\n") };
        write(&format!("{begin}{text}{end}"));
    }

    /// The fold has ended. Its time is told if somebody wants to know.
    fn end(&mut self, is_told: bool, took: Duration) {
        if self.is_terminal && !self.shown.is_empty() {
            write(Self::AGAIN);
        }
        if is_told {
            write(&format!("the fold has ended after {:.1} s\n", took.as_secs_f64()));
        }
    }
}

/// The result says what counts, so it is no failure if this is not read.
fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_is_known_by_its_word() {
        let fold = |watch, partitions: u32| json!({ "watch": watch, "partitions": partitions, "partitions_done": 7, "elapsed_ms": 3_900 });
        let folds = json!({ "folds": [fold("other", 8), fold("mine", 64)] });
        let expected = "7 of 64 partitions are done after 3 s";
        assert_eq!(progress_of(&folds, "mine").as_deref(), Some(expected));
        assert_eq!(progress_of(&folds, "nobody's"), None);
        assert_eq!(progress_of(&json!({ "folds": [fold("mine", 0)] }), "mine"), None, "it has not begun");
    }
}
