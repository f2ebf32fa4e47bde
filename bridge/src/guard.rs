use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// Runs `work`; a panic becomes an error with the panic's own message instead of ending the
/// process.
pub fn guard<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static QUIET: Once = Once::new();
    // The message travels in the error, so the default hook's print to standard error would only
    // repeat it.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| Err(describe(cause.as_ref())))
}

fn describe(cause: &(dyn Any + Send)) -> String {
    let text = match (cause.downcast_ref::<&str>(), cause.downcast_ref::<String>()) {
        (Some(text), _) => *text,
        (_, Some(text)) => text.as_str(),
        _ => "no message",
    };
    format!("internal failure: {text}")
}
