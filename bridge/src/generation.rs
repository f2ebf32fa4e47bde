//! `{% generation %}` blocks, which minijinja does not know: they become filter blocks whose filter puts private marks
//! round the text; after rendering the marks are found and taken out.
use std::cell::Cell;

pub const FILTER: &str = "__generation__";

thread_local! {
    static MARKS: Cell<(char, char)> = const { Cell::new(('\u{fdd0}', '\u{fdd1}')) };
}

/// The filter behind `{% generation %}`.
pub fn mark(text: String) -> String {
    let (open, close) = MARKS.get();
    format!("{open}{text}{close}")
}

/// Chooses two of Unicode's 32 noncharacters that occur neither in the template nor in the data.
pub fn choose_marks(used: [&str; 2]) -> Result<(), String> {
    let mut free =
        ('\u{fdd0}'..='\u{fdef}').filter(|mark| !used.iter().any(|text| text.contains(*mark)));
    let marks = free.next().zip(free.next());
    MARKS.set(marks.ok_or("the text uses up Unicode's noncharacters U+FDD0 to U+FDEF")?);
    Ok(())
}

/// Takes the marks out of `rendered`; gives the text and the byte ranges they stood round, by their begin.
pub fn take_marks(rendered: &str) -> (String, Vec<(usize, usize)>) {
    let (open, close) = MARKS.get();
    let mut text = String::with_capacity(rendered.len());
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut pending: Vec<usize> = Vec::new();
    for piece in rendered.split_inclusive([open, close]) {
        let body = piece.trim_end_matches([open, close]);
        text.push_str(body);
        if piece.ends_with(open) {
            pending.push(spans.len());
            spans.push((text.len(), text.len()));
        } else if piece.ends_with(close) {
            if let Some(index) = pending.pop() {
                spans[index].1 = text.len();
            }
        }
    }
    (text, spans)
}

/// Replaces the tags; whitespace control (`{%-`, `-%}`) and lines stay as they are. Gives the number of blocks.
pub fn rewrite(source: &str) -> (String, usize) {
    let mut out = String::with_capacity(source.len());
    let mut blocks = 0;
    let mut rest = source;
    while let Some(at) =
        rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min()
    {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = construct_length(rest);
        let construct = &rest[..length];
        rest = &rest[length..];
        match simple_tag(construct) {
            Some("generation") => {
                blocks += 1;
                out.push_str(&construct.replacen("generation", &format!("filter {FILTER}"), 1));
            }
            Some("endgeneration") => {
                out.push_str(&construct.replacen("endgeneration", "endfilter", 1))
            }
            Some("raw") => {
                // Between raw and endraw nothing is a tag.
                let body = end_of_raw(rest);
                out.push_str(construct);
                out.push_str(&rest[..body]);
                rest = &rest[body..];
            }
            _ => out.push_str(construct),
        }
    }
    out.push_str(rest);
    (out, blocks)
}

/// Length of the comment, expression or tag that `text` begins with; to the end of the text when it is not closed.
fn construct_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes[1] == b'#' {
        return text.find("#}").map_or(text.len(), |at| at + 2);
    }
    let close = if bytes[1] == b'%' { b'%' } else { b'}' };
    let mut quote = None;
    let mut index = 2;
    while index < bytes.len() {
        match (quote, bytes[index]) {
            (Some(_), b'\\') => index += 1,
            (Some(open), byte) if byte == open => quote = None,
            (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
            (None, byte) if byte == close && bytes.get(index + 1) == Some(&b'}') => {
                return index + 2
            }
            _ => {}
        }
        index += 1;
    }
    text.len()
}

/// The word of a tag that holds nothing else.
fn simple_tag(construct: &str) -> Option<&str> {
    let inner = construct.strip_prefix("{%")?.strip_suffix("%}")?;
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    Some(inner.strip_suffix(['-', '+']).unwrap_or(inner).trim())
}

fn end_of_raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        let begin = from + at;
        let length = construct_length(&text[begin..]);
        if simple_tag(&text[begin..begin + length]) == Some("endraw") {
            return begin;
        }
        from = begin + 2;
    }
    text.len()
}
