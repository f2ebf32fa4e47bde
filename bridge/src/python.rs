//! Values as Python writes them: what jinja2's users see when a template prints a float, a list or
//! a dict.
use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// `str(value)`, except that None is written as nothing: the word must never reach a rendered
/// conversation.
pub fn str_of(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => String::new(),
        ValueKind::String => value.to_string(),
        _ => {
            let mut out = String::new();
            write_repr(&mut out, value);
            out
        }
    }
}

fn write_repr(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            let tuple = value.is_tuple();
            out.push(if tuple { '(' } else { '[' });
            let mut count = 0;
            for item in value.try_iter().into_iter().flatten() {
                out.push_str(if count > 0 { ", " } else { "" });
                write_repr(out, &item);
                count += 1;
            }
            out.push_str(match (tuple, count) {
                (true, 1) => ",)",
                (true, _) => ")",
                _ => "]",
            });
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_repr(out, &key);
                out.push_str(": ");
                write_repr(out, &value.get_item(&key).unwrap_or_default());
            }
            out.push('}');
        }
        _ => write!(out, "{value}").unwrap_or_default(),
    }
}

fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                write!(out, "\\x{:02x}", c as u32).unwrap_or_default()
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// Jinja2's `escape` filter.
pub fn escape(text: Value) -> String {
    let text = str_of(&text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\'', "&#39;")
        .replace('"', "&#34;")
}

/// An int in full, a float as `repr` gives it.
pub fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
}

fn float(value: f64) -> String {
    if !value.is_finite() {
        let names = if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        return names.to_string();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = value.to_string();
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

/// Methods of `str` that templates call and minijinja-contrib leaves out.
pub fn unknown_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let found = minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args);
    match (&found, value.as_str()) {
        (Err(error), Some(text)) if error.kind() == ErrorKind::UnknownMethod => {
            string_method(text, method, args).unwrap_or(found)
        }
        _ => found,
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    let argument = args.first().and_then(Value::as_str);
    let value = match (method, argument) {
        ("casefold", None) => Value::from(text.to_lowercase()),
        ("removeprefix", Some(prefix)) => Value::from(text.strip_prefix(prefix).unwrap_or(text)),
        ("removesuffix", Some(suffix)) => Value::from(text.strip_suffix(suffix).unwrap_or(text)),
        ("partition", Some(separator)) => {
            parts(text.split_once(separator).map(|(a, b)| (a, separator, b)), (text, "", ""))
        }
        ("rpartition", Some(separator)) => {
            parts(text.rsplit_once(separator).map(|(a, b)| (a, separator, b)), ("", "", text))
        }
        ("rsplit", Some(separator)) if !separator.is_empty() => {
            let most = args.get(1).and_then(|most| usize::try_from(most.clone()).ok());
            let mut pieces: Vec<&str> = match most {
                Some(most) => text.rsplitn(most + 1, separator).collect(),
                None => text.rsplit(separator).collect(),
            };
            pieces.reverse();
            pieces.into_iter().map(Value::from).collect()
        }
        _ => return None,
    };
    Some(Ok(value))
}

fn parts(found: Option<(&str, &str, &str)>, otherwise: (&str, &str, &str)) -> Value {
    let (before, separator, after) = found.unwrap_or(otherwise);
    [before, separator, after].into_iter().map(Value::from).collect()
}
