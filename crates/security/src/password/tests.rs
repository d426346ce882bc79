//! Tests of stored passwords.

use super::*;
use std::time::{Duration, Instant};

const SALT: [u8; 16] = *b"sixteen bytes!!!";

/// RFC 6070, test vectors 1, 2, 3 and 5. The salt of the first three is shorter than that of any
/// record, so they are not given as text.
#[test]
fn pbkdf2_has_the_hashes_of_rfc_6070() {
    let vector_5 = format!(
        "$pbkdf2-sha1$i=4096${}${}",
        hex(b"saltSALTsaltSALTsaltSALTsaltSALTsalt"),
        "3d2eec4fe41c849b80c8d83662c0e44a8b291a96"
    );
    let stored = StoredPassword::from_text(&vector_5).unwrap();
    assert!(stored.matches(b"passwordPASSWORDpassword"));
    assert!(!stored.matches(b"passwordPASSWORDpasswore") && !stored.matches(b""));
    assert_eq!(stored.to_text(), vector_5);
    for (iterations, hash) in [
        (1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
        (2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
        (4096, "4b007901b765489abead49d926f721d065a429c1"),
    ] {
        let method = Method::Pbkdf2Sha1 { iterations: NonZeroU32::new(iterations).unwrap() };
        let stored = StoredPassword { method, salt: (*b"salt").into(), hash: from_hex(hash).unwrap().into() };
        assert!(stored.matches(b"password") && !stored.matches(b"Password"), "{iterations}");
    }
}

/// The version of Riak's defaults: 65,536 iterations and a salt of 16 bytes. Computed with Python:
/// `hashlib.pbkdf2_hmac("sha1", b"secret", bytes(range(16)), 65536)`.
#[test]
fn a_hash_as_riak_makes_it_is_read() {
    let text = "$pbkdf2-sha1$i=65536$000102030405060708090a0b0c0d0e0f$739b1decbcb89fa9cfd86f63344c481cabd677d1";
    let stored = StoredPassword::from_text(text).unwrap();
    assert!(stored.matches(b"secret") && !stored.matches(b"Secret"));
    assert_eq!(stored.digits(), text.rsplit('$').next().unwrap());
}

/// The test vector of the reference implementation of argon2 (`test.c`, argon2id, version 19).
#[test]
fn argon2id_has_the_hash_of_the_reference_implementation() {
    let text = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    let stored = StoredPassword::from_text(text).unwrap();
    assert!(stored.matches(b"password") && !stored.matches(b"passwore"));
    assert_eq!((stored.to_text().as_str(), stored.memory_kib()), (text, 19 * 1024));
}

#[test]
fn a_new_hash_matches_its_password_and_no_other() {
    let stored = StoredPassword::new_argon2id("pässword".as_bytes(), SALT).unwrap();
    assert!(stored.matches("pässword".as_bytes()) && !stored.matches(b"password"));
    assert_eq!(StoredPassword::from_text(&stored.to_text()), Ok(stored.clone()));
    assert_eq!((stored.method(), stored.memory_kib(), stored.digits().len()), ("argon2id", 19 * 1024, 40));
    let other = StoredPassword::new_argon2id("pässword".as_bytes(), *b"another salt!!!!").unwrap();
    assert_ne!(other.hash, stored.hash);
}

#[test]
fn passwords_are_bounded() {
    let longest = vec![b'x'; PASSWORD_BYTES_MAX];
    let stored = StoredPassword::new_argon2id(&longest, SALT).unwrap();
    assert!(stored.matches(&longest));
    assert!(!stored.matches(&[&longest[..], b"x"].concat()));
    for bad in [vec![], vec![b'x'; PASSWORD_BYTES_MAX + 1]] {
        assert_eq!(StoredPassword::new_argon2id(&bad, SALT), Err(BadPassword::Length));
    }
}

#[test]
fn a_stored_hash_that_would_cost_much_is_refused() {
    let salt_and_hash = "c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    let argon = |costs: &str| StoredPassword::from_text(&format!("$argon2id$v=19${costs}${salt_and_hash}")).is_ok();
    assert!(argon("m=65536,t=8,p=4") && argon("m=8,t=1,p=1"));
    for costs in [
        "m=65537,t=1,p=1",
        "m=4294967295,t=1,p=1",
        "m=1024,t=9,p=1",
        "m=1024,t=1,p=5",
        "m=7,t=1,p=1",
        "m=8,t=0,p=1",
        "m=8,t=1,p=0",
        "m=16,t=1,p=4",
        "m=1024,t=1",
        "m=1024,t=1,p=1,x=1",
        "m=+1024,t=1,p=1",
        "t=1,m=1024,p=1",
        "m=99999999999,t=1,p=1",
        "",
    ] {
        assert!(!argon(costs), "{costs}");
    }
    let (salt, hash) = ("00".repeat(16), "11".repeat(20));
    let pbkdf2 = |i: &str, salt: &str, hash: &str| {
        StoredPassword::from_text(&format!("$pbkdf2-sha1$i={i}${salt}${hash}")).is_ok()
    };
    assert!(pbkdf2("65536", &salt, &hash) && pbkdf2("1000000", &salt, &hash));
    for iterations in ["0", "1000001", "4294967296", "-1", "", "x"] {
        assert!(!pbkdf2(iterations, &salt, &hash), "{iterations}");
    }
    assert!(!pbkdf2("1", "00", &hash) && !pbkdf2("1", &"00".repeat(65), &hash));
    assert!(!pbkdf2("1", &salt, &"11".repeat(40)), "a long hash costs more");
    assert!(!pbkdf2("1", &salt, "zz".repeat(20).as_str()) && !pbkdf2("1", &salt, &"1".repeat(39)));
    for text in ["", "$", "secret", "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR", "$pbkdf2-sha1$i=1$$"] {
        assert_eq!(StoredPassword::from_text(text), Err(BadPassword::Stored));
    }
}

#[test]
fn secrets_are_not_shown() {
    let stored = StoredPassword::new_argon2id(b"a secret", SALT).unwrap();
    let shown = format!("{stored:?} {:?}", StoredPassword::from_text("$argon2id$v=19$a secret"));
    assert!(!shown.contains("secret") && !shown.contains(&stored.digits()[..8]), "{shown}");
    assert!(shown.starts_with("StoredPassword(argon2id) "));
}

#[test]
fn the_decoy_costs_as_much_as_a_new_password_and_matches_none() {
    let (stored, decoy) = (StoredPassword::new_argon2id(b"secret", SALT).unwrap(), StoredPassword::decoy());
    assert!(!decoy.matches(b"") && !decoy.matches(b"secret"));
    let lengths = |password: &StoredPassword| (password.memory_kib(), password.salt.len(), password.hash.len());
    assert_eq!(lengths(&decoy), lengths(&stored));
    // Even a password that has this hash does not match.
    let decoy = StoredPassword { method: Method::Decoy, ..stored };
    assert!(!decoy.matches(b"secret"));
    let real = StoredPassword::new_argon2id(b"secret", SALT).unwrap();
    assert!(fastest(&decoy, b"wrong") * 20 > fastest(&real, b"wrong"));
}

/// The shortest of five comparisons. Others use the processor too, so it finds out no more than
/// that a hash is computed at all.
fn fastest(stored: &StoredPassword, given: &[u8]) -> Duration {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        std::hint::black_box(stored.matches(given));
        start.elapsed()
    });
    times.min().unwrap()
}

/// Both hashes are cheap: they take less than a thousandth of the time of a new one.
#[test]
fn a_cheap_hash_takes_as_long_as_that_of_nobody() {
    let salt = "00".repeat(16);
    let mut hash = [0; 20];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA1, NonZeroU32::new(1).unwrap(), &[0; 16], b"secret", &mut hash);
    let of_riak = format!("$pbkdf2-sha1$i=1${salt}${}", hex(&hash));
    let mut hash = [0; 32];
    argon2id(8, 1, 1, &SALT, b"secret", &mut hash).unwrap();
    let method = Method::Argon2id { memory_kib: 8, passes: 1, lanes: 1 };
    let of_argon2 = StoredPassword { method, salt: SALT.into(), hash: hash.into() };
    let of_nobody = fastest(&StoredPassword::decoy(), b"secret");
    for stored in [StoredPassword::from_text(&of_riak).unwrap(), of_argon2] {
        assert!(stored.matches(b"secret") && !stored.matches(b"wrong"));
        for given in [&b"secret"[..], b"wrong"] {
            assert!(fastest(&stored, given) * 4 > of_nobody, "{stored:?}");
        }
    }
}
