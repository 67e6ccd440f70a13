//! What crosses the C boundary: borrowed strings in, owned buffers and status codes out.

use std::panic::{catch_unwind, AssertUnwindSafe};

/// Status codes of the C header; the values are those of absl::StatusCode.
pub const INVALID_ARGUMENT: i32 = 3;
pub const UNIMPLEMENTED: i32 = 12;
pub const INTERNAL: i32 = 13;

#[derive(Debug)]
pub struct Failure {
    pub code: i32,
    pub message: String,
}

pub type Outcome<T> = Result<T, Failure>;

pub fn invalid(message: impl Into<String>) -> Failure {
    Failure {
        code: INVALID_ARGUMENT,
        message: message.into(),
    }
}

pub fn unimplemented(message: impl Into<String>) -> Failure {
    Failure {
        code: UNIMPLEMENTED,
        message: message.into(),
    }
}

/// A borrowed string of the caller; `data` may be null when `size` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TrText {
    data: *const u8,
    size: usize,
}

impl TrText {
    pub fn borrowed(text: &str) -> TrText {
        TrText {
            data: text.as_ptr(),
            size: text.len(),
        }
    }

    /// # Safety
    /// `data` must point at `size` readable bytes that outlive the result.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        slice(self.data, self.size)
    }

    /// # Safety
    /// As for `bytes`. `what` names the argument in the error.
    pub unsafe fn text<'a>(self, what: &str) -> Outcome<&'a str> {
        std::str::from_utf8(self.bytes()).map_err(|error| {
            invalid(format!(
                "{what} is not valid UTF-8 (byte {})",
                error.valid_up_to()
            ))
        })
    }
}

/// # Safety
/// `data` must point at `size` readable items, or `size` must be 0.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

/// Bytes owned by this crate until the caller gives them back to `tr_buffer_free`.
#[repr(C)]
pub struct TrBuffer {
    data: *mut u8,
    size: usize,
    capacity: usize,
}

impl TrBuffer {
    pub fn take(bytes: Vec<u8>) -> TrBuffer {
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        TrBuffer {
            data: bytes.as_mut_ptr(),
            size: bytes.len(),
            capacity: bytes.capacity(),
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn tr_buffer_free(buffer: TrBuffer) {
    if !buffer.data.is_null() {
        drop(Vec::from_raw_parts(
            buffer.data,
            buffer.size,
            buffer.capacity,
        ));
    }
}

/// Runs `body`. Returns 0, or the code of its failure with the message in `error`; a panic is an
/// internal error.
///
/// # Safety
/// `error` must be writable.
pub unsafe fn guard(error: *mut TrBuffer, body: impl FnOnce() -> Outcome<()>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
                .unwrap_or_else(|| "unknown cause".to_string());
            Failure {
                code: INTERNAL,
                message: format!("panic in the text crate: {text}"),
            }
        }
    };
    error.write(TrBuffer::take(failure.message.into_bytes()));
    failure.code
}
