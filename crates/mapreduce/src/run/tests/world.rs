//! A world that carries out orders.

use super::*;
use crate::term::order;
use std::collections::{BTreeMap, HashMap};

/// What a job gave: the results of each kept phase, sorted.
type Results = BTreeMap<usize, Vec<Term>>;

pub struct World<'a> {
    job: &'a Job,
    keys: Vec<Input>,
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    limits: RunLimits,
    losses_left: u32,
    /// The most parts that ran at the same time.
    pub parts_at_once: usize,
}

const SHARES: u32 = 3;

/// How many attempts a world loses.
pub const LOSSES_MAX: u32 = 50;

impl<'a> World<'a> {
    pub fn new(job: &'a Job, keys: Vec<Input>, choices: &'a [u8], limits: RunLimits) -> Self {
        Self { job, keys, choices: choices.iter().cycle(), limits, losses_left: LOSSES_MAX, parts_at_once: 0 }
    }

    fn choose(&mut self, count: usize) -> usize {
        usize::from(*self.choices.next().unwrap()) % count.max(1)
    }

    /// Runs the job to its end.
    pub fn run(&mut self, by_shares: bool) -> Results {
        let source = if by_shares { Source::Shares(SHARES) } else { Source::Keys };
        let mut run = JobRun::new(self.job, source, self.limits);
        let mut left = if by_shares { Vec::new() } else { self.keys.clone() };
        let mut pending: Vec<Order> = Vec::new();
        let mut late: Vec<(Attempt, Vec<Term>)> = Vec::new();
        let mut results = Results::new();
        for _ in 0..100_000 {
            while let Some(order) = run.next_order() {
                match order {
                    Order::Give { phase, values } => results.entry(phase).or_default().extend(values),
                    Order::End(result) => {
                        assert_eq!(result, Ok(()));
                        assert!(pending.is_empty(), "{pending:?}");
                        results.values_mut().for_each(|values| values.sort_by(order_of));
                        return results;
                    }
                    order => pending.push(order),
                }
            }
            let running = pending.iter().filter(|order| matches!(order, Order::Run { .. })).count();
            self.parts_at_once = self.parts_at_once.max(running);
            if !by_shares && run.wants_keys() && (pending.is_empty() || self.choose(2) == 0) {
                match left.len() {
                    0 => run.end_keys(),
                    some => {
                        let at = some - 1 - self.choose(some);
                        run.add_keys(left.split_off(at));
                    }
                }
                continue;
            }
            if let Some((attempt, values)) = late.pop() {
                run.part_done(attempt, values.into(), None);
                continue;
            }
            assert!(!pending.is_empty(), "the job waits for nothing");
            let chosen = self.choose(pending.len());
            self.answer(&mut run, pending.swap_remove(chosen), &mut late);
        }
        panic!("the job does not end");
    }

    fn answer(&mut self, run: &mut JobRun, order: Order, late: &mut Vec<(Attempt, Vec<Term>)>) {
        match order {
            Order::Run { attempt, work, from, map, prereduce } => {
                let (values, rest) = self.part(&work, from.as_ref(), map, prereduce);
                match self.choose(4) {
                    0 if self.losses_left > 0 => {
                        self.losses_left -= 1;
                        run.part_lost(attempt, "it is down");
                        late.push((attempt, values));
                    }
                    1 => {
                        run.part_done(attempt, values.clone().into(), rest.clone());
                        run.part_done(attempt, values.into(), rest);
                    }
                    _ => run.part_done(attempt, values.into(), rest),
                }
            }
            Order::Reduce { phase, values } => {
                run.reduced(phase, Ok(call(&self.job.phases[phase], Values::concat(values)).into()));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Some of the results of a part, and where the rest begins.
    fn part(
        &mut self,
        work: &Work,
        from: Option<&Bytes>,
        map: Option<usize>,
        prereduce: Option<usize>,
    ) -> (Vec<Term>, Option<Bytes>) {
        let keys: Vec<Input> = match work {
            Work::Keys(keys) => keys.clone(),
            Work::Share(share) => self.keys.iter().filter(|key| share_of(key) == *share).cloned().collect(),
        };
        let begin: usize = from.map_or(0, |from| String::from_utf8(from.to_vec()).unwrap().parse().unwrap());
        let end = keys.len().min(begin + 1 + self.choose(keys.len() + 1));
        let mut values: Vec<Term> = keys[begin.min(end)..end].iter().flat_map(|key| mapped(key, map)).collect();
        if let Some(phase) = prereduce {
            values = call(&self.job.phases[phase], values);
        }
        (values, (end < keys.len()).then(|| Bytes::from(end.to_string())))
    }

    /// The results of the plain calculation.
    pub fn expected(&self) -> Results {
        let mut results = Results::new();
        let mut values: Vec<Term> = self.keys.iter().map(Input::to_term).collect();
        if self.job.phases.is_empty() {
            results.insert(0, values.clone());
        }
        for (index, phase) in self.job.phases.iter().enumerate() {
            values = match phase {
                Phase::Reduce { .. } => call(phase, values),
                _ => values.iter().flat_map(|value| mapped(&Input::from_term(value).unwrap(), Some(index))).collect(),
            };
            if phase.keep() {
                results.insert(index, values.clone());
            }
        }
        results.values_mut().for_each(|values| values.sort_by(order_of));
        results.retain(|_, values| !values.is_empty());
        results
    }
}

fn order_of(a: &Term, b: &Term) -> std::cmp::Ordering {
    order(a, b)
}

fn share_of(key: &Input) -> u32 {
    u32::from(*key.key.last().unwrap()) % SHARES
}

/// Each key gives none, one or two keys, so that any phase may follow.
fn mapped(key: &Input, map: Option<usize>) -> Vec<Term> {
    let Some(map) = map else { return vec![key.to_term()] };
    let next = |n: usize| {
        let mut name = key.key.to_vec();
        name.push(b'0' + (map + n) as u8);
        Input::new(key.bucket.clone(), Bytes::from(name)).to_term()
    };
    (0..usize::from(*key.key.last().unwrap()) % 3).map(next).collect()
}

fn call(phase: &Phase, values: Vec<Term>) -> Vec<Term> {
    match phase {
        Phase::Reduce { function: Reducer::Native(function), .. } => {
            function.call(values, &Term::atom("none"), || ()).unwrap()
        }
        // A function that may be called only once: it counts calls.
        Phase::Reduce { .. } => {
            let mut seen: HashMap<String, i64> = HashMap::new();
            values.iter().for_each(|value| *seen.entry(value.to_string()).or_default() += 1);
            vec![Term::Int(seen.values().sum::<i64>() * 1000 + 1)]
        }
        other => panic!("{other:?}"),
    }
}
