//! The process itself dies at a fail point, as by SIGKILL; what it left is settled by the next one.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use super::house::*;
use super::world::*;
use crate::model::SagaState;
use crate::saga::{FailPoints, Runner};
use crate::store::tests::fixture;

const DIR: &str = "MDEVIRT_TEST_DIR";

#[tokio::test]
#[ignore = "started by the_process_dies_anywhere, in a process of its own"]
async fn child() {
    let dir = std::env::var(DIR).unwrap();
    let points = FailPoints::from_environment().unwrap();
    let house = House::at(tempfile::tempdir().unwrap());
    let store = Arc::new(fixture::open(Path::new(&dir)));
    store.begin(begin()).unwrap();
    let world = Arc::new(World::new(&Path::new(&dir).join("world")));
    let runner = Runner::new(store, Arc::default(), Arc::default(), Arc::new(points));
    let end = runner.run(job(), &script(&world), &house.seen).await;
    unreachable!("it has to die before it ends: {end:?}");
}

#[allow(clippy::disallowed_methods, reason = "this test starts itself")]
fn die_in(dir: &Path, points: &str) {
    let starting = fixture::STARTING.write();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["saga::tests::kill::child", "--exact", "--ignored", "--nocapture"])
        .env(DIR, dir)
        .env(FailPoints::VARIABLE, points)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(starting);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.signal(), Some(6), "{points}: {}: {text}", output.status);
}

#[tokio::test]
async fn the_process_dies_anywhere() {
    let moments = ["before_effect", "after_effect", "before_commit", "after_commit"];
    let forward = ["create_device.1", "start"]
        .iter()
        .flat_map(|step| moments.iter().map(move |moment| format!("spawn.{step}.{moment}=abort")));
    let back = ["before_undo", "after_undo"]
        .iter()
        .map(|moment| format!("spawn.define.before_effect=error; spawn.create_device.1.{moment}=abort@1"));
    for points in forward.chain(back) {
        let dir = tempfile::tempdir().unwrap();
        die_in(dir.path(), &points);
        let house = House::at(dir);
        let unwinding = house.saga().state == SagaState::Unwinding;
        assert_eq!(unwinding, points.contains("undo"), "{points}");
        house.resume().await.unwrap();
        if unwinding { house.assert_untouched() } else { house.assert_complete() }
    }
}
