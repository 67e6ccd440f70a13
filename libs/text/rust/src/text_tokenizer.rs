//! A loaded tokenizer: text to ids, ids to text, and what the model says about its special ids.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokenizers::{
    DecoderWrapper, Model, ModelWrapper, NormalizerWrapper, PostProcessorWrapper,
    PreTokenizerWrapper, Token, Tokenizer, TokenizerImpl,
};

use crate::boundary::{invalid, Outcome};
use crate::token_table::{Spelling, TokenTable, SPECIAL};

/// One vocabulary behind both encoders (special tokens parsed, or read as plain text).
#[derive(Clone)]
pub struct SharedModel(Arc<ModelWrapper>);

impl Model for SharedModel {
    type Trainer = <ModelWrapper as Model>::Trainer;

    fn tokenize(&self, sequence: &str) -> tokenizers::Result<Vec<Token>> {
        self.0.tokenize(sequence)
    }
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        self.0.id_to_token(id)
    }
    fn get_vocab(&self) -> HashMap<String, u32> {
        self.0.get_vocab()
    }
    fn get_vocab_size(&self) -> usize {
        self.0.get_vocab_size()
    }
    fn save(&self, folder: &Path, prefix: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        self.0.save(folder, prefix)
    }
    fn get_trainer(&self) -> Self::Trainer {
        self.0.get_trainer()
    }
}

type Encoder = TokenizerImpl<
    SharedModel,
    NormalizerWrapper,
    PreTokenizerWrapper,
    PostProcessorWrapper,
    DecoderWrapper,
>;

/// What a model's files say beside the vocabulary. An absent string is empty.
#[derive(Default)]
pub struct Specials {
    pub bos_id: Option<u32>,
    pub eos_ids: Vec<u32>, // The tokenizer's own first.
    pub bos_text: String,
    pub eos_text: String,
    pub chat_template: String,
    pub tool_template: String, // Used instead when a request has tools.
}

pub struct TextTokenizer {
    parsing: Encoder, // Special tokens in the text become their ids.
    literal: Encoder, // Special tokens in the text are spelled out like any other text.
    pub table: TokenTable,
    pub spelling: Spelling,
    pub specials: Specials,
}

impl TextTokenizer {
    pub fn new(
        tokenizer: Tokenizer,
        table: TokenTable,
        spelling: Spelling,
        specials: Specials,
    ) -> Outcome<TextTokenizer> {
        let model = SharedModel(Arc::new(tokenizer.get_model().clone()));
        let mut parsing = Encoder::new(model);
        // Truncation and padding of the file are left behind: a server must not cut a prompt.
        parsing
            .with_normalizer(tokenizer.get_normalizer().cloned())
            .map_err(|error| invalid(format!("tokenizer normalizer: {error}")))?;
        parsing
            .with_pre_tokenizer(tokenizer.get_pre_tokenizer().cloned())
            .with_post_processor(tokenizer.get_post_processor().cloned())
            .with_added_vocabulary(tokenizer.get_added_vocabulary().clone());
        parsing.set_encode_special_tokens(false);
        let mut literal = parsing.clone();
        literal.set_encode_special_tokens(true);
        Ok(TextTokenizer {
            parsing,
            literal,
            table,
            spelling,
            specials,
        })
    }

    pub fn encode(&self, text: &str, parse_special: bool, add_special: bool) -> Outcome<Vec<u32>> {
        let encoder = if parse_special {
            &self.parsing
        } else {
            &self.literal
        };
        let encoding = encoder
            .encode_fast(text, add_special)
            .map_err(|error| invalid(format!("cannot encode the text: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Ids without a token decode to nothing. Bytes that are not UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for &id in ids {
            let id = id as usize;
            let known = id < self.table.len();
            if known && !(skip_special && self.table.flags[id] & SPECIAL != 0) {
                bytes.extend_from_slice(self.table.get(id));
            }
        }
        let strips = self.spelling.strips_first_space() && bytes.first() == Some(&b' ');
        String::from_utf8_lossy(&bytes[usize::from(strips)..]).into_owned()
    }
}
