//! What can be wrong with a document, and what callers make of it.

use crate::model::{Fault, FaultKind, Finding, FindingKind};

/// Why a document was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// Bytes that cannot be understood.
    #[error("malformed XML in {at}: {why}")]
    Malformed {
        /// Line and element path; `the document` where there is neither.
        at: String,
        /// What is wrong, without control characters.
        why: String,
    },
    /// Over a size, depth or count limit; reading stopped there.
    #[error("{what}: more than {limit}")]
    LimitExceeded {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Understood, but it would do harm or libvirt would refuse it.
    #[error("{about}: {why}")]
    Refused {
        /// The device or element.
        about: String,
        /// The reason and what to do.
        why: String,
    },
    /// A template that cannot be used.
    #[error("template {file}: {why}")]
    Template {
        /// Its path, or `built-in NAME`.
        file: String,
        /// The reason.
        why: String,
    },
}

impl XmlError {
    pub(super) fn malformed(at: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Malformed { at: at.into(), why: why.into() }
    }

    pub(super) fn refused(about: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused { about: about.into(), why: why.into() }
    }

    /// The same as a line for `status`, about the item that was left out.
    pub fn finding(&self, about: &str) -> Finding {
        let kind = match self {
            Self::Malformed { .. } => FindingKind::MalformedInput,
            Self::LimitExceeded { .. } => FindingKind::LimitExceeded,
            Self::Refused { .. } | Self::Template { .. } => FindingKind::ConfigWarning,
        };
        Finding::new(kind, about, self.to_string())
    }
}

impl From<XmlError> for Fault {
    fn from(err: XmlError) -> Self {
        let kind = match err {
            XmlError::Malformed { .. } | XmlError::LimitExceeded { .. } | XmlError::Refused { .. } => {
                FaultKind::InvalidDomainXml
            }
            XmlError::Template { .. } => FaultKind::InvalidMdevConfig,
        };
        Self::new(kind, err.to_string())
    }
}

/// Outside text as it may stand in a message: at most 80 characters, control characters escaped.
pub(super) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    cut.escape_debug().to_string()
}
