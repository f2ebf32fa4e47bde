//! `{% generation %}` blocks, which minijinja does not know: they become filter blocks whose filter
//! puts private marks round the text; after rendering the marks are found and taken out.
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

/// Takes the marks out of `rendered`; gives the text and the byte ranges they stood round, by their
/// begin.
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

/// Replaces the tags; whitespace control (`{%-`, `-%}`) and lines stay as they are. Gives the
/// number of blocks.
pub fn rewrite(source: &str) -> Result<(String, usize), String> {
    let mut out = String::with_capacity(source.len());
    let mut blocks = 0;
    let mut open: Vec<&str> = Vec::new();
    let mut rest = source;
    while let Some(at) =
        rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min()
    {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let construct = &rest[..construct_length(rest)];
        rest = &rest[construct.len()..];
        let tag = tag_of(construct);
        match tag {
            "generation" => {
                blocks += 1;
                out.push_str(&construct.replacen(tag, &format!("filter {FILTER}"), 1));
            }
            "endgeneration" => out.push_str(&construct.replacen(tag, "endfilter", 1)),
            _ => out.push_str(construct),
        }
        follow(&mut open, tag).map_err(|error| {
            let line = source[..source.len() - rest.len()].matches('\n').count() + 1;
            format!("line {line}: syntax error: {error}")
        })?;
        if tag == "raw" {
            // Between raw and endraw nothing is a tag.
            let body = end_of_raw(rest);
            out.push_str(&rest[..body]);
            rest = &rest[body..];
        }
    }
    out.push_str(rest);
    Ok((out, blocks))
}

/// Keeps the open loops and generation blocks. Leaving a block by break would lose what it holds.
fn follow<'a>(open: &mut Vec<&'a str>, tag: &'a str) -> Result<(), String> {
    let innermost = open.last().copied();
    match (tag.split_whitespace().next().unwrap_or_default(), innermost) {
        (word @ ("for" | "generation"), _) => open.push(word),
        ("endfor", Some("for")) | ("endgeneration", Some("generation")) => {
            open.pop();
        }
        ("endgeneration", _) => return Err("endgeneration without generation".into()),
        (word @ ("break" | "continue"), Some("generation")) => {
            return Err(format!("{word} would leave a generation block"));
        }
        _ => {}
    }
    Ok(())
}

/// Length of the comment, expression or tag that `text` begins with; to the end of the text when it
/// is not closed.
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

/// What stands in a tag (`{% ... %}`), without whitespace control; nothing for other constructs.
fn tag_of(construct: &str) -> &str {
    let inner = construct.strip_prefix("{%").and_then(|inner| inner.strip_suffix("%}"));
    let inner = inner.unwrap_or_default();
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    inner.strip_suffix(['-', '+']).unwrap_or(inner).trim()
}

fn end_of_raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        let begin = from + at;
        let length = construct_length(&text[begin..]);
        if tag_of(&text[begin..begin + length]) == "endraw" {
            return begin;
        }
        from = begin + 2;
    }
    text.len()
}
