//! Content negotiation: which of the offered media types a client accepts, and whether it accepts
//! gzip.
//!
//! The rules are those of Riak's web server. The client's entries are tried in the order of their
//! weights; among equal weights, the last one in the header is tried first. The first entry that
//! matches an offer wins. Parameters other than `q` are ignored.

/// The index of the offer that suits the client best. `None` if the client accepts none of them.
pub fn choose(accept: Option<&[u8]>, offers: &[impl AsRef<[u8]>]) -> Option<usize> {
    let Some(accept) = accept.map(String::from_utf8_lossy).filter(|a| !a.trim().is_empty()) else {
        return (!offers.is_empty()).then_some(0);
    };
    // Most clients send this value. It accepts every media type.
    if accept == "*/*" {
        return (!offers.is_empty()).then_some(0);
    }
    let mut wanted = weighted(&accept);
    wanted.retain(|(_, weight)| *weight > 0);
    wanted.reverse();
    wanted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    wanted.iter().find_map(|(range, _)| offers.iter().position(|offer| matches(range, offer.as_ref())))
}

/// Whether the client accepts gzip and does not prefer the uncompressed form.
pub fn wants_gzip(accept_encoding: Option<&[u8]>) -> bool {
    let Some(accept) = accept_encoding.map(String::from_utf8_lossy) else { return false };
    let entries = weighted(&accept);
    let weight = |name: &str| entries.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, w)| *w);
    weight("gzip").is_some_and(|gzip| gzip > 0 && gzip >= weight("identity").unwrap_or(0))
}

/// The entries of a header with their weights in thousandths, in the order of the header.
fn weighted(header: &str) -> Vec<(&str, u16)> {
    header
        .split(',')
        .filter_map(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            let name = parts.next().filter(|n| !n.is_empty())?;
            let weight = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
            let weight = weight.and_then(|w| w.parse::<f32>().ok()).unwrap_or(1.0);
            Some((name, (weight.clamp(0.0, 1.0) * 1000.0) as u16))
        })
        .collect()
}

fn matches(range: &str, offer: &[u8]) -> bool {
    let offer = offer.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
    if range == "*/*" || range == "*" {
        return true;
    }
    match range.strip_suffix("/*") {
        Some(family) => {
            let own = offer.split(|&b| b == b'/').next().unwrap_or_default();
            own.eq_ignore_ascii_case(family.as_bytes())
        }
        None => offer.eq_ignore_ascii_case(range.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIBLINGS: [&[u8]; 2] = [b"text/plain", b"multipart/mixed"];

    #[test]
    fn the_heaviest_matching_entry_wins() {
        assert_eq!(choose(None, &SIBLINGS), Some(0));
        assert_eq!(choose(Some(b"*/*"), &SIBLINGS), Some(0));
        assert_eq!(choose(Some(b"multipart/mixed"), &SIBLINGS), Some(1));
        assert_eq!(choose(Some(b"multipart/mixed, application/json, */*;q=0.5"), &SIBLINGS), Some(1));
        assert_eq!(choose(Some(b"multipart/mixed;q=0.4, text/*;q=0.5"), &SIBLINGS), Some(0));
        assert_eq!(choose(Some(b"application/json"), &SIBLINGS), None);
        assert_eq!(choose(Some(b"text/plain;q=0"), &SIBLINGS), None);
        assert_eq!(choose(Some(b"application/json"), &[b"application/json; charset=utf-8"]), Some(0));
        assert_eq!(choose(Some(b"\xff,;;q=x"), &SIBLINGS), None);
    }

    #[test]
    fn of_entries_of_equal_weight_the_last_wins() {
        assert_eq!(choose(Some(b"*/*, multipart/mixed"), &SIBLINGS), Some(1));
        assert_eq!(choose(Some(b"multipart/mixed, */*"), &SIBLINGS), Some(0));
        assert_eq!(choose(Some(b"multipart/mixed, text/plain"), &SIBLINGS), Some(0));
        assert_eq!(choose(Some(b"text/plain;q=0.5, multipart/mixed;q=0.5, application/json"), &SIBLINGS), Some(1));
        assert_eq!(choose(Some(b"multipart/mixed, text/plain;q=0.9"), &SIBLINGS), Some(1));
    }

    #[test]
    fn gzip_has_to_be_asked_for() {
        assert!(wants_gzip(Some(b"gzip, deflate")));
        assert!(wants_gzip(Some(b"identity;q=0.5, gzip")));
        assert!(!wants_gzip(Some(b"identity, gzip;q=0.5")));
        assert!(!wants_gzip(Some(b"gzip;q=0")));
        assert!(!wants_gzip(Some(b"*")));
        assert!(!wants_gzip(None));
    }
}
