//! Files that a user names: bounded, UTF-8, `-` for standard input.

use std::fs::File;
use std::io::{self, Read};

use crate::model::{Fault, FaultKind};

/// Reads a whole text of at most `limit` bytes.
///
/// # Errors
/// `kind`: the file cannot be read, is too large, is not UTF-8 or holds a NUL.
pub fn read_text(file: &str, limit: usize, kind: FaultKind) -> Result<String, Fault> {
    let (name, bytes) = match file {
        "-" => ("standard input", take(io::stdin().lock(), limit)),
        path => (path, File::open(path).and_then(|file| take(file, limit))),
    };
    let refuse = |why: String| Fault::new(kind, format!("{}: {why}", name.escape_debug()));
    let bytes = bytes.map_err(|err| refuse(format!("cannot be read: {err}")))?;
    if bytes.len() > limit {
        return Err(refuse(format!("more than {limit} bytes are not taken")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|err| refuse(format!("is not UTF-8 text (byte {})", err.utf8_error().valid_up_to())))?;
    match text.find('\0') {
        None => Ok(text),
        Some(at) => Err(refuse(format!("holds a NUL (byte {at})"))),
    }
}

fn take(source: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    source.take(more).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let read = |bytes: &[u8]| {
            let file = dir.path().join("file");
            std::fs::write(&file, bytes).unwrap();
            read_text(file.to_str().unwrap(), 8, FaultKind::InvalidDomainXml).map_err(|fault| fault.message)
        };
        assert_eq!(read(b"<domain>").unwrap(), "<domain>");
        assert!(read(b"<domain/>").unwrap_err().contains("more than 8 bytes"));
        assert!(read(b"a\xff").unwrap_err().contains("UTF-8 text (byte 1)"));
        assert!(read(b"a\0").unwrap_err().contains("NUL (byte 1)"));
        let missing = read_text("/nonexistent/\u{1b}", 8, FaultKind::InvalidDomainXml).unwrap_err();
        assert!(missing.message.starts_with("/nonexistent/\\u{1b}: cannot be read"), "{missing}");
        assert!(read_text("/dev/zero", 8, FaultKind::InvalidDomainXml).is_err());
    }
}
