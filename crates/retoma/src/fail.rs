//! How a command ends: 0 done, 1 failed or findings, 2 wrong usage or configuration.

/// Everything went well.
pub(crate) const DONE: u8 = 0;
/// It failed, or there is something to look at.
pub(crate) const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;

/// An error that is the caller's to correct.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error of usage or configuration.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// The exit code of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() { USAGE } else { FAILED }
}
