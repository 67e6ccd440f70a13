//! The bytes that each id stands for, laid out once so that detokenizing needs no look-up by name.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;
use tokenizers::DecoderWrapper;

use crate::boundary::{unimplemented, Outcome};

/// Flags of one id; 0 is an ordinary token.
pub const SPECIAL: u8 = 1; // Structure, not text: skipped by a decode that skips special tokens.
pub const UNUSED: u8 = 2; // No token has this id.

#[derive(Default)]
pub struct TokenTable {
    pub bytes: Vec<u8>,
    pub offsets: Vec<u64>, // Token i is bytes[offsets[i] .. offsets[i + 1]].
    pub flags: Vec<u8>,
}

impl TokenTable {
    pub fn new() -> TokenTable {
        TokenTable {
            bytes: Vec::new(),
            offsets: vec![0],
            flags: Vec::new(),
        }
    }

    pub fn push(&mut self, bytes: &[u8], flags: u8) {
        self.bytes.extend_from_slice(bytes);
        self.offsets.push(self.bytes.len() as u64);
        self.flags.push(flags);
    }

    pub fn len(&self) -> usize {
        self.flags.len()
    }

    pub fn get(&self, id: usize) -> &[u8] {
        &self.bytes[self.offsets[id] as usize..self.offsets[id + 1] as usize]
    }

    /// Drops unused ids at the end: they are padding of the weights, not tokens.
    pub fn trim(&mut self) {
        while self.flags.last() == Some(&UNUSED) {
            self.flags.pop();
            self.offsets.pop();
        }
        self.bytes
            .truncate(*self.offsets.last().unwrap_or(&0) as usize);
    }
}

/// How the text of a vocabulary entry becomes bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spelling {
    /// Each character stands for one byte (GPT-2's table).
    ByteLevel,
    /// U+2581 stands for a space and <0xNN> for a byte; `strip_first_space`: the space that the
    /// tokenizer put before the text is taken off the beginning of a decode.
    SentencePiece { strip_first_space: bool },
}

impl Spelling {
    /// Finds the spelling in the decoder of a tokenizer.json.
    pub fn of_decoder(decoder: Option<&DecoderWrapper>) -> Outcome<Spelling> {
        let json = serde_json::to_value(decoder).unwrap_or(Value::Null);
        let steps = match json["decoders"].as_array() {
            Some(steps) => steps.clone(),
            None => vec![json],
        };
        let is = |step: &Value, name: &str| step["type"].as_str() == Some(name);
        if steps.iter().any(|step| is(step, "ByteLevel")) {
            return Ok(Spelling::ByteLevel);
        }
        let metaspace = steps.iter().find(|step| is(step, "Metaspace"));
        if metaspace.is_some() || steps.iter().any(|step| is(step, "ByteFallback")) {
            let prepends = metaspace.is_some_and(|step| step["prepend_scheme"] != "never");
            let strips = steps
                .iter()
                .any(|step| is(step, "Strip") && step["start"].as_u64().unwrap_or(0) > 0);
            return Ok(Spelling::SentencePiece {
                strip_first_space: prepends || strips,
            });
        }
        let names: Vec<_> = steps.iter().map(|step| step["type"].to_string()).collect();
        Err(unimplemented(format!(
            "tokenizer decoder {} is not supported; supported are ByteLevel, Metaspace and \
             ByteFallback",
            names.join(", ")
        )))
    }

    pub fn bytes(self, token: &str) -> Vec<u8> {
        match self {
            Spelling::ByteLevel => {
                let table = byte_of_char();
                let mapped: Option<Vec<u8>> =
                    token.chars().map(|c| table.get(&c).copied()).collect();
                mapped.unwrap_or_else(|| token.as_bytes().to_vec())
            }
            Spelling::SentencePiece { .. } => match byte_token(token) {
                Some(byte) => vec![byte],
                None => token.replace('\u{2581}', " ").into_bytes(),
            },
        }
    }

    pub fn strips_first_space(self) -> bool {
        self == Spelling::SentencePiece {
            strip_first_space: true,
        }
    }
}

fn byte_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2)
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()
}

/// GPT-2's table: printable bytes stand for themselves, the others are moved above U+0100.
fn byte_of_char() -> &'static HashMap<char, u8> {
    static TABLE: OnceLock<HashMap<char, u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut next = 256u32;
        let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        (0..=255u8)
            .filter_map(|b| {
                let code = if printable(b) {
                    u32::from(b)
                } else {
                    next += 1;
                    next - 1
                };
                char::from_u32(code).map(|c| (c, b))
            })
            .collect()
    })
}
