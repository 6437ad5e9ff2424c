//! What is left to do for a device to be there, from what is there.

use crate::host::HostError;
use crate::model::{Mdev, NewMdev, TypeId};

/// What is to be done for a device to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It is there.
    Nothing,
    /// It is active and has no definition.
    Define,
    /// It is defined here and nowhere else.
    Start,
    /// It is defined here and elsewhere, so it cannot be named by its UUID.
    MakeDefined,
    /// There is nothing of it.
    Make,
}

/// Decides from all devices with the UUID.
///
/// # Errors
/// `Refused` if the UUID belongs to another device.
pub(super) fn next(found: &[Mdev], new: &NewMdev) -> Result<Next, HostError> {
    let taken = |mdev: &Mdev, how: &str| {
        let (uuid, parent) = (mdev.uuid, &mdev.parent);
        let type_id = mdev.type_id.as_ref().map_or("of unknown type", TypeId::as_str);
        Err(HostError::Refused(format!(
            "mdev {uuid} is {how} on {parent} ({type_id}); take another UUID or remove it"
        )))
    };
    let (here, elsewhere): (Vec<&Mdev>, Vec<&Mdev>) =
        found.iter().partition(|mdev| mdev.parent == new.parent);
    if let Some(active) = elsewhere.iter().find(|mdev| mdev.active) {
        return taken(active, "active");
    }
    match (here.first(), elsewhere.first()) {
        (None, None) => Ok(Next::Make),
        (None, Some(other)) => taken(other, "defined"),
        (Some(mdev), _) if mdev.type_id.as_ref() != Some(&new.type_id) => taken(mdev, "there already"),
        (Some(mdev), _) if mdev.active && mdev.defined => Ok(Next::Nothing),
        (Some(mdev), _) if mdev.active => Ok(Next::Define),
        (Some(_), None) => Ok(Next::Start),
        (Some(_), Some(_)) => Ok(Next::MakeDefined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DeviceApi;

    fn seen(parent: &str, type_id: Option<&str>, active: bool, defined: bool) -> Mdev {
        Mdev {
            uuid: "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap(),
            parent: parent.parse().unwrap(),
            type_id: type_id.map(|id| id.parse().unwrap()),
            active,
            defined,
            parent_missing: false,
            iommu_group: None,
        }
    }

    #[test]
    fn what_is_there_decides_what_is_done() {
        let (a, b, kind) = ("0000:3b:00.0", "0000:86:00.0", Some("nvidia-231"));
        let new = NewMdev {
            uuid: "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap(),
            parent: a.parse().unwrap(),
            type_id: "nvidia-231".parse().unwrap(),
            device_api: DeviceApi::VfioPci,
        };
        let done = |found: &[Mdev]| next(found, &new).unwrap();
        assert_eq!(done(&[]), Next::Make);
        assert_eq!(done(&[seen(a, kind, true, true)]), Next::Nothing);
        assert_eq!(done(&[seen(a, kind, true, false)]), Next::Define);
        assert_eq!(done(&[seen(a, kind, false, true)]), Next::Start);
        assert_eq!(done(&[seen(a, kind, false, true), seen(b, kind, false, true)]), Next::MakeDefined);
        assert_eq!(done(&[seen(a, kind, true, true), seen(b, kind, false, true)]), Next::Nothing);
        for other in [
            vec![seen(b, kind, true, false)],
            vec![seen(a, kind, false, true), seen(b, kind, true, true)],
            vec![seen(b, kind, false, true)],
            vec![seen(a, Some("nvidia-232"), true, true)],
            vec![seen(a, None, true, true)],
        ] {
            let refused = next(&other, &new).unwrap_err();
            let text = refused.to_string();
            assert!(matches!(refused, HostError::Refused(_)) && text.contains("1fc01460"), "{text}");
        }
    }
}
