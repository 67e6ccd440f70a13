//! A tokenizer from the files of a Hugging Face folder.

use serde_json::Value;
use tokenizers::{Model, Tokenizer};

use crate::boundary::{invalid, Outcome};
use crate::text_tokenizer::{Specials, TextTokenizer};
use crate::token_table::{Spelling, TokenTable, SPECIAL, UNUSED};

/// The contents of the files; all but tokenizer.json may be empty.
pub struct FolderFiles<'a> {
    pub tokenizer: &'a str,
    pub config: &'a str,     // tokenizer_config.json
    pub generation: &'a str, // generation_config.json
    pub template: &'a str,   // chat_template.jinja; wins over the one in tokenizer_config.json
}

pub fn load(files: &FolderFiles) -> Outcome<TextTokenizer> {
    let tokenizer: Tokenizer = files
        .tokenizer
        .parse()
        .map_err(|error| invalid(format!("tokenizer.json: {error}")))?;
    let spelling = Spelling::of_decoder(tokenizer.get_decoder())?;
    let table = token_table(&tokenizer, spelling);
    let specials = specials(&tokenizer, files)?;
    TextTokenizer::new(tokenizer, table, spelling, specials)
}

fn token_table(tokenizer: &Tokenizer, spelling: Spelling) -> TokenTable {
    let added = tokenizer.get_added_vocabulary().get_added_tokens_decoder();
    let end = tokenizer
        .get_vocab(true)
        .into_values()
        .max()
        .map_or(0, |id| id + 1);
    let mut table = TokenTable::new();
    for id in 0..end {
        match (added.get(&id), tokenizer.get_model().id_to_token(id)) {
            (Some(token), _) => table.push(
                token.content.as_bytes(),
                if token.special { SPECIAL } else { 0 },
            ),
            (None, Some(token)) => table.push(&spelling.bytes(&token), 0),
            (None, None) => table.push(b"", UNUSED),
        }
    }
    table
}

fn parsed(text: &str, file: &str) -> Outcome<Value> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| invalid(format!("{file}: {error}")))
}

/// A special token is written as a string or as an object with its content.
fn token_text(value: &Value) -> String {
    value
        .as_str()
        .or_else(|| value["content"].as_str())
        .unwrap_or_default()
        .to_string()
}

fn ids_of(value: &Value) -> Vec<u32> {
    let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value.as_array() {
        Some(ids) => ids.iter().filter_map(one).collect(),
        None => one(value).into_iter().collect(),
    }
}

fn specials(tokenizer: &Tokenizer, files: &FolderFiles) -> Outcome<Specials> {
    let config = parsed(files.config, "tokenizer_config.json")?;
    let generation = parsed(files.generation, "generation_config.json")?;
    let (bos_text, eos_text) = (
        token_text(&config["bos_token"]),
        token_text(&config["eos_token"]),
    );
    let mut eos_ids: Vec<u32> = tokenizer.token_to_id(&eos_text).into_iter().collect();
    for id in ids_of(&generation["eos_token_id"]) {
        if !eos_ids.contains(&id) {
            eos_ids.push(id);
        }
    }
    let (chat_template, tool_template) = match &config["chat_template"] {
        _ if !files.template.is_empty() => (files.template.to_string(), String::new()),
        Value::String(template) => (template.clone(), String::new()),
        list => (
            template_named(list, "default"),
            template_named(list, "tool_use"),
        ),
    };
    let bos_id = tokenizer.token_to_id(&bos_text);
    Ok(Specials {
        bos_id,
        eos_ids,
        bos_text,
        eos_text,
        chat_template,
        tool_template,
    })
}

fn template_named(list: &Value, name: &str) -> String {
    let entries = list.as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .find(|entry| entry["name"] == name)
        .and_then(|entry| entry["template"].as_str())
        .unwrap_or_default()
        .to_string()
}
