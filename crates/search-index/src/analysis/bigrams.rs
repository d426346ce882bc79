//! Pairs of characters, for scripts without spaces between words.

use super::chain::Token;
use super::standard::is_cjk;

/// The pieces of a run of characters, from a position on: for a document each character and each
/// pair that begins with it; for a query the pairs, or the only character. The position behind
/// them.
pub(super) fn pieces_of_run(run: &[char], from: u32, is_document: bool, tokens: &mut Vec<Token>) -> u32 {
    let mut position = from;
    for at in 0..run.len() {
        let pair = run.get(at..at + 2);
        if is_document || run.len() == 1 {
            tokens.push(Token::new(run[at].to_string(), position));
        }
        if let Some(pair) = pair {
            tokens.push(Token::new(pair.iter().collect(), position));
        }
        position += 1;
    }
    position
}

/// Lucene's filter: characters of Chinese, Japanese and Korean with nothing between them become
/// pairs. One alone stays as it is. Other words stay too.
pub(super) fn pairs(tokens: Vec<Token>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut run: Vec<char> = Vec::new();
    let mut next = 0;
    let mut last_position = None;
    for token in tokens {
        let is_piece = !token.text.is_empty() && token.text.chars().all(is_cjk_or_hangul);
        let is_next = token.is_joined && last_position.is_none_or(|last| token.position == last + 1);
        let goes_on = is_piece && is_next;
        if !run.is_empty() && !goes_on {
            next = push_pairs(&run, next, &mut out);
            run.clear();
        }
        if let Some(last) = last_position {
            // A word that was taken out leaves its place free.
            next += token.position.saturating_sub(last + 1);
        }
        last_position = Some(token.position);
        if is_piece {
            run.extend(token.text.chars());
        } else {
            out.push(Token::new(token.text, next));
            next += 1;
        }
    }
    push_pairs(&run, next, &mut out);
    out
}

fn push_pairs(run: &[char], from: u32, out: &mut Vec<Token>) -> u32 {
    if let [only] = run {
        out.push(Token::new(only.to_string(), from));
        return from + 1;
    }
    let mut position = from;
    for pair in run.windows(2) {
        out.push(Token::new(pair.iter().collect(), position));
        position += 1;
    }
    position
}

fn is_cjk_or_hangul(c: char) -> bool {
    is_cjk(c)
        || matches!(c, '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7a3}' | '\u{ffa0}'..='\u{ffdc}')
}
