use std::cell::RefCell;
use std::ffi::CString;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value};

use crate::ffi::RenderResult;
use crate::guard::guard;
use crate::{generation, json, python};

const NAME: &str = "chat_template";
/// What one rendering may cost: instructions, and 64-byte pieces of text it makes (so about 1 GiB
/// in all).
const FUEL: u64 = 20_000_000;

thread_local! {
    /// The message of raise_exception in the rendering that goes on in this thread.
    static REFUSAL: RefCell<Option<String>> = const { RefCell::new(None) };
}

pub struct TemplateHandle {
    environment: Environment<'static>,
    source: String,
    generation_blocks: usize,
}

pub fn compile_template(source: &[u8]) -> Result<Box<TemplateHandle>, String> {
    guard(|| {
        let source =
            std::str::from_utf8(source).map_err(|error| format!("not valid UTF-8: {error}"))?;
        // jinja2 reads all line ends as \n.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let (rewritten, generation_blocks) = generation::rewrite(&source)?;
        let mut environment = environment()?;
        environment.add_template_owned(NAME, rewritten).map_err(|error| describe(&error))?;
        Ok(Box::new(TemplateHandle { environment, source, generation_blocks }))
    })
}

/// Hugging Face's environment: jinja2 with trim_blocks and lstrip_blocks, without escaping, plus
/// its own functions.
fn environment() -> Result<Environment<'static>, String> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_fuel(Some(FUEL));
    environment.set_syntax(syntax.map_err(|error| error.to_string())?);
    environment.set_unknown_method_callback(python::unknown_method);
    environment
        .set_formatter(|out, _, value| out.write_str(&python::str_of(value)).map_err(Error::from));
    environment.add_filter("string", |value: Value| python::str_of(&value));
    environment.add_filter("tojson", json::tojson);
    environment.add_filter(generation::FILTER, generation::mark);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("e", python::escape);
    environment.add_filter("escape", python::escape);
    // Here None can be looped over, in Python it cannot; templates ask before they take a length.
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    // In Python a string and a dict have a length and items, which is all that jinja2 asks of a
    // sequence.
    environment.add_test("sequence", |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined
        )
    });
    Ok(environment)
}

fn raise_exception(message: String) -> Result<Value, Error> {
    REFUSAL.set(Some(message.clone()));
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime_now(format: String) -> Result<String, Error> {
    let failed = || {
        Error::new(ErrorKind::InvalidOperation, format!("strftime_now: cannot format {format:?}"))
    };
    let pattern = CString::new(format.as_str()).map_err(|_| failed())?;
    let mut buffer = [0u8; 1024];
    // SAFETY: `moment` is filled by localtime_r before it is read; strftime writes at most
    // buffer.len() bytes.
    let written = unsafe {
        let seconds = libc::time(std::ptr::null_mut());
        let mut moment: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut moment);
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), pattern.as_ptr(), &moment)
    };
    if written == 0 && !format.is_empty() {
        return Err(failed());
    }
    Ok(String::from_utf8_lossy(&buffer[..written]).into_owned())
}

impl TemplateHandle {
    pub fn has_generation_tags(&self) -> bool {
        self.generation_blocks > 0
    }

    pub fn render(&self, variables: &[u8]) -> RenderResult {
        REFUSAL.set(None);
        let done = guard(|| self.try_render(variables));
        let refusal = REFUSAL.take();
        match done {
            Ok((text, spans)) => {
                let (begin, end) = spans.into_iter().unzip();
                RenderResult { text, begin, end, error: String::new(), refused: false }
            }
            Err(error) => RenderResult {
                text: String::new(),
                begin: Vec::new(),
                end: Vec::new(),
                refused: refusal.is_some(),
                error: refusal.unwrap_or(error),
            },
        }
    }

    fn try_render(&self, variables: &[u8]) -> Result<(String, Vec<(usize, usize)>), String> {
        let text = std::str::from_utf8(variables).map_err(|error| error.to_string())?;
        let variables: serde_json::Value =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        generation::choose_marks([&self.source, text])?;
        let template = self.environment.get_template(NAME).map_err(|error| describe(&error))?;
        let rendered =
            template.render(json::to_value(&variables)).map_err(|error| describe(&error))?;
        if self.generation_blocks == 0 {
            return Ok((rendered, Vec::new()));
        }
        Ok(generation::take_marks(&rendered))
    }
}

fn describe(error: &Error) -> String {
    let what = match error.detail() {
        _ if error.kind() == ErrorKind::OutOfFuel => {
            "the template makes more text, or takes more steps, than one conversation can need"
                .into()
        }
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}
