//! JSON in (the template's variables) and out (`tojson`, which is Python's `json.dumps` in chat
//! templates).
use std::fmt::Write;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::python;

/// Null becomes None, a missing key stays missing; the order of keys is kept.
pub fn to_value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(*flag),
        serde_json::Value::Number(number) => {
            match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Value::from(value),
                (_, Some(value), _) => Value::from(value),
                (_, _, value) => Value::from(value.unwrap_or(f64::NAN)),
            }
        }
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => items.iter().map(to_value).collect(),
        serde_json::Value::Object(entries) => {
            Value::from_pairs(entries.iter().map(|(key, item)| (key.as_str(), to_value(item))))
        }
    }
}

/// `tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(value: Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let mut style = Style::default();
    for (index, name) in
        ["ensure_ascii", "indent", "separators", "sort_keys"].into_iter().enumerate()
    {
        let by_name = if named.has(name) { Some(named.get::<Value>(name)?) } else { None };
        if let Some(option) = positional.get(index).cloned().or(by_name) {
            style.set(name, &option)?;
        }
    }
    named.assert_all_used()?;
    let mut out = String::new();
    style.write(&mut out, &value, 0)?;
    Ok(out)
}

#[derive(Default)]
struct Style {
    ascii: bool,
    indent: Option<String>,
    separators: Option<(String, String)>,
    sorted: bool,
}

impl Style {
    fn set(&mut self, name: &str, option: &Value) -> Result<(), Error> {
        match name {
            "ensure_ascii" => self.ascii = option.is_true(),
            "sort_keys" => self.sorted = option.is_true(),
            "separators" if !option.is_none() => {
                let part = |index| -> Result<String, Error> {
                    Ok(option.get_item_by_index(index)?.to_string())
                };
                self.separators = Some((part(0)?, part(1)?));
            }
            "indent" if !option.is_none() => {
                self.indent = Some(match option.as_str() {
                    Some(text) => text.to_string(),
                    None => " ".repeat(usize::try_from(option.clone()).unwrap_or(0).min(64)),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn item_separator(&self) -> &str {
        match (&self.separators, &self.indent) {
            (Some((item, _)), _) => item,
            (None, Some(_)) => ",",
            (None, None) => ", ",
        }
    }

    fn key_separator(&self) -> &str {
        self.separators.as_ref().map_or(": ", |(_, key)| key)
    }

    fn break_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > 200 {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "tojson: the value is nested too deeply",
            ));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)),
            ValueKind::String => self.quote(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.write_list(out, value, depth)?,
            ValueKind::Map => self.write_map(out, value, depth)?,
            kind => {
                let what = format!("tojson: a value of kind {kind} is not JSON serializable");
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            }
        }
        Ok(())
    }

    fn write_list(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let mut empty = true;
        out.push('[');
        for item in value.try_iter()? {
            out.push_str(if empty { "" } else { self.item_separator() });
            empty = false;
            self.break_line(out, depth + 1);
            self.write(out, &item, depth + 1)?;
        }
        if !empty {
            self.break_line(out, depth);
        }
        out.push(']');
        Ok(())
    }

    fn write_map(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sorted {
            keys.sort();
        }
        out.push('{');
        for (index, key) in keys.iter().enumerate() {
            out.push_str(if index > 0 { self.item_separator() } else { "" });
            self.break_line(out, depth + 1);
            self.write_key(out, key);
            out.push_str(self.key_separator());
            self.write(out, &value.get_item(key)?, depth + 1)?;
        }
        if !keys.is_empty() {
            self.break_line(out, depth);
        }
        out.push('}');
        Ok(())
    }

    fn write_key(&self, out: &mut String, key: &Value) {
        match key.kind() {
            ValueKind::String => self.quote(out, key.as_str().unwrap_or_default()),
            ValueKind::None => out.push_str("\"null\""),
            ValueKind::Bool => out.push_str(if key.is_true() { "\"true\"" } else { "\"false\"" }),
            _ => self.quote(out, &number(key)),
        }
    }

    fn quote(&self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if (c as u32) < 0x20 || (self.ascii && c as u32 >= 0x7f) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}").unwrap_or_default();
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// As Python's json module: floats by repr, and its own names for what JSON cannot say.
fn number(value: &Value) -> String {
    match python::number(value).as_str() {
        "nan" => "NaN".to_string(),
        "inf" => "Infinity".to_string(),
        "-inf" => "-Infinity".to_string(),
        text => text.to_string(),
    }
}
