//! The engine of the lab for a browser: [`doyen_lab::call`] behind three functions that JavaScript can call.
//!
//! A text goes in as bytes in this module's memory, which the caller asks for with `alloc`. The answer comes out the same way:
//!
//! | export | what it does |
//! |---|---|
//! | `alloc(length)` | returns memory for a text |
//! | `free(pointer, length)` | takes it back |
//! | `call(method, its length, request, its length)` | takes both texts back and returns an answer: four bytes that are 0 for an answer and 1 for a problem, four bytes of length, both little-endian, then the text; the caller frees all of it |
//!
//! The module imports `env.progress(pointer, length)`, which receives a text of progress and returns 0 to stop.
//!
//! A panic ends the instance, as everywhere on this target: the caller then makes a new one. The limits of a request are
//! checked before anything runs, so that memory does not run out.

mod memory;
