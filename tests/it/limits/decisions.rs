//! Decisions that a hostile site makes slow.

use tokio::task::JoinSet;

use super::{Gate, Origin, Response, allowed};
use crate::support::refused;

const RULES: usize = 1000;
/// A little less than the maximum length of a request target.
const LENGTH: usize = 16_000;

/// Returns pseudo-random letters (xorshift). The same seed gives the same letters.
fn letters(seed: u64, count: usize) -> String {
    let mut state = seed;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state >> 63 == 0 { 'a' } else { 'b' }
    };
    (0..count).map(|_| letter()).collect()
}

/// Returns rules that do not match `slow_path`. To find that out, robotgate has to search the whole path for each rule.
pub fn slow_rules() -> String {
    let rules = (1..=RULES as u64).map(|number| format!("Disallow: /*{}\n", letters(number << 20 | 1, 40)));
    format!("User-agent: *\n{}", rules.collect::<String>())
}

/// Returns a path that takes too long to decide by [`slow_rules`].
pub fn slow_path() -> String {
    format!("/{}", letters(u64::MAX / 3, LENGTH))
}

fn is_refused_in_time(response: &Response) {
    match response.status {
        503 => assert!(response.field("Retry-After").is_some(), "{response:#?}"),
        _ => drop(refused(response, "too-complex")),
    }
}

#[tokio::test]
async fn a_decision_over_its_budget_is_refused_as_too_complex() {
    let origin = Origin::start().robots(&slow_rules()).anything("page").spawn().await;
    let gate = Gate::start().await;
    let path = slow_path();

    let response = gate.get(&origin.url(&path)).await;

    refused(&response, "too-complex");
    assert_eq!(response.reason, "Disallowed: robots.txt is too complex for this URL");
    assert_eq!(origin.count(&path), 0);
    let (decisions, _) = gate.audited(1).await;
    assert_eq!(
        (&decisions[0]["verdict"], &decisions[0]["reason"]),
        (&"deny".into(), &"too-complex".into())
    );
    allowed(&gate.get(&origin.url("/short")).await, "no-rule");
}

#[tokio::test]
async fn an_attack_on_one_site_does_not_delay_clients_of_another() {
    // Send more attacks than can be decided at the same time, regardless of the number of cores.
    let attacks_made = 20 * std::thread::available_parallelism().map_or(1, usize::from);
    let hostile = Origin::start().robots(&slow_rules()).anything("page").spawn().await;
    let rules: String = (0..600)
        .map(|number| format!("Disallow: /*/item-{number}*sort=\n"))
        .collect();
    let honest = Origin::start()
        .robots(&format!("User-agent: *\n{rules}"))
        .anything("page")
        .spawn()
        .await;
    let gate = Gate::start().await;
    let long_path = format!("/shop?q={}", "word+".repeat(1000));
    // Fetch both robots.txt files first.
    allowed(&gate.get(&hostile.url("/short")).await, "no-rule");
    allowed(&gate.get(&honest.url("/short")).await, "no-rule");

    let path = slow_path();
    let mut attacks = JoinSet::new();
    for _ in 0..attacks_made {
        attacks.spawn(gate.get(&hostile.url(&path)).send());
    }
    let first = attacks.join_next().await.expect("there are attacks");
    for _ in 0..3 {
        allowed(&gate.get(&honest.url(&long_path)).await, "no-rule");
    }
    // robotgate decides only a few attacks at the same time, so most of them have not been decided yet. An attack that
    // got a 503 waited too long and was not decided.
    let ended = std::iter::from_fn(|| attacks.try_join_next()).chain([first]);
    let ended: Vec<_> = ended
        .map(|attack| attack.expect("no panic").expect("an answer"))
        .collect();
    let decided = ended.iter().filter(|attack| attack.status != 503).count();
    assert!(
        decided < attacks_made / 2,
        "{decided} of {attacks_made} attacks were decided first"
    );

    let others = attacks
        .join_all()
        .await
        .into_iter()
        .map(|attack| attack.expect("an answer"));
    for attack in ended.into_iter().chain(others) {
        is_refused_in_time(&attack);
    }
    assert_eq!(hostile.count(&path), 0);
}
