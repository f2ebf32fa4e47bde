use std::collections::HashSet;

use tokenizers::processors::PostProcessorWrapper;
use tokenizers::{Encoding, Tokenizer};

use crate::ffi::Encodings;
use crate::guard::guard;

pub struct TokenizerHandle {
    tokenizer: Tokenizer,
    special: HashSet<u32>,
    size: i64,
    notes: Vec<String>,
}

/// The part of tokenizer.json that declares ids of added tokens.
#[derive(serde::Deserialize)]
struct Declared {
    #[serde(default)]
    added_tokens: Vec<DeclaredToken>,
}

#[derive(serde::Deserialize)]
struct DeclaredToken {
    id: u32,
    content: String,
}

pub fn load_tokenizer(json: &[u8]) -> Result<Box<TokenizerHandle>, String> {
    guard(|| {
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(|error| error.to_string())?;
        // Lengths are the caller's business: limits stored in the file would cut or fill rows
        // silently.
        tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        keep_blanks_in_offsets(&mut tokenizer);
        let added = tokenizer.get_added_tokens_decoder();
        let special = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        let highest = tokenizer.get_vocab(true).into_values().max();
        let size = highest.map_or(0, |id| i64::from(id) + 1);
        let notes = moved_ids(&tokenizer, json)?;
        Ok(Box::new(TokenizerHandle { tokenizer, special, size, notes }))
    })
}

/// `tokenizers` numbers added tokens on from the last one, whatever the file says; so does every
/// program over it.
fn moved_ids(tokenizer: &Tokenizer, json: &[u8]) -> Result<Vec<String>, String> {
    let declared: Declared = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let moved = declared.added_tokens.iter().filter_map(|token| {
        let id = tokenizer.token_to_id(&token.content)?;
        let note =
            format!("token {} is written with id {} but has id {id}", token.content, token.id);
        (id != token.id).then_some(note)
    });
    Ok(moved.collect())
}

/// `trim_offsets` makes a token of blanks hold nothing at all; a token's range is wanted whole
/// here. Ids are the same.
fn keep_blanks_in_offsets(tokenizer: &mut Tokenizer) {
    if let Some(processor) = tokenizer.get_post_processor() {
        let mut processor = processor.clone();
        untrim(&mut processor);
        tokenizer.with_post_processor(Some(processor));
    }
}

fn untrim(processor: &mut PostProcessorWrapper) {
    match processor {
        PostProcessorWrapper::ByteLevel(level) => level.trim_offsets = false,
        PostProcessorWrapper::Roberta(roberta) => roberta.trim_offsets = false,
        PostProcessorWrapper::Sequence(parts) => parts.as_mut().iter_mut().for_each(untrim),
        _ => {}
    }
}

impl TokenizerHandle {
    pub fn encode(
        &self,
        blob: &[u8],
        ends: &[usize],
        add_special_tokens: bool,
    ) -> Result<Encodings, String> {
        guard(|| {
            let texts = cut(blob, ends)?;
            // One text is not worth waking the thread pool.
            let encodings = match texts.as_slice() {
                [text] => self.tokenizer.encode(*text, add_special_tokens).map(|one| vec![one]),
                _ => self.tokenizer.encode_batch(texts, add_special_tokens),
            };
            Ok(flatten(&encodings.map_err(|error| error.to_string())?))
        })
    }

    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String, String> {
        guard(|| self.tokenizer.decode(ids, skip_special_tokens).map_err(|error| error.to_string()))
    }

    pub fn token_to_id(&self, token: &[u8]) -> i64 {
        let token = std::str::from_utf8(token).ok();
        token.and_then(|token| self.tokenizer.token_to_id(token)).map_or(-1, i64::from)
    }

    pub fn has_id(&self, id: u32) -> bool {
        self.tokenizer.id_to_token(id).is_some()
    }

    pub fn id_to_token(&self, id: u32) -> String {
        self.tokenizer.id_to_token(id).unwrap_or_default()
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    pub fn size(&self) -> i64 {
        self.size
    }

    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn cut<'a>(blob: &'a [u8], ends: &[usize]) -> Result<Vec<&'a str>, String> {
    let mut texts = Vec::with_capacity(ends.len());
    let mut begin = 0;
    for (index, &end) in ends.iter().enumerate() {
        let bytes = blob.get(begin..end).ok_or("text ends lie outside the texts")?;
        let text = std::str::from_utf8(bytes).map_err(|error| {
            format!("text {index} is not valid UTF-8 (byte {})", error.valid_up_to())
        })?;
        texts.push(text);
        begin = end;
    }
    Ok(texts)
}

fn flatten(encodings: &[Encoding]) -> Encodings {
    let total = encodings.iter().map(Encoding::len).sum();
    let mut flat = Encodings {
        ids: Vec::with_capacity(total),
        begin: Vec::with_capacity(total),
        end: Vec::with_capacity(total),
        counts: Vec::with_capacity(encodings.len()),
    };
    for encoding in encodings {
        flat.ids.extend_from_slice(encoding.get_ids());
        for &(begin, end) in encoding.get_offsets() {
            flat.begin.push(begin as u32);
            flat.end.push(end as u32);
        }
        flat.counts.push(encoding.len());
    }
    flat
}
