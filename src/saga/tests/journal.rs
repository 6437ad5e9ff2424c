//! Journals that cannot be followed: stuck with the reason, nothing done.

use super::house::*;
use super::world::*;
use crate::model::{FaultKind, SagaState};
use crate::saga::Ending;
use crate::store::tests::fixture::sql;

async fn stuck_on(house: &House) -> String {
    let Ending::Stuck(fault) = house.resume().await.unwrap() else { panic!("not stuck") };
    assert_eq!(fault.kind, FaultKind::OperationStuck);
    assert_eq!(house.saga().state, SagaState::Stuck);
    assert_eq!(house.world.log.lock().unwrap().len(), 0, "the host was not touched");
    assert_eq!(house.seen.all().len(), 1, "only the end was shown");
    fault.message
}

async fn crashed(statement: &str) -> House {
    let mut house = House::begun();
    house.die_at("spawn.define.before_effect", false).await;
    house.world.log.lock().unwrap().clear();
    house.seen = Recorder::new();
    sql(house.store(), statement);
    house
}

#[tokio::test]
async fn a_damaged_journal_is_stuck_with_a_reason() {
    for (statement, reason) in [
        (
            "UPDATE saga_event SET name = 'format' WHERE name = 'define'",
            "step 2 is \"format\", not \"define\"",
        ),
        ("UPDATE saga_event SET step = 9 WHERE name = 'define'", "step 9 is \"define\", not \"\""),
        ("DELETE FROM saga_event WHERE seq = 2", "line 3 follows line 1"),
        ("UPDATE saga_event SET event = 'undone' WHERE seq = 2", "event undone after Running"),
        ("UPDATE saga_event SET event = 'finished' WHERE seq = 2", "unknown word"),
        ("UPDATE saga_event SET payload = '{' WHERE seq = 2", "payload"),
        ("UPDATE saga SET version = 2", "it is spawn version 2, the script is spawn version 1"),
        ("UPDATE saga SET op = 'claim'", "it is claim version 1, the script is spawn version 1"),
        ("UPDATE saga SET state = 'unwinding'", "it unwinds and no step failed"),
    ] {
        let house = crashed(statement).await;
        let message = stuck_on(&house).await;
        assert!(message.contains(reason), "{statement}: {message}");
        assert_eq!(house.world.effects(), STEPS[..2], "what is there stays for the operator");
    }
}

#[tokio::test]
async fn giving_up_is_on_disk() {
    let house = House::begun();
    house.runner().give_up(job(), "its domain XML cannot be read").await.unwrap();
    let result = house.saga().result.unwrap();
    assert!(result["message"].as_str().unwrap().contains("its domain XML cannot be read"), "{result}");
    // What has ended cannot be run.
    assert!(house.run().await.is_err());
    assert_eq!(house.saga().state, SagaState::Stuck);
}
