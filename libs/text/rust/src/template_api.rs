//! The chat template half of the C header.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::boundary::{guard, TrBuffer, TrText};
use crate::chat_template::{ChatTemplate, RenderInput};

#[repr(C)]
pub struct TrRenderInput {
    messages: TrText,
    tools: TrText,
    extra: TrText,
    bos_text: TrText,
    eos_text: TrText,
    now_unix_seconds: i64,
    add_generation_prompt: i32,
}

#[no_mangle]
pub unsafe extern "C" fn tr_template_compile(
    source: TrText,
    out: *mut *mut ChatTemplate,
    error: *mut TrBuffer,
) -> i32 {
    guard(error, || {
        let template = ChatTemplate::compile(source.text("the template")?)?;
        out.write(Box::into_raw(Box::new(template)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tr_template_free(template: *mut ChatTemplate) {
    if !template.is_null() {
        let owned = Box::from_raw(template);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(owned)));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tr_template_render(
    template: *const ChatTemplate,
    input: *const TrRenderInput,
    out: *mut TrBuffer,
    error: *mut TrBuffer,
) -> i32 {
    guard(error, || {
        let given = &*input;
        let text = (*template).render(&RenderInput {
            messages: given.messages.text("messages")?,
            tools: given.tools.text("tools")?,
            extra: given.extra.text("template variables")?,
            add_generation_prompt: given.add_generation_prompt != 0,
            bos_text: given.bos_text.text("the beginning token")?,
            eos_text: given.eos_text.text("the end token")?,
            now_unix_seconds: given.now_unix_seconds,
        })?;
        out.write(TrBuffer::take(text.into_bytes()));
        Ok(())
    })
}
