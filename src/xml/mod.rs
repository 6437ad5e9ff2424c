//! XML of libvirt: text in, values out (rank 1). Nothing here asks libvirt, the store or the clock.
//!
//! | file | owns |
//! |---|---|
//! | `intake` | bytes to text: size, encoding, forbidden characters |
//! | `reader`, `tag`, `address` | text to elements and their attributes, the only users of the XML parser |
//! | `nodedev` | node devices: parents, types, mediated devices |
//! | `domain` | domains: what they name, what is wrong with it, the host devices written into them |
//! | `render`, `template` | `xml-templates/`: slots filled, escaped, and read back |
//!
//! 1. Size, depth, attributes and counts are bounded, and no function calls itself on nested input
//!    (`tests/xml/hostile.rs`).
//! 2. A document is taken whole or not at all: DOCTYPE, NUL, an unfinished or a second document are errors.
//! 3. What is written into a domain is all that changes; every other byte stays (`tests/xml/write.rs`).
//! 4. An element of a namespace is never one of libvirt's, whatever its name. libvirt itself ignores namespaces inside
//!    `<hostdev>`, so they are refused there.
//! 5. Text from outside is escaped and cut before it enters a message.
//!
//! Rejected: serde over quick-xml (2.5 times slower on a node device, and it cannot say where an element begins);
//! expanding entities of a DTD (libvirt writes none).

mod address;
pub mod domain;
mod error;
mod intake;
pub mod nodedev;
mod reader;
pub mod render;
mod tag;
mod template;

pub use error::XmlError;
pub use intake::MAX_BYTES;
pub use reader::MAX_DEPTH;
