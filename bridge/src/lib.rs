//! What C++ sees of the Rust crates `tokenizers` and `minijinja`. Every failure crosses as a
//! message: a panic inside is caught (cxx would abort the process), so callers only ever meet
//! `rust::Error` or an `error` field.
mod generation;
mod guard;
mod json;
mod python;
mod template;
mod tokenizer;

use template::{compile_template, TemplateHandle};
use tokenizer::{load_tokenizer, TokenizerHandle};

#[cxx::bridge(namespace = "aitraining::bridge")]
mod ffi {
    /// Tokens of several texts, one after the other: text i has `counts[i]` of them.
    struct Encodings {
        ids: Vec<u32>,
        /// Byte offsets into the text the token belongs to.
        begin: Vec<u32>,
        end: Vec<u32>,
        counts: Vec<usize>,
    }

    struct RenderResult {
        text: String,
        /// Byte ranges of the `generation` blocks in `text`.
        begin: Vec<usize>,
        end: Vec<usize>,
        /// Why there is no text; empty when there is one.
        error: String,
        /// The template itself called raise_exception; `error` is its message.
        refused: bool,
    }

    extern "Rust" {
        type TokenizerHandle;
        fn load_tokenizer(json: &[u8]) -> Result<Box<TokenizerHandle>>;
        /// `blob` holds the texts back to back, `ends[i]` is one past the last byte of text i.
        fn encode(
            self: &TokenizerHandle,
            blob: &[u8],
            ends: &[usize],
            add_special_tokens: bool,
        ) -> Result<Encodings>;
        fn decode(self: &TokenizerHandle, ids: &[u32], skip_special_tokens: bool)
            -> Result<String>;
        /// -1 when there is no such token.
        fn token_to_id(self: &TokenizerHandle, token: &[u8]) -> i64;
        fn has_id(self: &TokenizerHandle, id: u32) -> bool;
        fn id_to_token(self: &TokenizerHandle, id: u32) -> String;
        fn is_special(self: &TokenizerHandle, id: u32) -> bool;
        fn size(self: &TokenizerHandle) -> i64;
        /// What the user should know about the file.
        fn notes(self: &TokenizerHandle) -> Vec<String>;

        type TemplateHandle;
        fn compile_template(source: &[u8]) -> Result<Box<TemplateHandle>>;
        fn has_generation_tags(self: &TemplateHandle) -> bool;
        /// `variables`: a JSON object, the template's context.
        fn render(self: &TemplateHandle, variables: &[u8]) -> RenderResult;
    }
}

// C++ calls both from several threads at once.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<TokenizerHandle>();
    shared::<TemplateHandle>();
};
