//! The pre-tokenizers that a GGUF file names in tokenizer.ggml.pre.

use tokenizers::normalizers::{NormalizerWrapper, NFC};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::tokenizer::SplitDelimiterBehavior;

use crate::boundary::{invalid, unimplemented, Outcome};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";

/// How text is cut before byte pairs are merged.
pub struct Cutting {
    pub normalizer: Option<NormalizerWrapper>,
    pub pre_tokenizer: PreTokenizerWrapper,
    /// A piece that is a token as a whole is taken as it is.
    pub ignore_merges: bool,
}

pub fn named(pre: &str) -> Outcome<Cutting> {
    let (patterns, nfc, ignore_merges): (&[&str], bool, bool) = match pre {
        "" | "default" => (
            &[PUNCTUATION, GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
            false,
            false,
        ),
        "gpt-2" | "gpt2" => (&[GPT2], false, false),
        "smollm" => (&[r"\p{N}", GPT2], false, false),
        // The original tokenizer composes characters first; its GGUF does not say so.
        "qwen2" => (&[QWEN2], true, false),
        "llama-bpe" | "llama3" | "llama-v3" => (&[LLAMA3], false, true),
        other => {
            return Err(unimplemented(format!(
                "tokenizer.ggml.pre = \"{other}\" is not supported; supported are default, gpt-2, \
                 smollm, qwen2 and llama-bpe"
            )))
        }
    };
    let mut steps = Vec::new();
    for pattern in patterns {
        let pattern = SplitPattern::Regex(pattern.to_string());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
            .map_err(|error| invalid(format!("pre-tokenizer {pre}: {error}")))?;
        steps.push(PreTokenizerWrapper::Split(split));
    }
    steps.push(PreTokenizerWrapper::ByteLevel(ByteLevel::new(
        false, false, false,
    )));
    Ok(Cutting {
        normalizer: nfc.then_some(NormalizerWrapper::NFC(NFC)),
        pre_tokenizer: PreTokenizerWrapper::Sequence(Sequence::new(steps)),
        ignore_merges,
    })
}
