//! Chat templates: Jinja as Hugging Face runs it (block trimming, functions, Python methods).

use std::error::Error as _;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::Map;

use crate::boundary::{invalid, Outcome};
use crate::python_json::{self, Style};

/// Instructions that one render may take: a long conversation takes some ten thousand, and a
/// template that loops for ever ends in about a second.
const MAX_RENDER_FUEL: u64 = 5_000_000;
const NAME: &str = "chat";

pub struct ChatTemplate {
    environment: Environment<'static>,
}

/// What a render is given. Empty JSON text stands for null.
pub struct RenderInput<'a> {
    pub messages: &'a str,
    pub tools: &'a str,
    pub extra: &'a str, // An object: further variables of the template.
    pub add_generation_prompt: bool,
    pub bos_text: &'a str,
    pub eos_text: &'a str,
    pub now_unix_seconds: i64,
}

impl ChatTemplate {
    pub fn compile(source: &str) -> Outcome<ChatTemplate> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|error| invalid(describe(&error)))?);
        environment.set_fuel(Some(MAX_RENDER_FUEL));
        environment.set_debug(false);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", raise_exception);
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|error| invalid(format!("does not compile: {}", describe(&error))))?;
        Ok(ChatTemplate { environment })
    }

    pub fn render(&self, input: &RenderInput) -> Outcome<String> {
        let mut variables = match json(input.extra, "template variables")? {
            serde_json::Value::Object(map) => map,
            serde_json::Value::Null => Map::new(),
            _ => return Err(invalid("template variables are not a JSON object")),
        };
        variables.insert("messages".into(), json(input.messages, "messages")?);
        variables.insert("tools".into(), json(input.tools, "tools")?);
        variables.insert(
            "add_generation_prompt".into(),
            input.add_generation_prompt.into(),
        );
        variables.insert("bos_token".into(), input.bos_text.into());
        variables.insert("eos_token".into(), input.eos_text.into());
        let now = input.now_unix_seconds;
        let mut context: Vec<(String, Value)> = variables
            .into_iter()
            .map(|(key, value)| (key, Value::from(Serde(value))))
            .collect();
        let strftime_now = Value::from_function(move |format: String| strftime(now, &format));
        context.push(("strftime_now".to_string(), strftime_now));
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(Value::from_pairs(context)))
            .map_err(|error| invalid(describe(&error)))
    }
}

/// Hugging Face marks the answers for training with a tag of its own, which does nothing when it
/// renders. A condition that always holds does the same and trims the same whitespace.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(end) = rest.find("%}") {
        let begin = rest[..end].rfind("{%").map_or(end, |at| at + 2);
        let tag = &rest[begin..end];
        out.push_str(&rest[..begin]);
        match tag.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace()) {
            "generation" => out.push_str(&tag.replace("generation", " if true ")),
            "endgeneration" => out.push_str(&tag.replace("endgeneration", " endif ")),
            _ => out.push_str(tag),
        }
        out.push_str("%}");
        rest = &rest[end + 2..];
    }
    out + rest
}

fn json(text: &str, what: &str) -> Outcome<serde_json::Value> {
    if text.is_empty() {
        return Ok(serde_json::Value::Null);
    }
    serde_json::from_str(text).map_err(|error| invalid(format!("{what}: {error}")))
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime(now_unix_seconds: i64, format: &str) -> Result<String, Error> {
    let failed = |error: jiff::Error| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now: {error}"),
        )
    };
    let now = jiff::Timestamp::from_second(now_unix_seconds).map_err(failed)?;
    let now = now.to_zoned(jiff::tz::TimeZone::UTC);
    jiff::fmt::strtime::format(format, &now).map_err(failed)
}

fn to_json(value: Value, arguments: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = arguments.get("indent")?;
    let sort_keys: Option<bool> = arguments.get("sort_keys")?;
    let ensure_ascii: Option<bool> = arguments.get("ensure_ascii")?;
    arguments.assert_all_used()?;
    let plain = serde_json::to_value(&value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let style = Style {
        indent,
        sort_keys: sort_keys.unwrap_or(false),
        ensure_ascii: ensure_ascii.unwrap_or(false),
    };
    Ok(Value::from_safe_string(python_json::dump(&plain, style)))
}

/// The message of the innermost error, and the line of the template where it arose.
fn describe(error: &Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost
        .source()
        .and_then(|source| source.downcast_ref::<Error>())
    {
        innermost = source;
    }
    let what = match innermost.kind() {
        ErrorKind::OutOfFuel => {
            format!("the template took more than {MAX_RENDER_FUEL} instructions")
        }
        kind => innermost
            .detail()
            .map_or_else(|| kind.to_string(), str::to_string),
    };
    match innermost.line() {
        Some(line) => format!("{what} (line {line} of the template)"),
        None => what,
    }
}
