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
    let modules = [
        include_str!("../../retoma-store/src/conformance/decisions.rs"),
        include_str!("../../retoma-store/src/conformance/ends.rs"),
        include_str!("../../retoma-store/src/conformance/equivalence.rs"),
        include_str!("../../retoma-store/src/conformance/events.rs"),
        include_str!("../../retoma-store/src/conformance/gate.rs"),
        include_str!("../../retoma-store/src/conformance/inbox.rs"),
        include_str!("../../retoma-store/src/conformance/leases.rs"),
        include_str!("../../retoma-store/src/conformance/merges.rs"),
        include_str!("../../retoma-store/src/conformance/operators.rs"),
        include_str!("../../retoma-store/src/conformance/people.rs"),
        include_str!("../../retoma-store/src/conformance/starts.rs"),
        include_str!("../../retoma-store/src/conformance/upkeep.rs"),
    ];
    let written: usize = modules.iter().map(|module| module.matches("\npub async fn ").count()).sum();
    assert_eq!(listed, written, "a case that is not listed never runs");
}
