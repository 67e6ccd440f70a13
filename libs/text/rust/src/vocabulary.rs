//! A tokenizer from the vocabulary arrays of a GGUF file.

use tokenizers::models::bpe::BPE;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

use crate::boundary::{invalid, unimplemented, Outcome};
use crate::pre_tokenizers;
use crate::sentencepiece::{self, Pieces};
use crate::text_tokenizer::{Specials, TextTokenizer};
use crate::token_table::{Spelling, TokenTable, SPECIAL, UNUSED};

/// tokenizer.ggml.token_type.
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED_TYPE: i32 = 5;

/// Control tokens that end a chat turn or a text in well-known families; GGUF names only one of them.
const END_TOKENS: [&str; 8] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
];

pub struct Vocabulary<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub merges: Vec<&'a str>,
    pub types: &'a [i32],  // Empty: all are ordinary.
    pub scores: &'a [f32], // Of model llama.
    pub bos_id: Option<u32>,
    pub eos_id: Option<u32>,
    pub add_bos: bool,
    pub add_space_prefix: bool, // Of model llama.
    pub chat_template: &'a str,
}

pub fn load(vocabulary: &Vocabulary) -> Outcome<TextTokenizer> {
    let (count, types) = (vocabulary.tokens.len(), vocabulary.types.len());
    if types != 0 && types != count {
        return Err(invalid(format!("{types} token types for {count} tokens")));
    }
    let (mut tokenizer, spelling) = match vocabulary.model {
        "gpt2" => (byte_level_bpe(vocabulary)?, Spelling::ByteLevel),
        "llama" => {
            let strip_first_space = vocabulary.add_space_prefix;
            (
                sentencepiece_bpe(vocabulary)?,
                Spelling::SentencePiece { strip_first_space },
            )
        }
        other => {
            return Err(unimplemented(format!(
            "tokenizer.ggml.model = \"{other}\" is not supported; supported are gpt2 (byte-level \
                 BPE) and llama (SentencePiece BPE). Serve the model from its Hugging Face folder \
                 instead"
        )))
        }
    };
    add_tokens(&mut tokenizer, vocabulary)?;
    if vocabulary.add_bos {
        begin_with_bos(&mut tokenizer, vocabulary)?;
    }
    let table = token_table(vocabulary, spelling);
    TextTokenizer::new(tokenizer, table, spelling, specials(vocabulary)?)
}

impl Vocabulary<'_> {
    fn kind(&self, id: usize) -> i32 {
        self.types.get(id).copied().unwrap_or(1)
    }

    fn text_of(&self, id: Option<u32>, what: &str) -> Outcome<&str> {
        match id {
            None => Ok(""),
            Some(id) => self.tokens.get(id as usize).copied().ok_or_else(|| {
                invalid(format!(
                    "{what} id {id} is not below the {} tokens",
                    self.tokens.len()
                ))
            }),
        }
    }
}

fn byte_level_bpe(vocabulary: &Vocabulary) -> Outcome<Tokenizer> {
    let cutting = pre_tokenizers::named(vocabulary.pre)?;
    let ids = (0..vocabulary.tokens.len()).filter(|&id| vocabulary.kind(id) != UNUSED_TYPE);
    let vocab = ids
        .map(|id| (vocabulary.tokens[id].to_string(), id as u32))
        .collect();
    let mut merges = Vec::with_capacity(vocabulary.merges.len());
    for (rank, merge) in vocabulary.merges.iter().enumerate() {
        let (left, right) = merge
            .split_once(' ')
            .ok_or_else(|| invalid(format!("merge {rank} (\"{merge}\") is not a pair")))?;
        merges.push((left.to_string(), right.to_string()));
    }
    let model = BPE::builder()
        .vocab_and_merges::<tokenizers::models::bpe::Vocab>(vocab, merges)
        .ignore_merges(cutting.ignore_merges)
        .build()
        .map_err(|error| invalid(format!("vocabulary: {error}")))?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer
        .with_normalizer(cutting.normalizer)
        .map_err(|error| invalid(format!("normalizer: {error}")))?;
    tokenizer.with_pre_tokenizer(Some(cutting.pre_tokenizer));
    Ok(tokenizer)
}

