#[cxx::bridge(namespace = "aitraining::bridge")]
mod ffi {
    extern "Rust" {
        fn bridge_version() -> String;
    }
}

fn bridge_version() -> String {
    env!("CARGO_PKG_VERSION").to_string()
}
