//! Somebody else holds the state database longer than the store waits: the operation waits, and goes on by itself.

use mdevirt::model::{OpKind, SagaState};
use mdevirt::service::api::{Change, UseCases};

use crate::case::{Case, Given};
use crate::run::{Course, Run};
use crate::world::next;

#[expect(clippy::disallowed_methods, reason = "a backup tool does not know the product's way to open it")]
fn open(run: &Run) -> rusqlite::Connection {
    rusqlite::Connection::open(run.world().dir().join("state.db")).unwrap()
}

#[test]
fn an_operation_waits_for_the_database() {
    let course = Course::of(Case::of(OpKind::Spawn, 1, Given::Fresh));
    let point = "spawn.make_device.0.before_commit";
    let run = Run::up_to(course.case, "the database is held", point, |_| ());
    let backup = open(&run);
    backup.execute_batch("BEGIN IMMEDIATE").unwrap();
    run.on(async |world| {
        let mut changes = world.service().changes();
        world.points.release(point);
        // Told when the store has given up.
        while next(&mut changes).await != Some(Change::Status) {}
    });
    backup.execute_batch("ROLLBACK").unwrap();
    run.settles(&course, &[SagaState::Done]);
}
