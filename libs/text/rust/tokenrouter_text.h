// The C face of the crate tokenrouter_text: tokenizers and chat templates.
// Ownership: tr_text and arrays that go in are borrowed for the call. Handles, buffers and ids that
// come out belong to the caller until the matching _free. A view is borrowed from its tokenizer.
// Threads: every function but the _free ones may be called on one handle from any thread at once.
// Units: sizes in bytes, or items for arrays. data may be null where its size is 0.
// Errors: 0, or an absl::StatusCode (3 INVALID_ARGUMENT, 12 UNIMPLEMENTED, 13 INTERNAL) with a
// message in *error; *out and *error are written only in their own case. Nothing unwinds out.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_tokenizer tr_tokenizer;
typedef struct tr_template tr_template;

typedef struct {
  const char* data;
  size_t size;
} tr_text;

typedef struct {
  char* data;
  size_t size;
  size_t capacity;
} tr_buffer;

typedef struct {
  uint32_t* data;
  size_t size;
  size_t capacity;
} tr_ids;

// Contents of the files; all but tokenizer may be empty.
typedef struct {
  tr_text tokenizer;      // tokenizer.json
  tr_text config;         // tokenizer_config.json
  tr_text generation;     // generation_config.json
  tr_text chat_template;  // chat_template.jinja, which wins over the one in config
} tr_folder_files;

// The tokenizer.* metadata of a GGUF file.
typedef struct {
  tr_text model;
  tr_text pre;
  const tr_text* tokens;
  size_t token_count;
  const tr_text* merges;
  size_t merge_count;
  const int32_t* types;  // none: every token is an ordinary one
  size_t type_count;
  const float* scores;  // of model llama
  size_t score_count;
  int64_t bos_id;  // below 0: none
  int64_t eos_id;
  int32_t add_bos;
  int32_t add_space_prefix;  // of model llama
  tr_text chat_template;
} tr_vocabulary;

enum { TR_TOKEN_SPECIAL = 1, TR_TOKEN_UNUSED = 2 };

typedef struct {
  const char* bytes;        // token i is bytes[offsets[i]] up to bytes[offsets[i + 1]]
  const uint64_t* offsets;  // token_count + 1
  const uint8_t* flags;     // TR_TOKEN_*
  size_t token_count;
  const uint32_t* eos_ids;  // the tokenizer's own first
  size_t eos_count;
  int64_t bos_id;  // below 0: none
  tr_text bos_text;
  tr_text eos_text;
  tr_text chat_template;
  tr_text tool_template;       // used instead when a request has tools
  int32_t strips_first_space;  // a decode drops one space at its beginning
} tr_tokenizer_view_t;

typedef struct {
  tr_text messages;  // JSON; empty stands for null, also in the next two
  tr_text tools;
  tr_text extra;  // an object of further variables
  tr_text bos_text;
  tr_text eos_text;
  int64_t now_unix_seconds;  // for strftime_now, in UTC
  int32_t add_generation_prompt;
} tr_render_input;

void tr_buffer_free(tr_buffer buffer);
void tr_ids_free(tr_ids ids);

int32_t tr_tokenizer_from_folder(const tr_folder_files* files, tr_tokenizer** out,
                                 tr_buffer* error);
int32_t tr_tokenizer_from_vocabulary(const tr_vocabulary* vocabulary, tr_tokenizer** out,
                                     tr_buffer* error);
void tr_tokenizer_free(tr_tokenizer* tokenizer);
tr_tokenizer_view_t tr_tokenizer_view(const tr_tokenizer* tokenizer);
int32_t tr_encode(const tr_tokenizer* tokenizer, tr_text text, int32_t parse_special,
                  int32_t add_special, tr_ids* out, tr_buffer* error);
int32_t tr_decode(const tr_tokenizer* tokenizer, const uint32_t* ids, size_t count,
                  int32_t skip_special, tr_buffer* out, tr_buffer* error);

int32_t tr_template_compile(tr_text source, tr_template** out, tr_buffer* error);
void tr_template_free(tr_template* chat_template);
int32_t tr_template_render(const tr_template* chat_template, const tr_render_input* input,
                           tr_buffer* out, tr_buffer* error);

#ifdef __cplusplus
}
#endif
