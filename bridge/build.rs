fn main() {
    cxx_build::bridge("src/lib.rs").std("c++20").compile("aitraining_bridge_cxx");
    println!("cargo:rerun-if-changed=src/lib.rs");
}
