//! Text to elements. The one place that knows the XML parser; it walks, it never builds a tree and never recurses.
//!
//! A caller holds the depth of the element it reads and asks for its children one by one; what it does not look at is
//! skipped, but still checked for well-formedness.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

use super::error::{XmlError, shown};
use super::intake::{is_allowed, name_of};
use super::tag::{Tag, attributes, is_name};

/// Deepest nesting.
///
/// # Source
/// libxml2 `xmlParserMaxDepth`, which libvirt keeps.
pub const MAX_DEPTH: usize = 256;
/// Bytes of one wanted text; names are shorter by far.
const MAX_TEXT: usize = 4096;

/// Walks one document.
pub(super) struct Reader<'a> {
    source: &'a str,
    inner: quick_xml::Reader<&'a [u8]>,
    /// Bytes of a byte-order mark, which the parser does not see.
    base: usize,
    open: Vec<Open<'a>>,
    /// The last element was `<x/>`: its end is due.
    end_due: bool,
    root_seen: bool,
    last_end: Range<usize>,
}

#[derive(Clone, Copy)]
struct Open<'a> {
    name: &'a str,
    /// A default namespace is in force.
    default_namespace: bool,
}

/// One step.
enum Token<'a> {
    Start(Tag<'a>),
    End,
    /// As it stands in the document, line ends included.
    Text(Cow<'a, str>),
    /// What a reference stands for.
    Character(Cow<'a, str>),
    Finished,
}

impl<'a> Reader<'a> {
    /// Opens a document and goes into its root element, which must have this name.
    pub(super) fn open(source: &'a str, root: &str) -> Result<(Self, Tag<'a>), XmlError> {
        let body = source.strip_prefix('\u{feff}').unwrap_or(source);
        let mut inner = quick_xml::Reader::from_str(body);
        inner.config_mut().check_comments = true;
        let base = source.len() - body.len();
        let (open, last_end) = (Vec::new(), 0..0);
        let mut reader = Self { source, inner, base, open, end_due: false, root_seen: false, last_end };
        match reader.next()? {
            Token::Start(tag) if tag.name == root => Ok((reader, tag)),
            Token::Start(_) | Token::End | Token::Text(_) | Token::Character(_) | Token::Finished => {
                Err(reader.malformed(format!("expected the root element <{root}>")))
            }
        }
    }

    /// How many elements are open, the root being 1.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The next child of the open element at this depth; `None` once that element has ended.
    pub(super) fn child(&mut self, depth: usize) -> Result<Option<Tag<'a>>, XmlError> {
        loop {
            match self.next()? {
                Token::Start(tag) if self.open.len() == depth + 1 => return Ok(Some(tag)),
                Token::End if self.open.len() < depth => return Ok(None),
                Token::Finished => return Ok(None),
                Token::Start(_) | Token::End | Token::Text(_) | Token::Character(_) => {}
            }
        }
    }

    /// All text up to the end of the element just entered, that of its descendants included (XPath's `string()`).
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, XmlError> {
        let depth = self.open.len();
        let mut all = Cow::Borrowed("");
        loop {
            let part = match self.next()? {
                Token::Text(part) => unix_lines(part),
                Token::Character(part) => part,
                Token::End if self.open.len() < depth => return Ok(all),
                Token::Start(_) | Token::End | Token::Finished => continue,
            };
            if all.is_empty() {
                all = part;
            } else {
                all.to_mut().push_str(&part);
            }
            if all.len() > MAX_TEXT {
                return Err(XmlError::LimitExceeded { what: "bytes of one text", limit: MAX_TEXT });
            }
        }
    }

    /// Goes to the end of the element just entered and gives the span of its end tag (empty for `<x/>`).
    pub(super) fn skip(&mut self) -> Result<Range<usize>, XmlError> {
        let depth = self.open.len();
        while self.child(depth)?.is_some() {}
        Ok(self.last_end())
    }

    /// Where the last element that ended has its end tag.
    pub(super) fn last_end(&self) -> Range<usize> {
        self.last_end.clone()
    }

    /// Reads what follows the root element: comments and blanks, nothing else.
    pub(super) fn finish(mut self) -> Result<(), XmlError> {
        loop {
            if let Token::Finished = self.next()? {
                return Ok(());
            }
        }
    }

    /// An error at the present place.
    pub(super) fn malformed(&self, why: impl Into<String>) -> XmlError {
        let read = self.source.get(..self.position()).unwrap_or_default();
        let line = 1 + read.bytes().filter(|b| *b == b'\n').count();
        let mut path: Vec<String> = self.open.iter().take(8).map(|o| shown(o.name)).collect();
        if self.open.len() > path.len() {
            path.push("...".to_owned());
        }
        XmlError::malformed(format!("line {line}, /{}", path.join("/")), why)
    }

    fn position(&self) -> usize {
        self.base + usize::try_from(self.inner.buffer_position()).unwrap_or(usize::MAX)
    }

    fn next(&mut self) -> Result<Token<'a>, XmlError> {
        if std::mem::take(&mut self.end_due) {
            return Ok(self.end(self.position()));
        }
        loop {
            let begin = self.position();
            let event = self.inner.read_event().map_err(|err| self.malformed(shown(&err.to_string())))?;
            match event {
                Event::Start(start) => return self.start(start, begin, false),
                Event::Empty(start) => return self.start(start, begin, true),
                Event::End(_) => return Ok(self.end(begin)),
                Event::Text(text) if self.open.is_empty() => {
                    if !text.bytes().all(|b| b.is_ascii_whitespace()) {
                        return Err(self.malformed("text outside the root element"));
                    }
                }
                Event::Text(text) => return Ok(Token::Text(text.into_inner())),
                Event::CData(text) if !self.open.is_empty() => return Ok(Token::Text(text.into_inner())),
                Event::GeneralRef(name) if !self.open.is_empty() => return self.reference(&name),
                Event::CData(_) | Event::GeneralRef(_) => {
                    return Err(self.malformed("text outside the root element"));
                }
                Event::DocType(_) => return Err(self.malformed("a DOCTYPE is not accepted")),
                Event::Decl(decl) => self.declaration(&decl, begin)?,
                Event::Comment(_) | Event::PI(_) => {}
                Event::Eof => return self.eof(),
            }
        }
    }

    fn end(&mut self, begin: usize) -> Token<'a> {
        self.open.pop();
        self.last_end = begin..self.position();
        Token::End
    }

    fn start(&mut self, start: BytesStart<'a>, begin: usize, empty: bool) -> Result<Token<'a>, XmlError> {
        if self.open.is_empty() && self.root_seen {
            return Err(self.malformed("a second root element"));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(XmlError::LimitExceeded { what: "nested elements", limit: MAX_DEPTH });
        }
        let span = begin..self.position();
        let own = self.source.get(begin + 1..begin + 1 + start.name().as_ref().len()).unwrap_or_default();
        if !is_name(own) {
            return Err(self.malformed("an element has no valid name"));
        }
        let inherited = self.open.last().is_some_and(|o| o.default_namespace);
        let default_namespace = attributes(self, &start)?.unwrap_or(inherited);
        self.root_seen = true;
        self.end_due = empty;
        self.open.push(Open { name: own, default_namespace });
        let foreign = default_namespace || own.contains(':');
        let name = if foreign { "" } else { own };
        Ok(Token::Start(Tag { start, name, empty, span }))
    }

    fn reference(&self, name: &BytesRef<'a>) -> Result<Token<'a>, XmlError> {
        let number = name.resolve_char_ref().map_err(|err| self.malformed(shown(&err.to_string())))?;
        if let Some(c) = number {
            let text = String::from(c);
            self.check_characters(&text)?;
            return Ok(Token::Character(Cow::Owned(text)));
        }
        match resolve_predefined_entity(name) {
            Some(text) => Ok(Token::Character(Cow::Borrowed(text))),
            None => Err(self.malformed(format!("the entity &{}; is not known", shown(name)))),
        }
    }

    /// What a character reference stands for has to be a character too.
    pub(super) fn check_characters(&self, text: &str) -> Result<(), XmlError> {
        match text.chars().find(|c| !is_allowed(*c)) {
            Some(c) => Err(self.malformed(format!("the character {} is not allowed", name_of(c)))),
            None => Ok(()),
        }
    }

    /// libvirt would decode the document by the encoding named here, we do not: they must mean the same.
    fn declaration(&self, decl: &BytesDecl<'a>, begin: usize) -> Result<(), XmlError> {
        if begin != self.base {
            return Err(self.malformed("an XML declaration that is not at the beginning"));
        }
        let encoding = decl.encoding().transpose().map_err(|err| self.malformed(shown(&err.to_string())))?;
        match encoding {
            Some(name) if !matches!(name.to_ascii_lowercase().as_str(), "utf-8" | "us-ascii") => {
                Err(self.malformed(format!("encoding {} (expected UTF-8)", shown(&name))))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn eof(&self) -> Result<Token<'a>, XmlError> {
        if !self.open.is_empty() {
            return Err(self.malformed("the document ends inside this element"));
        }
        if self.root_seen { Ok(Token::Finished) } else { Err(self.malformed("there is no element in it")) }
    }
}

/// XML's line ends: whatever the document has, a text has `\n`.
fn unix_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text }
}
