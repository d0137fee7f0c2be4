//! Every case of the contract's suite, each on a fresh file.

use retoma_sqlite::{Options, SqliteStore};

macro_rules! tests {
    ($($module:ident :: $case:ident,)*) => {$(
        #[tokio::test]
        async fn $case() {
            let directory = tempfile::tempdir().unwrap();
            let store = SqliteStore::open(directory.path().join("retoma.db"), Options::default()).unwrap();
            retoma_store::conformance::$module::$case(&store).await;
            store.close().await;
        }
    )*};
}

retoma_store::conformance_cases!(tests);

#[test]
fn the_list_holds_every_case_of_the_suite() {
    let source = include_str!("../../retoma-store/src/conformance.rs");
    let listed =
        source.lines().filter(|line| line.trim_start().contains("::") && line.trim_end().ends_with(',')).count();
    let modules = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../retoma-store/src/conformance")).unwrap();
    let written: usize = modules
        .map(|module| std::fs::read_to_string(module.unwrap().path()).unwrap())
        .map(|source| source.matches("\npub async fn ").count())
        .sum();
    assert_eq!(listed, written, "a case that is not listed never runs");
}