fn sentencepiece_bpe(vocabulary: &Vocabulary) -> Outcome<Tokenizer> {
    let (count, scores) = (vocabulary.tokens.len(), vocabulary.scores.len());
    if scores != count {
        return Err(invalid(format!("{scores} scores for {count} tokens")));
    }
    let mut pieces = Vec::with_capacity(count);
    let mut unknown = None;
    for (id, &text) in vocabulary.tokens.iter().enumerate() {
        match vocabulary.kind(id) {
            UNUSED_TYPE => continue,
            UNKNOWN => unknown = Some(text),
            _ => {}
        }
        pieces.push((text, id as u32));
    }
    let (scores, add_space_prefix) = (vocabulary.scores, vocabulary.add_space_prefix);
    sentencepiece::tokenizer(&Pieces {
        pieces,
        scores,
        unknown,
        add_space_prefix,
    })
}

/// Control and user-defined tokens are found in the text before it is cut.
fn add_tokens(tokenizer: &mut Tokenizer, vocabulary: &Vocabulary) -> Outcome<()> {
    let mut added = Vec::new();
    for (id, text) in vocabulary.tokens.iter().enumerate() {
        let special = match vocabulary.kind(id) {
            UNKNOWN | CONTROL => true,
            USER_DEFINED => false,
            _ => continue,
        };
        added.push(AddedToken::from(*text, special).normalized(false));
    }
    match tokenizer.add_tokens(added) {
        Ok(_) => Ok(()),
        Err(error) => Err(invalid(format!("special tokens: {error}"))),
    }
}

fn begin_with_bos(tokenizer: &mut Tokenizer, vocabulary: &Vocabulary) -> Outcome<()> {
    let text = vocabulary.text_of(vocabulary.bos_id, "bos")?;
    let Some(id) = vocabulary.bos_id else {
        return Err(invalid("add_bos_token is set without a bos_token_id"));
    };
    let template = TemplateProcessing::builder()
        .try_single(vec![text.to_string(), "$A".to_string()])
        .map_err(invalid)?
        .special_tokens(vec![(text.to_string(), id)])
        .build()
        .map_err(|error| invalid(format!("beginning token: {error}")))?;
    tokenizer.with_post_processor(Some(template));
    Ok(())
}

fn token_table(vocabulary: &Vocabulary, spelling: Spelling) -> TokenTable {
    let mut table = TokenTable::new();
    for (id, text) in vocabulary.tokens.iter().enumerate() {
        match vocabulary.kind(id) {
            UNKNOWN | CONTROL => table.push(text.as_bytes(), SPECIAL),
            USER_DEFINED => table.push(text.as_bytes(), 0),
            UNUSED_TYPE => table.push(b"", UNUSED),
            _ => table.push(&spelling.bytes(text), 0),
        }
    }
    table.trim();
    table
}

fn specials(vocabulary: &Vocabulary) -> Outcome<Specials> {
    let bos_text = vocabulary.text_of(vocabulary.bos_id, "bos")?.to_string();
    let eos_text = vocabulary.text_of(vocabulary.eos_id, "eos")?.to_string();
    let mut eos_ids: Vec<u32> = vocabulary.eos_id.into_iter().collect();
    for (id, text) in vocabulary.tokens.iter().enumerate() {
        let id_ends = vocabulary.kind(id) == CONTROL && END_TOKENS.contains(text);
        if id_ends && !eos_ids.contains(&(id as u32)) {
            eos_ids.push(id as u32);
        }
    }
    Ok(Specials {
        bos_id: vocabulary.bos_id,
        eos_ids,
        bos_text,
        eos_text,
        chat_template: vocabulary.chat_template.to_string(),
        tool_template: String::new(),
    })
}
