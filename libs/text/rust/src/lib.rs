//! The crates of the field (tokenizers, minijinja) behind the C header `tokenrouter_text.h`.
//! Nothing here panics across the boundary: `boundary::guard` turns a panic into an error.

mod boundary;
mod chat_template;
mod folder;
mod pre_tokenizers;
mod python_json;
mod sentencepiece;
mod template_api;
mod text_tokenizer;
mod token_table;
mod tokenizer_api;
mod vocabulary;
