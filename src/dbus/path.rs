//! Object paths, and the way back from a job's path to its id.

use zbus::{ObjectPath, OwnedObjectPath};

use crate::model::{InstanceUuid, JobId, ParentAddr};

/// Where the manager and the object manager are.
pub const ROOT: &str = "/org/mdevirt1";

const JOB: &str = "/org/mdevirt1/job/";

/// `/org/mdevirt1/job/<id with _ for ->`.
pub fn of_job(id: JobId) -> OwnedObjectPath {
    valid(format!("{JOB}{}", id.to_string().replace('-', "_")))
}

/// `/org/mdevirt1/instance/<uuid with _ for ->`.
pub fn of_instance(uuid: InstanceUuid) -> OwnedObjectPath {
    valid(format!("{ROOT}/instance/{}", uuid.to_string().replace('-', "_")))
}

/// `/org/mdevirt1/parent/<escaped address>`; `sd_bus_path_decode` and its like give the address back.
///
/// # Source
/// sd_bus_path_encode(3): a digit in front and everything that is no ASCII letter or digit becomes `_` and two
/// hexadecimal digits.
pub fn of_parent(addr: &ParentAddr) -> OwnedObjectPath {
    let mut path = format!("{ROOT}/parent/");
    for (at, byte) in addr.to_string().bytes().enumerate() {
        if byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit()) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    valid(path)
}

/// The job of a path that [`of_job`] made.
pub fn job_of(path: &ObjectPath<'_>) -> Option<JobId> {
    path.as_str().strip_prefix(JOB)?.replace('_', "-").parse().ok()
}

/// The root stands in for a path that cannot be: each part above is letters, digits and `_` by construction.
fn valid(path: String) -> OwnedObjectPath {
    OwnedObjectPath::try_from(path).unwrap_or_else(|_| ObjectPath::from_static_str_unchecked(ROOT).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_legal_and_distinct() {
        let uuid = "e38f8857-e8ba-4559-b696-d9c39e499710";
        assert_eq!(
            of_job(uuid.parse().unwrap()).as_str(),
            "/org/mdevirt1/job/e38f8857_e8ba_4559_b696_d9c39e499710"
        );
        assert_eq!(
            of_instance(uuid.parse().unwrap()).as_str(),
            "/org/mdevirt1/instance/e38f8857_e8ba_4559_b696_d9c39e499710"
        );
        for (addr, tail) in [
            ("0000:84:00.0", "_30000_3a84_3a00_2e0"),
            ("mtty_mtty", "mtty_5fmtty"),
            ("ap-matrix.x", "ap_2dmatrix_2ex"),
        ] {
            let path = of_parent(&addr.parse().unwrap());
            assert_eq!(path.as_str(), format!("/org/mdevirt1/parent/{tail}"));
        }
    }

    #[test]
    fn a_job_comes_back_from_its_path() {
        let id: JobId = "e38f8857-e8ba-4559-b696-d9c39e499710".parse().unwrap();
        assert_eq!(job_of(&of_job(id)), Some(id));
        for other in ["/org/mdevirt1", "/org/mdevirt1/job/x", "/org/mdevirt1/instance/e38f8857"] {
            assert_eq!(job_of(&ObjectPath::try_from(other).unwrap()), None, "{other}");
        }
    }
}
