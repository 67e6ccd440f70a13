//! SentencePiece's BPE (tokenizer.ggml.model = llama) expressed as merges, which the file leaves out.

use std::collections::HashMap;

use tokenizers::models::bpe::{Merges, Vocab, BPE};
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace, Sequence};
use tokenizers::Tokenizer;

use crate::boundary::{invalid, Outcome};

pub const SPACE: &str = "\u{2581}";

/// The pieces that text can be made of; `scores` rank them, higher first.
pub struct Pieces<'a> {
    pub pieces: Vec<(&'a str, u32)>,
    pub scores: &'a [f32], // By id.
    pub unknown: Option<&'a str>,
    pub add_space_prefix: bool,
}

pub fn tokenizer(given: &Pieces) -> Outcome<Tokenizer> {
    let vocab: Vocab = given
        .pieces
        .iter()
        .map(|(text, id)| (text.to_string(), *id))
        .collect();
    let mut builder = BPE::builder()
        .vocab_and_merges(vocab, merges(given))
        .byte_fallback(true)
        .fuse_unk(true);
    if let Some(unknown) = given.unknown {
        builder = builder.unk_token(unknown.to_string());
    }
    let model = builder
        .build()
        .map_err(|error| invalid(format!("vocabulary: {error}")))?;
    let mut steps = Vec::new();
    if given.add_space_prefix {
        steps.push(NormalizerWrapper::Prepend(Prepend::new(SPACE.to_string())));
    }
    let replace = Replace::new(" ", SPACE).map_err(|error| invalid(error.to_string()))?;
    steps.push(NormalizerWrapper::Replace(replace));
    let mut tokenizer = Tokenizer::new(model);
    tokenizer
        .with_normalizer(Some(NormalizerWrapper::Sequence(Sequence::new(steps))))
        .map_err(|error| invalid(format!("normalizer: {error}")))?;
    Ok(tokenizer)
}

/// SentencePiece joins the neighbours that make the piece of the highest score. So every way to
/// halve a piece into two pieces is a merge, ranked by the score of the whole.
fn merges(given: &Pieces) -> Merges {
    let ids: HashMap<&str, u32> = given.pieces.iter().copied().collect();
    let mut ranked = Vec::new();
    for &(piece, id) in &given.pieces {
        for (at, _) in piece.char_indices().skip(1) {
            let (left, right) = piece.split_at(at);
            if let (Some(left_id), Some(right_id)) = (ids.get(left), ids.get(right)) {
                ranked.push((
                    given.scores[id as usize],
                    id,
                    *left_id,
                    *right_id,
                    left,
                    right,
                ));
            }
        }
    }
    ranked.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3)))
    });
    ranked
        .into_iter()
        .map(|(.., left, right)| (left.to_string(), right.to_string()))
        .collect()
}
