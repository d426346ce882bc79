use super::*;
use crate::testing::actor;

#[test]
fn of_two_values_under_one_dot_the_larger_stays() {
    let dot = Dot::new(actor(0), 1);
    let (small, large) = (DotMap::of(dot.clone(), 1), DotMap::of(dot.clone(), 2));
    let clock = Clock::from_iter([&dot]);
    assert_eq!(small.join(&clock, &large, &clock), large);
    assert_eq!(large.join(&clock, &small, &clock), large);
}

#[test]
fn what_one_copy_has_seen_and_does_not_have_is_gone() {
    let dots = |counts: &[u64]| counts.iter().map(|count| (Dot::new(actor(0), *count), ())).collect::<Dots>();
    let clock = |count| Clock::from_iter([&Dot::new(actor(0), count)]);
    assert_eq!(dots(&[1, 2, 3]).join(&clock(3), &dots(&[1]), &clock(2)), dots(&[1, 3]));
    assert_eq!(dots(&[1]).join(&clock(2), &dots(&[1, 2, 3]), &clock(3)), dots(&[1, 3]));
}

#[test]
fn of_values_in_any_order_each_dot_has_the_largest() {
    let dot = |count| Dot::new(actor(0), count);
    let map: DotMap<u8> = [(dot(2), 1), (dot(1), 5), (dot(2), 3), (dot(1), 4)].into_iter().collect();
    assert_eq!(map.iter().map(|(dot, value)| (dot.count, *value)).collect::<Vec<_>>(), [(1, 5), (2, 3)]);
}
