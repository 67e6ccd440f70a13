//! The tokenizer half of the C header.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::boundary::{guard, slice, Outcome, TrBuffer, TrText};
use crate::folder::{self, FolderFiles};
use crate::text_tokenizer::TextTokenizer;
use crate::vocabulary::{self, Vocabulary};

#[repr(C)]
pub struct TrFolderFiles {
    tokenizer: TrText,
    config: TrText,
    generation: TrText,
    template: TrText,
}

#[repr(C)]
pub struct TrVocabulary {
    model: TrText,
    pre: TrText,
    tokens: *const TrText,
    token_count: usize,
    merges: *const TrText,
    merge_count: usize,
    types: *const i32,
    type_count: usize,
    scores: *const f32,
    score_count: usize,
    bos_id: i64, // Below 0: none.
    eos_id: i64,
    add_bos: i32,
    add_space_prefix: i32,
    chat_template: TrText,
}

/// Borrowed from the tokenizer.
#[repr(C)]
pub struct TrTokenizerView {
    bytes: *const u8,
    offsets: *const u64,
    flags: *const u8,
    token_count: usize,
    eos_ids: *const u32,
    eos_count: usize,
    bos_id: i64,
    bos_text: TrText,
    eos_text: TrText,
    chat_template: TrText,
    tool_template: TrText,
    strips_first_space: i32,
}

/// Owned by this crate until the caller gives them back to `tr_ids_free`.
#[repr(C)]
pub struct TrIds {
    data: *mut u32,
    size: usize,
    capacity: usize,
}

#[no_mangle]
pub unsafe extern "C" fn tr_tokenizer_from_folder(
    files: *const TrFolderFiles,
    out: *mut *mut TextTokenizer,
    error: *mut TrBuffer,
) -> i32 {
    guard(error, || {
        let files = &*files;
        let tokenizer = folder::load(&FolderFiles {
            tokenizer: files.tokenizer.text("tokenizer.json")?,
            config: files.config.text("tokenizer_config.json")?,
            generation: files.generation.text("generation_config.json")?,
            template: files.template.text("chat_template.jinja")?,
        })?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

unsafe fn texts<'a>(data: *const TrText, count: usize, what: &str) -> Outcome<Vec<&'a str>> {
    slice(data, count)
        .iter()
        .map(|text| text.text(what))
        .collect()
}

fn id(value: i64) -> Option<u32> {
    u32::try_from(value).ok()
}

#[no_mangle]
pub unsafe extern "C" fn tr_tokenizer_from_vocabulary(
    vocabulary: *const TrVocabulary,
    out: *mut *mut TextTokenizer,
    error: *mut TrBuffer,
) -> i32 {
    guard(error, || {
        let given = &*vocabulary;
        let tokenizer = vocabulary::load(&Vocabulary {
            model: given.model.text("tokenizer.ggml.model")?,
            pre: given.pre.text("tokenizer.ggml.pre")?,
            tokens: texts(given.tokens, given.token_count, "tokenizer.ggml.tokens")?,
            merges: texts(given.merges, given.merge_count, "tokenizer.ggml.merges")?,
            types: slice(given.types, given.type_count),
            scores: slice(given.scores, given.score_count),
            bos_id: id(given.bos_id),
            eos_id: id(given.eos_id),
            add_bos: given.add_bos != 0,
            add_space_prefix: given.add_space_prefix != 0,
            chat_template: given.chat_template.text("tokenizer.chat_template")?,
        })?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tr_tokenizer_free(tokenizer: *mut TextTokenizer) {
    if !tokenizer.is_null() {
        let owned = Box::from_raw(tokenizer);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tr_tokenizer_view(tokenizer: *const TextTokenizer) -> TrTokenizerView {
    let tokenizer = &*tokenizer;
    let (table, specials) = (&tokenizer.table, &tokenizer.specials);
    TrTokenizerView {
        bytes: table.bytes.as_ptr(),
        offsets: table.offsets.as_ptr(),
        flags: table.flags.as_ptr(),
        token_count: table.len(),
        eos_ids: specials.eos_ids.as_ptr(),
        eos_count: specials.eos_ids.len(),
        bos_id: specials.bos_id.map_or(-1, i64::from),
        bos_text: TrText::borrowed(&specials.bos_text),
        eos_text: TrText::borrowed(&specials.eos_text),
        chat_template: TrText::borrowed(&specials.chat_template),
        tool_template: TrText::borrowed(&specials.tool_template),
        strips_first_space: tokenizer.spelling.strips_first_space().into(),
    }
}

#[no_mangle]
pub unsafe extern "C" fn tr_encode(
    tokenizer: *const TextTokenizer,
    text: TrText,
    parse_special: i32,
    add_special: i32,
    out: *mut TrIds,
    error: *mut TrBuffer,
) -> i32 {
    guard(error, || {
        let text = text.text("the text")?;
        let ids = (*tokenizer).encode(text, parse_special != 0, add_special != 0)?;
        let mut ids = std::mem::ManuallyDrop::new(ids);
        out.write(TrIds {
            data: ids.as_mut_ptr(),
            size: ids.len(),
            capacity: ids.capacity(),
        });
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tr_ids_free(ids: TrIds) {
    if !ids.data.is_null() {
        drop(Vec::from_raw_parts(ids.data, ids.size, ids.capacity));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tr_decode(
    tokenizer: *const TextTokenizer,
    ids: *const u32,
    count: usize,
    skip_special: i32,
    out: *mut TrBuffer,
    error: *mut TrBuffer,
) -> i32 {
    guard(error, || {
        let text = (*tokenizer).decode(slice(ids, count), skip_special != 0);
        out.write(TrBuffer::take(text.into_bytes()));
        Ok(())
    })
}
