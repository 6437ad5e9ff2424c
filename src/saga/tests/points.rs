//! Fail points as text.

use crate::saga::FailPoints;

#[test]
fn nonsense_is_named() {
    for (text, word) in [
        ("spawn.create_device.0.after_effect", "point=action"),
        ("spawn.define.after_effect=explode", "fail point action"),
        ("spawn.define.sometime=abort", "fail point moment"),
        ("define=abort", "op.step.moment"),
        ("spawn.define.after_effect=error@0", "number from 1"),
        ("spawn.define.after_effect=error@x", "number from 1"),
    ] {
        let err = text.parse::<FailPoints>().unwrap_err().to_string();
        assert!(err.contains(word), "{text}: {err}");
    }
    assert!("".parse::<FailPoints>().is_ok());
}

#[tokio::test]
async fn the_second_time_only() {
    let mut house = super::house::House::begun();
    house.points = std::sync::Arc::new(
        " spawn.create_device.0.after_effect=pause@7; spawn.define.before_effect=unknown@2 ;"
            .parse::<FailPoints>()
            .unwrap(),
    );
    house.points.arm("spawn.define.after_effect", crate::saga::Action::Unknown, Some(1));
    house.world.next_seen.lock().unwrap().insert("define".into(), crate::saga::Seen::Absent);
    let (end, ()) = tokio::join!(house.run(), async {
        house.seen.until_waiting().await;
        house.wake.ring();
    });
    end.unwrap();
    house.assert_complete();
    // The answer of the first try was lost, the second try did not come to pass, the last look found the effect.
    assert_eq!(house.world.count("run define"), 1);
    assert_eq!(house.world.count("seen define"), 2);
}
