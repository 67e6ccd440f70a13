//! JSON as Python's json.dumps writes it: chat templates were written against that spelling.

use serde_json::{Map, Number, Value};

#[derive(Clone, Copy, Default)]
pub struct Style {
    pub indent: Option<usize>,
    pub sort_keys: bool,
    pub ensure_ascii: bool,
}

pub fn dump(value: &Value, style: Style) -> String {
    let mut out = String::new();
    write(value, style, 0, &mut out);
    out
}

fn write(value: &Value, style: Style, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, style, out),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
            write_items(&items, ('[', ']'), style, depth, out);
        }
        Value::Object(map) => write_items(&entries(map, style), ('{', '}'), style, depth, out),
    }
}

fn entries(map: &Map<String, Value>, style: Style) -> Vec<(Option<&String>, &Value)> {
    let mut entries: Vec<_> = map.iter().map(|(key, value)| (Some(key), value)).collect();
    if style.sort_keys {
        entries.sort_by_key(|(key, _)| *key);
    }
    entries
}

fn write_items(
    items: &[(Option<&String>, &Value)],
    (open, close): (char, char),
    style: Style,
    depth: usize,
    out: &mut String,
) {
    let new_line = |depth: usize, out: &mut String| {
        if let Some(indent) = style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    out.push(open);
    for (index, (key, value)) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(if style.indent.is_some() { "," } else { ", " });
        }
        new_line(depth + 1, out);
        if let Some(key) = key {
            write_string(key, style, out);
            out.push_str(": ");
        }
        write(value, style, depth + 1, out);
    }
    if !items.is_empty() {
        new_line(depth, out);
    }
    out.push(close);
}

fn write_string(text: &str, style: Style, out: &mut String) {
    // serde_json escapes as Python does, but for ensure_ascii and U+007F, which both leave alone.
    let quoted = Value::String(text.to_string()).to_string();
    if !style.ensure_ascii {
        out.push_str(&quoted);
        return;
    }
    for c in quoted.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}

/// Floats as Python's repr: the shortest digits, an exponent below 1e-4 and from 1e16 on.
fn write_number(number: &Number, out: &mut String) {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else {
        out.push_str(&number.to_string());
        return;
    };
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("{digits}e{sign}{:02}", exponent.abs()));
        return;
    }
    let plain = format!("{value}");
    out.push_str(&plain);
    if !plain.contains('.') {
        out.push_str(".0");
    }
}
