//! What a guest, or somebody with `virsh`, does to our domain in the middle of an operation.

use mdevirt::host::Hypervisor;
use mdevirt::model::{OpKind, SagaState};

use crate::case::{Case, vm};
use crate::run::{Course, Run};

/// At every point the domain, if there is one, is switched from off to on or from on to off.
pub fn guest_moves(case: Case) {
    let course = Course::of(case);
    for point in course.forward() {
        let run = Run::up_to(case, "the guest moves", &point, |_| ());
        let there = run.on(async |world| {
            let domain = world.sim.domain(vm()).await.unwrap();
            match &domain {
                Some(domain) if domain.running => world.sim.stop(vm()).await.unwrap(),
                // It fails where its device is not there.
                Some(_) => drop(world.sim.start(vm()).await),
                None => {}
            }
            domain.is_some()
        });
        run.release(&point);
        if !there {
            run.settles(&course, &[SagaState::Done]);
            continue;
        }
        let (job, end) = run.at_rest();
        match job.state {
            SagaState::Done | SagaState::Failed => {
                let mut odds = end.odds(&run.others);
                // Somebody who starts it from its saved memory has it without what was detached for that.
                odds.retain(|odd| case.op != OpKind::Suspend || !odd.contains(" names {}, booked are "));
                assert_eq!(odds, [""; 0], "{point}");
            }
            SagaState::Stuck => run.give_back(),
            SagaState::Running | SagaState::Unwinding => panic!("{point}: it is left open"),
        }
    }
}
