//! The functions that JavaScript calls. All memory that crosses the boundary is a boxed slice of bytes whose length
//! both sides know.

#![allow(unsafe_code, reason = "the other side speaks in addresses; nothing else here does")]

#[cfg(not(target_arch = "wasm32"))]
use std::slice;

/// Memory for `length` bytes, all zero.
#[unsafe(no_mangle)]
extern "C" fn alloc(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Takes memory back.
///
/// # Safety
///
/// `pointer` came from [`alloc`] or [`call`] with this `length`, and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(pointer: *mut u8, length: usize) {
    // SAFETY: by the contract above this is the box that was given away.
    drop(unsafe { owned(pointer, length) });
}

/// Answers a request.
///
/// # Safety
///
/// Both texts came from [`alloc`] with these lengths, and are not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn call(
    method: *mut u8,
    method_length: usize,
    request: *mut u8,
    request_length: usize,
) -> *mut u8 {
    // SAFETY: by the contract above these are the boxes that were given away.
    let [method, request] =
        unsafe { [owned(method, method_length), owned(request, request_length)] };
    let [method, request] = [&method, &request].map(|bytes| String::from_utf8_lossy(bytes));
    let (status, text) = match doyen_lab::call(&method, &request, &mut report) {
        Ok(answer) => (0_u32, answer),
        Err(problem) => (1_u32, problem),
    };
    let length = text.len() as u32;
    let answer = [&status.to_le_bytes()[..], &length.to_le_bytes(), text.as_bytes()].concat();
    Box::into_raw(answer.into_boxed_slice()).cast()
}

/// The box that is at `pointer`.
///
/// # Safety
///
/// `pointer` is that of a boxed slice of `length` bytes that was given away, and is not used again.
unsafe fn owned(pointer: *mut u8, length: usize) -> Box<[u8]> {
    // SAFETY: by the contract above.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(pointer, length)) }
}

/// Shows a report of progress to the page; returns whether to continue.
fn report(text: &str) -> bool {
    let bytes: &[u8] = text.as_bytes();
    // SAFETY: the page only reads these bytes, and only until it returns.
    unsafe { progress(bytes.as_ptr(), bytes.len()) != 0 }
}

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "env")]
unsafe extern "C" {
    /// Receives a text; returns 0 to stop.
    fn progress(pointer: *const u8, length: usize) -> i32;
}

/// There is no page.
///
/// # Safety
///
/// `pointer` is that of `length` bytes.
#[cfg(not(target_arch = "wasm32"))]
unsafe fn progress(pointer: *const u8, length: usize) -> i32 {
    // SAFETY: by the contract above.
    let text = unsafe { slice::from_raw_parts(pointer, length) };
    i32::from(!text.is_empty())
}
